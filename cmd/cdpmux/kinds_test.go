package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cdpmux/lifecycle"
)

// The proxy cannot import the one list of kinds, and may answer no other.
func TestKindsOfTheProxyAreListed(t *testing.T) {
	kinds := kindsIn(t, "../../proxy")
	for kind, pos := range kinds {
		if (&lifecycle.Failure{Kind: kind}).Next() == "" {
			t.Errorf("%s: %s is not among the kinds of package lifecycle", pos, kind)
		}
	}
	for how, kind := range map[string]string{"literal": "admin_only", "method": "bad_request", "assignment": "draining", "constant": "launch_timeout"} {
		if _, found := kinds[kind]; !found {
			t.Errorf("%s, which stands in a %s, is not seen", kind, how)
		}
	}
}

// kindsIn are the failure kinds in the source below a directory: the Kind of
// each problem, which is called p where it is changed, and what each method
// FailureKind returns.
func kindsIn(t *testing.T, dir string) map[string]token.Position {
	kinds, constants := map[string]token.Position{}, map[string]ast.Expr{}
	fset := token.NewFileSet()
	var files []*ast.File
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		files = append(files, file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	take := func(e ast.Expr) {
		if name, ok := e.(*ast.Ident); ok {
			e = constants[name.Name]
		}
		if text, ok := e.(*ast.BasicLit); ok && text.Kind == token.STRING {
			kind, _ := strconv.Unquote(text.Value)
			kinds[kind] = fset.Position(text.Pos())
		}
	}
	for _, see := range []func(ast.Node){
		func(n ast.Node) {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == len(spec.Values) {
				for i, name := range spec.Names {
					constants[name.Name] = spec.Values[i]
				}
			}
		},
		func(n ast.Node) {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if name, ok := n.Type.(*ast.Ident); ok && name.Name == "problem" {
					for _, e := range n.Elts {
						if field, ok := e.(*ast.KeyValueExpr); ok && field.Key.(*ast.Ident).Name == "Kind" {
							take(field.Value)
						}
					}
				}
			case *ast.AssignStmt:
				for i, left := range n.Lhs {
					if field, ok := left.(*ast.SelectorExpr); ok && field.Sel.Name == "Kind" && len(n.Lhs) == len(n.Rhs) {
						if name, ok := field.X.(*ast.Ident); ok && name.Name == "p" {
							take(n.Rhs[i])
						}
					}
				}
			case *ast.FuncDecl:
				if n.Name.Name == "FailureKind" {
					ast.Inspect(n.Body, func(n ast.Node) bool {
						if out, ok := n.(*ast.ReturnStmt); ok {
							take(out.Results[0])
						}
						return true
					})
				}
			}
		},
	} {
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool { see(n); return true })
		}
	}
	return kinds
}
