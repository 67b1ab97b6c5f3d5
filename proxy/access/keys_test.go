package access

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
)

func basic(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }

func TestKeysOf(t *testing.T) {
	keys := Keys{Store: "store-token", Admin: "admin-token"}
	for value, want := range map[string]Level{
		"Bearer store-token":                     Store,
		"bearer store-token":                     Store,
		"Bearer  store-token ":                   Store,
		"Bearer admin-token":                     Admin,
		basic("cdpmux:store-token"):              Store,
		basic(":store-token"):                    Store,
		basic("anybody:admin-token"):             Admin,
		"BASIC " + basic(":x")[6:]:               Wrong,
		"":                                       Wrong,
		"Bearer":                                 Wrong,
		"Bearer ":                                Wrong,
		"Bearer store-toke":                      Wrong,
		"Bearer store-tokenn":                    Wrong,
		"Bearer STORE-TOKEN":                     Wrong,
		"store-token":                            Wrong,
		"Basic store-token":                      Wrong,
		"Basic !":                                Wrong,
		basic("store-token"):                     Wrong,
		basic("store-token:"):                    Wrong,
		basic("cdpmux:x:store-token"):            Wrong,
		"Digest store-token":                     Wrong,
		"Bearer store-token, Bearer store-token": Wrong,
	} {
		if got := keys.Of(http.Header{"Authorization": {value}}); got != want {
			t.Errorf("%q opens %d, want %d", value, got, want)
		}
	}
	if got := keys.Of(http.Header{"X": {"Bearer store-token"}}); got != Nobody {
		t.Errorf("no credential: %d", got)
	}
	if got := keys.Of(http.Header{"Authorization": {"Bearer store-token", "Bearer store-token"}}); got != Wrong {
		t.Errorf("two credentials: %d", got)
	}
	for _, value := range []string{"Bearer", "Bearer ", basic(":"), basic("cdpmux:"), ""} {
		if got := (Keys{}).Of(http.Header{"Authorization": {value}}); got != Wrong {
			t.Errorf("%q opens what has no token: %d", value, got)
		}
	}
}

const (
	plainCapability  = "OancbJKBgrLBaBAPWqCp92QEHzqrx35d"
	leasedCapability = "3shVIqR9wbu_ypmC9y-4KOIpu47bRum6"
)

func TestCapability(t *testing.T) {
	// From an implementation of its own: python3 -c 'import hmac, hashlib, base64; print(base64.urlsafe_b64encode(
	// hmac.new(b"secret", b"connect\0alice\0" + DIGEST, hashlib.sha256).digest())[:32])'
	digest := []byte(strings.Repeat("\x07", 32))
	if got := Capability([]byte("secret"), "alice", nil); got != plainCapability {
		t.Errorf("capability %s, want %s", got, plainCapability)
	}
	if got := Capability([]byte("secret"), "alice", digest); got != leasedCapability {
		t.Errorf("capability of a lease %s, want %s", got, leasedCapability)
	}
	keys := Keys{Store: "secret", Admin: "other"}
	path := keys.Path("alice", nil)
	if want := "/t/" + plainCapability + "/client-alice"; path != want {
		t.Errorf("path %s, want %s", path, want)
	}
	for _, tc := range []struct {
		keys       Keys
		capability string
		client     string
		digest     []byte
		opens      bool
	}{
		{keys, plainCapability, "alice", nil, true},
		{keys, leasedCapability, "alice", digest, true},
		{keys, plainCapability, "alice", digest, false}, // a lease has a capability of its own
		{keys, leasedCapability, "alice", nil, false},
		{keys, plainCapability, "bob", nil, false},
		{keys, plainCapability, "Alice", nil, false},
		{keys, plainCapability[1:], "alice", nil, false},
		{keys, plainCapability + "A", "alice", nil, false},
		{keys, "", "alice", nil, false},
		{keys, "secret", "alice", nil, false},
		{Keys{Store: "another"}, plainCapability, "alice", nil, false},
		{Keys{Admin: "secret"}, plainCapability, "alice", nil, false},
		{Keys{}, Capability(nil, "alice", nil), "alice", nil, false},
	} {
		if got := tc.keys.Opens(tc.capability, tc.client, tc.digest); got != tc.opens {
			t.Errorf("%s opens %s: %v", tc.capability, tc.client, got)
		}
	}
}

func TestSplit(t *testing.T) {
	for path, want := range map[string][2]string{
		"/t/abc/client-a":           {"abc", "/client-a"},
		"/t/abc/client-a/json/list": {"abc", "/client-a/json/list"},
		"/t/abc/":                   {"abc", "/"},
		"/t/abc":                    {"abc", ""},
		"/t/":                       {"", ""},
		"/t":                        {"", "/t"},
		"/t//client-a":              {"", "/client-a"},
	} {
		if capability, rest, ok := Split(path); !ok || capability != want[0] || rest != want[1] {
			t.Errorf("%s: %q, %q, %v", path, capability, rest, ok)
		}
	}
	for _, path := range []string{"/", "", "/tt/abc/client-a", "/T/abc/client-a", "t/abc", "//t/abc/client-a", "/client-a/t/abc", "/%74/abc/client-a"} {
		if _, rest, ok := Split(path); ok || rest != path {
			t.Errorf("%s: %q, %v", path, rest, ok)
		}
	}
}
