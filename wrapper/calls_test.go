package wrapper

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// callRow is one row of testdata/calls.json: how the script is called, and
// either the session, client and arguments that browser-use gets, or how the
// call is refused.
type callRow struct {
	Name    string
	Web     bool
	AnyTask bool `json:"any_task"`
	Slots   *int
	Env     []string
	Args    []string

	Session string
	Client  string // uuid stands for a fresh one
	Passed  []string
	Exit    int
	Stderr  string // its first line
}

const uuid = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`

// The contract's tables, row by row, against the real script.
func TestCalls(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/calls.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []callRow
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		t.Run(row.Name, func(t *testing.T) {
			t.Parallel()
			p := newPost(t, func(s *Script) {
				s.AnyTask = row.AnyTask
				if row.Web {
					s.Slug = Web
				}
				if row.Slots != nil {
					s.Slots = *row.Slots
				}
			})
			p.env = append(p.env, row.Env...)
			row.check(t, p, p.call(t, row.Args...))
		})
	}
}

func (row callRow) check(t *testing.T, p *post, got outcome) {
	first, _, _ := strings.Cut(got.stderr, "\n")
	if got.code != row.Exit || first != row.Stderr {
		t.Fatalf("want exit %d with %q, got %v", row.Exit, row.Stderr, got)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "pwned")); err == nil {
		t.Error("an argument was run as code")
	}
	if row.Exit != 0 {
		if p.note(t, "calls") != "" || p.note(t, "ensure") != "" {
			t.Error("a refused call reached browser-use or cdpmux")
		}
		return
	}
	passed := ""
	for _, arg := range row.Passed {
		passed += arg + "\x00"
	}
	if passed == "" {
		passed = "\x00" // what the stand-in's printf makes of no argument
	}
	mustEqual(t, "arguments of browser-use", passed, p.note(t, "args"))
	env := p.toolEnv(t)
	mustEqual(t, "BU_NAME", row.Session, env["BU_NAME"])
	client := strings.Replace(row.Client, "uuid", uuid, 1)
	if !regexp.MustCompile(`^ws://127\.0\.0\.1:9400/client-` + client + `$`).MatchString(env["BU_CDP_WS"]) {
		t.Errorf("BU_CDP_WS: want client %s, got %s", row.Client, env["BU_CDP_WS"])
	}
	home := p.script.Home
	for name, want := range map[string]string{
		"BH_RUNTIME_DIR": home + "/run", "BH_RUNTIME_DIR_SHARED": "1",
		"BH_TMP_DIR": home + "/tmp/" + row.Session, "BH_TMP_DIR_SHARED": "1",
		"BU_CDP_URL": "", "BU_BROWSER_ID": "", "NO_PROXY": "127.0.0.1,localhost,::1",
	} {
		mustEqual(t, name, want, env[name])
	}
	ensure := []string{"ensure", "--store", "shop", "--id", "id-1", "--home", home, "--wait", "90s", ""}
	if row.Web {
		ensure = []string{"ensure", "--web", "--home", home, "--wait", "90s", ""}
	}
	mustEqual(t, "arguments of cdpmux", strings.Join(ensure, "\x00"), p.note(t, "ensure"))
}
