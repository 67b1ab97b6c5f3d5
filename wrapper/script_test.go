package wrapper

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template/parse"
	"time"
)

// No value gets into the script but through quote or word.
func TestTemplateQuotesEverything(t *testing.T) {
	var walk func(node parse.Node)
	actions := 0
	walk = func(node parse.Node) {
		switch n := node.(type) {
		case *parse.ListNode:
			for _, each := range n.Nodes {
				walk(each)
			}
		case *parse.RangeNode:
			walk(n.List)
		case *parse.ActionNode:
			actions++
			if words := strings.Fields(n.Pipe.String()); len(words) != 2 || words[0] != "quote" && words[0] != "word" {
				t.Errorf("{{%s}} is not quoted", n.Pipe)
			}
		case *parse.TextNode:
		default:
			t.Errorf("%T in the template: say here why it is safe", n)
		}
	}
	walk(scriptTemplate.Root)
	if actions < 15 {
		t.Errorf("only %d values in the template", actions)
	}
}

// A path that is code, or breaks quoting, is a path.
func TestOddPaths(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"it's", `a"b`, "$(touch pwned)", "`touch pwned`", "a\nb", "a b", "店铺", `back\slash`, "{{.ID}}", "-n", "*"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPost(t, func(s *Script) {
				s.Home = filepath.Join(s.Home, name)
				for from, to := range map[*string]string{&s.Real: "tool", &s.Cdpmux: "mux"} {
					text, err := os.ReadFile(*from)
					if err != nil {
						t.Fatal(err)
					}
					*from = filepath.Join(s.Home, to+" "+name)
					if err := replace(*from, text, 0o700); err != nil {
						t.Fatal(err)
					}
				}
			})
			if got := p.call(t); got.code != 0 || got.stderr != "" {
				t.Fatalf("want a call that works, got %v", got)
			}
			if note := p.note(t, "ensure"); !strings.Contains(note, "\x00--home\x00"+p.script.Home+"\x00") {
				t.Errorf("arguments of cdpmux: want home %q, got %q", p.script.Home, note)
			}
			mustEqual(t, "BH_RUNTIME_DIR", p.script.Home+"/run", p.toolEnv(t)["BH_RUNTIME_DIR"])
			if found, _ := filepath.Glob(filepath.Join(globEscape(p.dir), "pwned*")); len(found) > 0 {
				t.Error("a path was run as code")
			}
		})
	}
}

func TestScriptRefused(t *testing.T) {
	for what, change := range map[string]func(*Script){
		"is no slug":            func(s *Script) { s.Slug = "$(id)" },
		"no slug of a store":    func(s *Script) { s.Slug = "a\nb" },
		`"../x" is no slug`:     func(s *Script) { s.Slug = "../x" },
		"cannot stand in":       func(s *Script) { s.ID = "a\nrm -rf x" },
		"has no id":             func(s *Script) { s.ID = "" },
		"want IP:PORT":          func(s *Script) { s.Addr = "localhost:9400" },
		"absolute path":         func(s *Script) { s.Real = "browser-use" },
		"NUL":                   func(s *Script) { s.Real = "/a\x00b" },
		"worker slots":          func(s *Script) { s.Slots = 100 },
		"whole seconds":         func(s *Script) { s.Timeout = 1500 * time.Millisecond },
		"at least 1s":           func(s *Script) { s.Timeout = 0 },
		"want https":            func(s *Script) { s.StartURL = "http://example.com/start" },
		"want https://HOST":     func(s *Script) { s.StartURL = "https://user:pass@example.com" },
		"http to this machine":  func(s *Script) { s.StartURL = "ftp://127.0.0.1/" },
		"start URL, which":      func(s *Script) { s.TokenFile = "/t" },
		"token file \"t\"":      func(s *Script) { s.StartURL, s.TokenFile = "https://example.com", "t" },
		"at most 103":           func(s *Script) { s.Home = "/" + strings.Repeat("x", 80) },
		"choose a shorter home": nil,
	} {
		s := variants()["store"]
		if change == nil { // one byte less than at most 103 allows is taken
			room := maxSocket - len("/run/bu-shop-00000000-w3.sock")
			s.Home = "/" + strings.Repeat("x", room-1)
			if _, err := s.Render(); err != nil {
				t.Error(err)
			}
			s.Home += "x"
			what, change = "at most 103", func(*Script) {}
		}
		change(&s)
		if _, err := s.Render(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("want an error with %q, got %v", what, err)
		}
	}
}
