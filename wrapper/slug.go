// Package wrapper makes the bash scripts through which agents call browser-use
// for one store. A script decides which daemon (BU_NAME) and which client of
// the proxy (BU_CDP_WS) a call belongs to, has the store's browser started, and
// runs the real browser-use; no call reaches another browser.
//
// Render (script.go, script.sh.tmpl) makes the text, FindReal finds the
// program it runs, Bin keeps the scripts in their directory.
package wrapper

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// maxSlug leaves room for the longest tail of a session name, -<8 hex>-w<NN>,
// within its 64 characters.
const maxSlug = 64 - len("-00000000-w00")

// sessionTail is what a session name has after its slug. A slug that ends like
// this would be taken for another store's session.
var sessionTail = regexp.MustCompile(`-(aux|[0-9a-f]{8}|w[0-9]+)$`)

// Slug is the safe form of a store's name, for paths and session names. A name
// that has no letter or digit of ASCII is called after the store's id; such a
// slug is itself a name for that id.
func Slug(name, id string) (string, error) {
	slug, fromID := clean(name), ""
	if tail := clean(id[:min(8, len(id))]); tail != "" {
		fromID = "store-" + tail
	}
	switch {
	case slug == "" && id == "":
		return "", fmt.Errorf("store name %q has no letter or digit from a-z, 0-9: give the store an id with --id", name)
	case slug == "" && fromID == "":
		return "", fmt.Errorf("store id %q has no letter or digit among its first 8 characters", id)
	case slug == "", slug == fromID:
		return fromID, nil
	case slug == "web":
		return "", errors.New("store name web is reserved for the browser without a store")
	case sessionTail.MatchString(slug):
		return "", fmt.Errorf("store name %q becomes %s, whose ending %s is that of a session: choose another name",
			name, slug, sessionTail.FindString(slug))
	case len(slug) > maxSlug:
		return "", fmt.Errorf("store name %q is too long: %d characters as %s, at most %d", name, len(slug), slug, maxSlug)
	}
	return slug, nil
}

// clean keeps a-z and 0-9; every run of anything else becomes one dash.
func clean(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			b.WriteRune(r)
		case !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-")
}
