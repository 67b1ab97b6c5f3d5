package wrapper

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// bashisms lists what bash 3.2, that of macOS, does not know, or does wrong.
func bashisms(t *testing.T, name string, script []byte) []string {
	t.Helper()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(bytes.NewReader(script), name)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	guarded := map[*syntax.ParamExp]bool{}
	syntax.Walk(file, func(node syntax.Node) bool {
		what := ""
		switch n := node.(type) {
		case *syntax.DeclClause:
			for _, arg := range n.Args {
				if arg.Name == nil && arg.Value != nil && regexp.MustCompile(`^-[a-zA-Z]*[Ang]`).MatchString(arg.Value.Lit()) {
					what = n.Variant.Value + " " + arg.Value.Lit()
				}
			}
		case *syntax.CallExpr:
			what = newerCommand(n)
		case *syntax.ParamExp:
			what = newerExpansion(n, guarded)
		case *syntax.Redirect:
			if n.Op == syntax.AppAll {
				what = "&>>"
			}
		case *syntax.BinaryCmd:
			if n.Op == syntax.PipeAll {
				what = "|&"
			}
		case *syntax.CoprocClause:
			what = "coproc"
		case *syntax.UnaryTest:
			if n.Op == syntax.TsVarSet {
				what = "[[ -v"
			}
		}
		if what != "" {
			found = append(found, node.Pos().String()+" "+what)
		}
		return true
	})
	return found
}

// newerCommand names a builtin, or an option of one, that came after 3.2.
func newerCommand(n *syntax.CallExpr) string {
	var words []string
	for _, arg := range n.Args {
		text := arg.Lit()
		if text == "" && len(arg.Parts) == 1 {
			if q, ok := arg.Parts[0].(*syntax.SglQuoted); ok {
				text = q.Value
			}
		}
		words = append(words, text)
	}
	for len(words) > 0 && (words[0] == "command" || words[0] == "builtin") {
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	rest := strings.Join(words[1:], " ")
	switch {
	case words[0] == "mapfile", words[0] == "readarray":
		return words[0]
	case words[0] == "wait" && regexp.MustCompile(`(^| )-[a-z]*n`).MatchString(rest):
		return "wait -n"
	case words[0] == "printf" && regexp.MustCompile(`%\([^)]*\)T`).MatchString(rest):
		return "printf %(…)T"
	}
	return ""
}

// newerExpansion names an expansion that came after 3.2, and that of an array
// which there is an error with set -u when the array is empty.
func newerExpansion(n *syntax.ParamExp, guarded map[*syntax.ParamExp]bool) string {
	all := func(n *syntax.ParamExp) bool {
		word, ok := n.Index.(*syntax.Word)
		return ok && (word.Lit() == "@" || word.Lit() == "*")
	}
	if n.Param != nil && (n.Param.Value == "EPOCHSECONDS" || n.Param.Value == "EPOCHREALTIME") {
		return n.Param.Value
	}
	if unary, ok := n.Index.(*syntax.UnaryArithm); ok && unary.Op == syntax.Minus {
		return "negative index"
	}
	if n.Exp != nil {
		switch n.Exp.Op {
		case syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll, syntax.OtherParamOps:
			return "${x" + n.Exp.Op.String() + "}"
		case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
			if all(n) && n.Exp.Word != nil {
				syntax.Walk(n.Exp.Word, func(node syntax.Node) bool {
					if inner, ok := node.(*syntax.ParamExp); ok && inner.Param.Value == n.Param.Value {
						guarded[inner] = true
					}
					return true
				})
				return ""
			}
		}
	}
	if all(n) && !n.Length && !guarded[n] {
		return "${" + n.Param.Value + "[@]} without the + guard"
	}
	return ""
}

func TestBashismsAreSeen(t *testing.T) {
	for _, bad := range []string{
		"declare -A x", "local -n x=y", "declare -g x=1", "typeset -gA x", "mapfile x", "builtin readarray x", "echo ${x,,}", "echo ${x^^}", "echo ${x^}",
		"echo ${x@Q}", "echo >x &>>y", "a |& b", "coproc a", "wait -n", "[[ -v x ]]", `echo "${a[@]}"`, `echo ${a[*]}`, "echo $EPOCHSECONDS",
		"echo ${a[-1]}", "printf '%(%F)T' -1", `echo ${a[@]+"${b[@]}"}`,
	} {
		if len(bashisms(t, bad, []byte(bad))) == 0 {
			t.Errorf("%s: not seen", bad)
		}
	}
	for _, good := range []string{"declare -a x", "local x=1", `echo ${a[@]+"${a[@]}"}`, "echo ${#a[@]}", "echo ${a[1]}", "[[ -n x ]]", "a 2>&1 | b", "printf '%s' x", "echo ${!BU_@}"} {
		if got := bashisms(t, good, []byte(good)); len(got) > 0 {
			t.Errorf("%s: %v", good, got)
		}
	}
}

// variants are scripts that differ in every setting.
func variants() map[string]Script {
	plain := Script{Slug: "shop", ID: "1a2b3c4d", Addr: "127.0.0.1:9400", Home: "/h", Cdpmux: "/c", Settings: Defaults()}
	plain.Real = "/r"
	web, start, odd := plain, plain, plain
	web.Slug = Web
	start.StartURL, start.TokenFile, start.AnyTask, start.Slots = "https://example.com/start?a=1&b=2", "/t", true, 0
	odd.Home, odd.Cdpmux, odd.Real = "/it's $(id) `id` \"\n\\店 %s {{", "/'", "/a b*"
	odd.Addr = "[::1]:9400"
	return map[string]Script{"store": plain, "web": web, "start": start, "odd": odd}
}

func TestScriptIsClean(t *testing.T) {
	t.Parallel()
	scripts := map[string][]byte{"guard": guardText}
	for name, s := range variants() {
		text, err := s.Render()
		if err != nil {
			t.Fatal(err)
		}
		scripts[name] = text
		if h := text[:headerBytes]; !bytes.Contains(h, []byte("# cdpmux-proxy: "+s.Addr+"\n")) {
			t.Errorf("%s: the header is longer than %d bytes:\n%s", name, headerBytes, h)
		}
	}
	for name, text := range scripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, each := range bashisms(t, name, text) {
				t.Errorf("not for bash 3.2: %s", each)
			}
			path := filepath.Join(t.TempDir(), "script")
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"bash", "-n", path}, {shellcheck(t), "--shell=bash", path}} {
				if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil || len(out) > 0 {
					t.Errorf("%v: %v\n%s", args, err, out)
				}
			}
		})
	}
}

// shellcheck is the one that scripts/setup installed, else that of PATH.
func shellcheck(t *testing.T) string {
	t.Helper()
	if path, err := filepath.Abs("../.cache/bin/shellcheck"); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	path, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Fatalf("%v: run scripts/setup, which installs it", err)
	}
	return path
}
