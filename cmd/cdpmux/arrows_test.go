package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// arrows are the packages of ours that the files below a folder may import,
// besides those of the folder itself. The folders are siblings that never know
// one another; cmd joins them.
var arrows = map[string][]string{
	"routing":   {},
	"proxy":     {"routing"},
	"lifecycle": {"routing"},
	"wrapper":   {"routing"},
	"cmd":       {"routing", "proxy", "lifecycle", "wrapper"},
}

// impure is what package routing may not import: it decides, and does nothing.
var impure = []string{
	"net", "os", "log", "sync", "context", "io", "runtime", "syscall",
	"github.com/gorilla/websocket", "github.com/rs/zerolog",
}

// clocks are the parts of package time that look at a clock or wait for one;
// routing is told the time.
var clocks = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

func TestArrows(t *testing.T) {
	files := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata"):
			return fs.SkipDir // as the go command does: it holds test clients, a module of their own
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files++
		for _, f := range faults(filepath.ToSlash(strings.TrimPrefix(path, "../../")), file) {
			t.Errorf("%s: %s", fset.Position(f.pos), f.text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 20 {
		t.Errorf("only %d Go files seen", files)
	}
}

type fault struct {
	pos  token.Pos
	text string
}

// faults lists what a file, at a path from the repository's root, may not do.
func faults(path string, file *ast.File) []fault {
	var out []fault
	folder, _, _ := strings.Cut(path, "/")
	allowed, known := arrows[folder]
	if !known {
		out = append(out, fault{file.Package, "Go files belong into one of the known folders"})
	}
	pure := folder == "routing" && !strings.HasSuffix(path, "_test.go")
	for _, imp := range file.Imports {
		name, _ := strconv.Unquote(imp.Path.Value)
		if own, ok := strings.CutPrefix(name, "cdpmux/"); ok {
			top, _, _ := strings.Cut(own, "/")
			if top != folder && !slices.Contains(allowed, top) {
				out = append(out, fault{imp.Pos(), folder + " may not import " + name})
			}
		}
		if name == "github.com/chromedp/cdproto" {
			out = append(out, fault{imp.Pos(), "import the sub-packages of cdproto: its root pulls in all of them"})
		}
		if pure && slices.ContainsFunc(impure, func(p string) bool { return name == p || strings.HasPrefix(name, p+"/") }) {
			out = append(out, fault{imp.Pos(), "routing may not import " + name})
		}
	}
	if pure {
		out = append(out, deeds(file)...)
	}
	return out
}

// deeds lists goroutines, channels and looks at the clock.
func deeds(file *ast.File) []fault {
	var out []fault
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			out = append(out, fault{n.Pos(), "a goroutine in routing"})
		case *ast.ChanType:
			out = append(out, fault{n.Pos(), "a channel in routing"})
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains(clocks, n.Sel.Name) {
				out = append(out, fault{n.Pos(), fmt.Sprintf("time.%s in routing", n.Sel.Name)})
			}
		}
		return true
	})
	return out
}

func TestArrowsAreSeen(t *testing.T) {
	for _, tc := range []struct {
		path, body string
		faults     int
	}{
		{"proxy/a.go", `import "cdpmux/routing"`, 0},
		{"proxy/a_test.go", `import "cdpmux/proxy/proxytest"`, 0},
		{"proxy/a_test.go", `import "cdpmux/lifecycle"`, 1},
		{"lifecycle/keeper/a.go", `import "cdpmux/wrapper"`, 1},
		{"wrapper/a.go", `import "cdpmux/proxy/proxytest"`, 1},
		{"routing/a_test.go", `import "cdpmux/proxy"`, 1},
		{"cmd/x/a.go", `import ("cdpmux/proxy"; "cdpmux/lifecycle"; "os")`, 0},
		{"util/a.go", ``, 1},
		{"routing/a.go", `import ("time"; "github.com/chromedp/cdproto/target"); var t time.Time`, 0},
		{"routing/a.go", `import ("net/http"; "sync"; "github.com/rs/zerolog/log")`, 3},
		{"routing/a_test.go", `import "os"`, 0},
		{"routing/a.go", `import "time"; var t = time.Now()`, 1},
		{"routing/a.go", `func f() { go f() }; var c chan int`, 2},
		{"proxy/a.go", `import "github.com/chromedp/cdproto"`, 1},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), tc.path, "package p; "+tc.body, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := faults(tc.path, file); len(got) != tc.faults {
			t.Errorf("%s with %s: %v, want %d faults", tc.path, tc.body, got, tc.faults)
		}
	}
}
