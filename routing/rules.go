package routing

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Rules are what an operator demands or grants besides the policy that is
// built in, as a file says it:
//
//	{
//	  "upload_roots": ["/srv/uploads"],
//	  "rules": [
//	    {"clients": ["reader-*"], "allow": ["Page.captureScreenshot"], "refuse": ["Page.*", "Input.*"]},
//	    {"clients": ["*"], "refuse": ["Storage.getCookies"]},
//	    {"clients": ["admin"], "allow": ["Storage.clearCookies"]}
//	  ]
//	}
//
// Clients are ids or prefixes with *, which alone is everybody; methods are
// names, Domain.* or *. The first rule that names both the client and the
// method counts, in a rule its allow before its refuse. An allow that names a
// method in full lifts a refusal of the built-in policy; what that scopes or
// emulates stays so, and so do the closed schemes.
//
// Without upload_roots any file may be uploaded, with [] none.
type Rules struct {
	UploadRoots []string `json:"upload_roots"` // absolute; links in them are followed
	Rules       []Rule   `json:"rules"`

	// Name is what refusals call the file.
	Name string `json:"-"`
}

// Rule says what some clients may do.
type Rule struct {
	Clients []string `json:"clients"`
	Allow   []string `json:"allow"`
	Refuse  []string `json:"refuse"`
}

var (
	clientPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{0,64}\*?$`)
	methodPattern = regexp.MustCompile(`^(\*|[A-Z][A-Za-z0-9]*\.(\*|[A-Za-z][A-Za-z0-9]*))$`)
)

// ParseRules reads the text of a policy file called name. Its errors say where
// the fault is.
func ParseRules(name string, text []byte) (*Rules, error) {
	rules := &Rules{Name: name}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(rules)
	if err == nil && len(bytes.TrimSpace(text[d.InputOffset():])) > 0 {
		err = errors.New("there is something after the object")
	}
	if err != nil {
		return nil, fmt.Errorf("%s, line %d: %w", name, 1+bytes.Count(text[:faultAt(err, text, d)], []byte("\n")), err)
	}
	if err := rules.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return rules, nil
}

// faultAt is the offset in the text of what err complains about.
func faultAt(err error, text []byte, d *json.Decoder) int {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return int(syntax.Offset)
	case errors.As(err, &kind):
		return int(kind.Offset)
	}
	if member, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return max(0, bytes.Index(text, []byte(member)))
	}
	return int(d.InputOffset())
}

func (r *Rules) check() error {
	for i, root := range r.UploadRoots {
		if !path.IsAbs(root) || path.Clean(root) != root {
			return fmt.Errorf("upload_roots[%d] %q: give a clean absolute path, as /srv/uploads", i, root)
		}
	}
	for i, rule := range r.Rules {
		if len(rule.Clients) == 0 || len(rule.Allow)+len(rule.Refuse) == 0 {
			return fmt.Errorf("rule %d: it needs clients, and allow or refuse", i+1)
		}
		for _, c := range rule.Clients {
			if c == "" || !clientPattern.MatchString(c) {
				return fmt.Errorf("rule %d, clients: %q is no client id, prefix* or *", i+1, c)
			}
		}
		for member, methods := range map[string][]string{"allow": rule.Allow, "refuse": rule.Refuse} {
			for _, m := range methods {
				if !methodPattern.MatchString(m) {
					return fmt.Errorf("rule %d, %s: %q is no Domain.method, Domain.* or *", i+1, member, m)
				}
			}
		}
	}
	return nil
}

// ruling is what the rules say of a client's method.
type ruling uint8

const (
	unruled  ruling = iota
	excepted        // allowed by a pattern: no later rule refuses it
	granted         // allowed by name: a built-in refusal is lifted
	ruledOut        // refused
)

// of returns what the rules say, and the number of the rule that says it.
func (r *Rules) of(client, method string) (says ruling, rule int) {
	if r == nil {
		return unruled, 0
	}
	for i := range r.Rules {
		rule := &r.Rules[i]
		if !matches(rule.Clients, client) {
			continue
		}
		for _, name := range rule.Allow {
			if name == method {
				return granted, i + 1
			}
		}
		switch {
		case matches(rule.Allow, method):
			return excepted, i + 1
		case matches(rule.Refuse, method):
			return ruledOut, i + 1
		}
	}
	return unruled, 0
}

// matches reports whether one of the patterns, names or prefixes with *, fits.
func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if prefix, ok := strings.CutSuffix(p, "*"); ok && strings.HasPrefix(name, prefix) || p == name {
			return true
		}
	}
	return false
}

func (r *Rules) refusal(client, method string, rule int) string {
	return method + " is refused to client " + client + " by rule " + strconv.Itoa(rule) + " of " + r.Name
}

// holds reports whether a file may be uploaded. What is not absolute or clean
// leads nowhere that is known here.
func (r *Rules) holds(file string) bool {
	if r == nil || r.UploadRoots == nil {
		return true
	}
	if !path.IsAbs(file) || strings.Contains(file+"/", "/../") {
		return false
	}
	file = path.Clean(file)
	for _, root := range r.UploadRoots {
		if file == root || strings.HasPrefix(file, strings.TrimSuffix(root, "/")+"/") {
			return true
		}
	}
	return false
}

// setFiles gives files to a page's input, if all are where the operator lets
// clients take them from.
func (r *Router) setFiles(c *conn, s *session, m *Message, env *Envelope) {
	r.upload(c, s, m, env, object(m, env))
}

// drag brings data to a page, which may be files.
func (r *Router) drag(c *conn, s *session, m *Message, env *Envelope) {
	params := object(m, env)
	v, _ := Member(params, "data")
	r.upload(c, s, m, env, v.Of(params))
}

func (r *Router) upload(c *conn, s *session, m *Message, env *Envelope, from []byte) {
	if _, given := Member(from, "files"); given && r.rules != nil && r.rules.UploadRoots != nil {
		files, ok := stringsParam(from, "files")
		if !ok {
			r.deny(s, env, "upload", "files must be a list of paths")
			return
		}
		for i, f := range files {
			if !r.rules.holds(f) {
				r.deny(s, env, "upload", "files["+strconv.Itoa(i)+"] is not below an upload root of "+r.rules.Name+": give an absolute path below one, without ..")
				return
			}
		}
	}
	r.forward(c, s, m, env)
}
