package routing

import (
	"bytes"
	"slices"
)

// schemes are those whose addresses show files of the browser's machine or
// pages of the browser's own. A client's command loads one only when the
// operator opened its scheme; that a web page loads none, Chrome itself sees to.
var schemes = []string{"file", "chrome", "devtools", "view-source", "chrome-untrusted", "chrome-search", "chrome-native"}

// Schemes lists what Config.AllowSchemes may open.
func Schemes() []string { return slices.Clone(schemes) }

// wrappers are schemes with an address in them, which counts as well.
var wrappers = []string{"view-source", "filesystem", "blob"}

// newTabPages are the addresses of the New Tab page, which is open to all. No
// other spelling is: in chrome://newtab%2f@version/ it is a user's name.
var newTabPages = []string{"chrome://newtab", "chrome://new-tab-page", "chrome://new-tab-page-third-party"}

// closedScheme returns the scheme for which an address may not be loaded, ""
// when it may. testdata/schemes.txt has what Chrome makes of each form.
func closedScheme(url []byte, open []string) string {
	for {
		scheme, rest := schemeOf(url)
		switch {
		case slices.Contains(schemes, scheme) && !slices.Contains(open, scheme) && !isNewTabPage(url):
			return scheme
		case !slices.Contains(wrappers, scheme):
			return ""
		}
		url = rest
	}
}

func isNewTabPage(url []byte) bool {
	url = bytes.TrimSuffix(bytes.Trim(url, " "), []byte("/"))
	return slices.ContainsFunc(newTabPages, func(page string) bool { return len(url) == len(page) && bytes.EqualFold(url, []byte(page)) })
}

// schemeOf returns the scheme of an address as Chrome reads it, and what
// follows its colon: control characters and spaces before it do not count, nor
// does a tab or line break in it, nor its case. It is "" for what has none, and
// for one that is longer than any of ours. To a Chrome on Windows C:\ and \\
// begin a file.
func schemeOf(url []byte) (scheme string, rest []byte) {
	for len(url) > 0 && url[0] <= ' ' {
		url = url[1:]
	}
	var word [len("chrome-untrusted")]byte
	n := 0
	for i, b := range url {
		switch {
		case b == '\t' || b == '\n' || b == '\r':
			continue
		case n == 1 && (b == ':' || b == '|'), n == 1 && b == '\\' && word[0] == '\\':
			return "file", url[i+1:]
		case b == ':':
			return known(word[:n]), url[i+1:]
		case n == len(word):
			return "", nil
		case 'A' <= b && b <= 'Z':
			b += 'a' - 'A'
		case 'a' <= b && b <= 'z', b == '-', b == '\\' && n == 0:
		default: // no scheme of ours has it
			return "", nil
		}
		word[n] = b
		n++
	}
	return "", nil
}

// known is a scheme that means something here, without a copy of its name.
func known(word []byte) string {
	for _, list := range [][]string{schemes, wrappers} {
		for _, s := range list {
			if string(word) == s {
				return s
			}
		}
	}
	return ""
}

// closes refuses a command whose url may not be loaded.
func (r *Router) closes(s *session, m *Message, env *Envelope) bool {
	params := object(m, env)
	v, _ := Member(params, "url")
	url, _ := Unquote(v.Of(params)) // what is no string Chrome refuses
	scheme := closedScheme(url, r.openSchemes)
	if scheme == "" {
		return false
	}
	r.deny(s, env, "scheme", closedText(scheme))
	return true
}

func closedText(scheme string) string {
	return scheme + ": addresses are refused: start cdpmux with --allow-scheme " + scheme + " to open them"
}

// strayed closes a page that got from the New Tab page to another one of
// Chrome's own: Chrome lets a script there go to any of them.
// within has the frame that it shows.
func (r *Router) strayed(t *target, within []byte) {
	v, _ := Member(within, "frame")
	frame := v.Of(within)
	if _, child := Member(frame, "parentId"); child {
		return
	}
	url := []byte(stringParam(frame, "url"))
	if scheme := closedScheme(url, r.openSchemes); t.newTab && scheme != "" {
		r.note("client " + ShortID(t.owner.id) + " got from the New Tab page to a " + scheme + ": address: closing " + t.id)
		r.closeTarget(t)
	}
	t.newTab = t.newTab || isNewTabPage(url)
}
