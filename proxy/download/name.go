package download

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is what file systems allow, in bytes.
const maxName = 255

// sanitise makes a name that a web page proposed fit for a file in a directory
// of ours: one component, visible, not hidden, at most maxName bytes. What is
// not allowed becomes "_", as in Chrome.
func sanitise(name string) string {
	name = strings.TrimSpace(strings.ToValidUTF8(name, "_"))
	name = strings.Map(func(r rune) rune {
		// Bidi controls make "gpj.exe" out of "exe.jpg". The other format
		// characters stay: emoji and several scripts need them.
		if r == '/' || r == '\\' || unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control) {
			return '_'
		}
		return r
	}, name)
	if name == "" {
		return "download"
	}
	if name[0] == '.' {
		name = "_" + name[1:]
	}
	return numbered(name, 0)
}

// numbered is the nth name to try for a file: name itself, then "name (1).ext"
// as Chrome does it. It is at most maxName bytes: the part before the
// extension gives way, at a rune.
func numbered(name string, n int) string {
	number := ""
	if n > 0 {
		number = fmt.Sprintf(" (%d)", n)
	}
	room := maxName - len(number)
	stem, ext := split(name)
	if len(ext) > room/2 { // a sentence after a dot
		stem, ext = name, ""
	}
	return cut(stem, room-len(ext)) + number + ext
}

func cut(s string, size int) string {
	if len(s) <= size {
		return s
	}
	for !utf8.RuneStart(s[size]) {
		size--
	}
	return strings.TrimRightFunc(s[:size], unicode.IsSpace)
}

// packed are the endings that belong to the one before them: "tar.gz".
// The list and the rule are those of Chromium's base::FilePath::Extension.
var packed = map[string]bool{
	".bz": true, ".bz2": true, ".gz": true, ".lz": true, ".lzma": true,
	".lzo": true, ".xz": true, ".z": true, ".zst": true,
}

// split cuts a name before its extension, which may be a double one.
func split(name string) (stem, ext string) {
	last := strings.LastIndexByte(name, '.')
	if last < 0 {
		return name, ""
	}
	before := strings.LastIndexByte(name[:last], '.')
	between := last - before - 1
	if before > 0 && (packed[strings.ToLower(name[last:])] && 1 <= between && between <= 4 ||
		strings.EqualFold(name[before:], ".user.js")) {
		last = before
	}
	return name[:last], name[last:]
}
