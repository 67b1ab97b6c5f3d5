package routing

import (
	"os"
	"strings"
	"testing"
)

// TestRulesExample: the complete example is one.
func TestRulesExample(t *testing.T) {
	text, err := os.ReadFile("testdata/policy.json")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := ParseRules("policy.json", text)
	if err != nil {
		t.Fatal(err)
	}
	if len(rules.UploadRoots) == 0 || len(rules.Rules) < 3 {
		t.Errorf("it says %+v", rules)
	}
}

func TestRulesFaults(t *testing.T) {
	for text, want := range map[string]string{
		"{\n\"upload_root\": []\n}":                          `p.json, line 2: json: unknown field "upload_root"`,
		"{\n\n\"rules\": [{\"client\": [\"a\"]}]\n}":         `p.json, line 3: json: unknown field "client"`,
		"{\n\"rules\": 1\n}":                                 `p.json, line 2: json: cannot unmarshal number`,
		"{\n\"rules\": [\n}":                                 `p.json, line 3: invalid character`,
		"":                                                   `p.json, line 1: EOF`,
		"{}\n{}":                                             `p.json, line 1: there is something after the object`,
		`{"upload_roots":["uploads"]}`:                       `p.json: upload_roots[0] "uploads": give a clean absolute path`,
		`{"upload_roots":["/srv/../etc"]}`:                   `upload_roots[0]`,
		`{"upload_roots":["/srv/"]}`:                         `upload_roots[0]`,
		`{"rules":[{"refuse":["*"]}]}`:                       `p.json: rule 1: it needs clients`,
		`{"rules":[{"clients":["a"]}]}`:                      `p.json: rule 1: it needs clients, and allow or refuse`,
		`{"rules":[{"clients":[""],"refuse":["*"]}]}`:        `rule 1, clients: ""`,
		`{"rules":[{"clients":["a*b"],"refuse":["*"]}]}`:     `rule 1, clients: "a*b"`,
		`{"rules":[{"clients":["*"],"refuse":["Page"]}]}`:    `rule 1, refuse: "Page"`,
		`{"rules":[{"clients":["*"],"allow":["Page.na*"]}]}`: `rule 1, allow: "Page.na*"`,
	} {
		if _, err := ParseRules("p.json", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestUploadRoots(t *testing.T) {
	some := &Rules{UploadRoots: []string{"/srv/up", "/home/a"}}
	for file, want := range map[string]bool{
		"/srv/up": true, "/srv/up/a": true, "/srv/up//a": true, "/srv/up/./a/b": true, "/home/a/..b": true,
		"/srv/upper": false, "/srv": false, "/": false, "": false, "a": false, "srv/up/a": false,
		"/srv/up/../up/a": false, "/srv/up/..": false, "~/a": false, "file:///srv/up/a": false,
		"/srv/up/..\\..\\x": true, // one name, on any system with such roots
	} {
		if got := some.holds(file); got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
	if none := (&Rules{UploadRoots: []string{}}); none.holds("/srv/up/a") {
		t.Error("an empty list lets a file through")
	}
	if all := (&Rules{UploadRoots: []string{"/"}}); !all.holds("/srv/up/a") {
		t.Error("the root of all does not hold a file")
	}
	var none *Rules
	if !none.holds("anything") || !(&Rules{}).holds("anything") {
		t.Error("without roots a file is refused")
	}
}

// TestAuditKeepsNoParams: a decision has the method, cut to a bound, and
// nothing else that a client wrote.
func TestAuditKeepsNoParams(t *testing.T) {
	p := playerWithPage(t)
	p.r.audit = true
	long := "Page." + strings.Repeat("x", 4000)
	out := p.step(`c1> {"id":9,"method":"` + long + `","params":{"secret":"s3cr3t"},"sessionId":"S1"}`)
	last := out[len(out)-1]
	if want := "audited alice " + long[:maxAudited] + " PAGE1 allowed"; last != want {
		t.Errorf("got %q, want %q", last, want)
	}
}
