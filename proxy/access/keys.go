// Package access says who may come in: by which credentials, under which
// names, from which web pages, how many at once that only wait, and with which
// certificate they are met. It opens no connection and starts nothing.
package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"
)

// Keys are the secrets of one store. An empty one opens nothing.
type Keys struct {
	Store string // the store token, as it stands in its file
	Admin string // the admin token, which opens what the store token opens, too
}

// Level is what a credential opens.
type Level uint8

// Each level but Wrong opens what those below it open.
const (
	Wrong  Level = iota // a credential that is none of ours
	Nobody              // no credential at all
	Client              // one client id: a capability
	Store               // the clients of the store, its root and its sessions
	Admin               // everything
)

// Of says what the header of a request opens: Authorization with a token as
// Bearer, or as the password of Basic, whoever the user. Any other use of it
// is Wrong.
func (k Keys) Of(h http.Header) Level {
	values := h["Authorization"]
	if len(values) == 0 {
		return Nobody
	}
	token, ok := tokenOf(values[0])
	if !ok || len(values) > 1 {
		return Wrong
	}
	// Both are compared, whatever comes of the first.
	admin, store := same(token, k.Admin), same(token, k.Store)
	switch {
	case admin:
		return Admin
	case store:
		return Store
	}
	return Wrong
}

func tokenOf(authorization string) (token string, ok bool) {
	scheme, value, _ := strings.Cut(authorization, " ")
	value = strings.TrimSpace(value)
	switch strings.ToLower(scheme) {
	case "bearer":
		return value, true
	case "basic":
		plain, err := base64.StdEncoding.DecodeString(value)
		_, password, ok := strings.Cut(string(plain), ":")
		return password, ok && err == nil
	}
	return "", false
}

// same compares in a time that depends on neither of the two. Nothing is the
// same as an empty secret.
func same(given, secret string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && secret != ""
}

// Opens reports whether capability is the one of a client id. digest is as in
// [Capability].
func (k Keys) Opens(capability, client string, digest []byte) bool {
	if k.Store == "" {
		return false
	}
	return same(capability, Capability([]byte(k.Store), client, digest))
}

// Capability opens one client id and nothing else: 192 bits in 32 characters
// that may stand in a path, the same whenever it is asked for. digest is the
// SHA-256 of a lease's close token; without a lease it is empty.
func Capability(secret []byte, client string, digest []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("connect\x00" + client + "\x00"))
	mac.Write(digest)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))[:capabilitySize]
}

const capabilitySize = 32

// Path is where a client id is reached with its capability: "/t/<cap>/client-<id>".
func (k Keys) Path(client string, digest []byte) string {
	return prefix + Capability([]byte(k.Store), client, digest) + "/client-" + client
}

const prefix = "/t/"

var inAddress = regexp.MustCompile(`/t/[A-Za-z0-9_-]{32}/client-`)

// WithoutCapability takes the capability out of an address of a client.
func WithoutCapability(address string) string {
	return inAddress.ReplaceAllString(address, "/client-")
}

// Split takes the capability off a path. ok says whether the path is one for a
// capability at all, which may then be empty or wrong; rest begins with "/"
// unless it is empty.
func Split(path string) (capability, rest string, ok bool) {
	tail, ok := strings.CutPrefix(path, prefix)
	if !ok {
		return "", path, path == "/t"
	}
	if i := strings.IndexByte(tail, '/'); i >= 0 {
		return tail[:i], tail[i:], true
	}
	return tail, "", true
}
