package lease

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"time"
)

// Request is the body of a create.
type Request struct {
	ID     string // chosen by the caller: 16 to 128 of A-Z a-z 0-9 _ -
	Token  Token  // closes it: 32 to 256 visible ASCII characters
	Store  string // empty: this one
	Client Client
	Wait   time.Duration // for it to be ready
}

// Client is who a lease is for.
type Client struct {
	Name   string `json:"name"`              // client id: 1 to 64 of A-Z a-z 0-9 _ -
	TabCap *int   `json:"tab_cap,omitempty"` // tabs it may have, 0: any number; nil: as all
	Grace  *int   `json:"grace_s,omitempty"` // seconds its tabs outlive its connection by; nil: as all
}

// CloseRequest is the body of a close, and the id of its path.
type CloseRequest struct {
	ID     string
	Token  Token
	Reason string
	Wait   time.Duration
}

// Token is a close token. No way of printing shows it.
type Token struct{ text string }

// NewToken is a token of that text.
func NewToken(text string) Token { return Token{text} }

const hidden = "[token]"

func (Token) String() string               { return hidden }
func (Token) GoString() string             { return hidden }
func (Token) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// fingerprint tells whether two requests ask for the same: how long to wait
// makes no difference.
func (q Request) fingerprint() string {
	text, _ := json.Marshal(q.Client) // strings and numbers; the store is ours
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

var (
	idForm     = regexp.MustCompile(`^[A-Za-z0-9_-]{16,128}$`)
	tokenForm  = regexp.MustCompile(`^[!-~]{32,256}$`)
	clientForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	memberForm = regexp.MustCompile(`^[a-z_]{1,24}$`) // of a name that we repeat
)

func validID(id string) bool { return idForm.MatchString(id) }

const (
	createWait = 60 * time.Second
	closeWait  = 30 * time.Second
	maxWait    = 600
	maxTabs    = 10_000
	maxGrace   = 7 * 24 * 60 * 60
)

// parseCreate reads a create. bad names the fields that cannot be taken.
func parseCreate(body []byte) (q Request, bad []string) {
	var f fields
	wait, start, token := int(createWait/time.Second), "if_needed", ""
	var client, browser json.RawMessage
	f.read("", body, map[string]any{
		"session_id": &q.ID, "close_token": &token, "store": &q.Store, "client": &client, "browser": &browser, "wait_s": &wait,
	})
	if client != nil {
		f.read("client.", client, map[string]any{"name": &q.Client.Name, "tab_cap": &q.Client.TabCap, "grace_s": &q.Client.Grace})
	}
	if browser != nil {
		f.read("browser.", browser, map[string]any{"start": &start})
	}
	f.want("session_id", validID(q.ID))
	f.want("close_token", tokenForm.MatchString(token))
	f.want("client.name", clientForm.MatchString(q.Client.Name))
	f.want("client.tab_cap", inRange(q.Client.TabCap, maxTabs))
	f.want("client.grace_s", inRange(q.Client.Grace, maxGrace))
	f.want("browser.start", start == "if_needed")
	f.want("wait_s", inRange(&wait, maxWait))
	q.Token, q.Wait = Token{token}, time.Duration(wait)*time.Second
	return q, f.bad
}

// parseClose reads a close. An operator may leave the token out.
func parseClose(id string, body []byte, operator bool) (q CloseRequest, bad []string) {
	var f fields
	wait, token := int(closeWait/time.Second), ""
	q.Reason = Reasons[0]
	f.read("", body, map[string]any{"close_token": &token, "reason": &q.Reason, "wait_s": &wait})
	f.want("session_id", validID(id))
	f.want("close_token", tokenForm.MatchString(token) || operator && token == "")
	f.want("reason", validReason(q.Reason))
	f.want("wait_s", inRange(&wait, maxWait))
	q.ID, q.Token, q.Wait = id, Token{token}, time.Duration(wait)*time.Second
	return q, f.bad
}

func inRange(n *int, most int) bool { return n == nil || *n >= 0 && *n <= most }

// fields collects the names of the fields that cannot be taken.
type fields struct{ bad []string }

func (f *fields) want(name string, ok bool) {
	if !ok && !slices.Contains(f.bad, name) {
		f.bad = append(f.bad, name)
	}
}

// read takes an object apart, more strictly than encoding/json does: names
// count as they are written, once, and null is no value. What is wrong is
// named without its value; so is a name that could be one.
func (f *fields) read(prefix string, text []byte, into map[string]any) {
	whole := prefix[:max(0, len(prefix)-1)]
	if whole == "" {
		whole = "body"
	}
	members, ok := members(text)
	f.want(whole, ok)
	seen := map[string]bool{}
	for _, m := range members {
		to, known := into[m.name]
		switch {
		case !known && memberForm.MatchString(m.name):
			f.want(prefix+m.name+" (unknown)", false)
		case !known:
			f.want(whole+" (unknown field)", false)
		case seen[m.name] || string(m.value) == "null" || json.Unmarshal(m.value, to) != nil:
			f.want(prefix+m.name, false)
		}
		seen[m.name] = true
	}
}
