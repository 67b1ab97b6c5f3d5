package download

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestSanitise(t *testing.T) {
	family := "👨‍👩‍👧‍👦" // 25 bytes, joined by ZWJ
	for name, want := range map[string]string{
		"report.csv":                            "report.csv",
		"":                                      "download",
		"  \n ":                                 "download",
		" a b.txt ":                             "a b.txt",
		".bashrc":                               "_bashrc",
		"..":                                    "_.",
		"../../etc/passwd":                      "_._.._etc_passwd",
		"/etc/passwd":                           "_etc_passwd",
		`C:\dir\x.txt`:                          "C:_dir_x.txt",
		"a\x00b\nc\x7fd\u0085e.txt":             "a_b_c_d_e.txt",
		"a\u2028b\u2029c":                       "a_b_c",
		"exe.\u202egpj":                         "exe._gpj",
		"\xff\xfea\xc3.txt":                     "_a_.txt",
		"報告書 (最終).xlsx":                         "報告書 (最終).xlsx",
		family + ".png":                         family + ".png",
		"_prev":                                 "_prev",
		".staging":                              "_staging",
		journalName:                             "_arrived.jsonl",
		strings.Repeat("x", 300) + ".csv":       strings.Repeat("x", 251) + ".csv",
		strings.Repeat("x", 300) + ".tar.gz":    strings.Repeat("x", 248) + ".tar.gz",
		strings.Repeat("報", 100) + ".csv":       strings.Repeat("報", 83) + ".csv", // 249+4 bytes; one more would be 256
		strings.Repeat(family, 12):              strings.Repeat(family, 10) + "👨", // 250+4 bytes, as the joiner after it does not fit
		"a." + strings.Repeat("y", 300):         "a." + strings.Repeat("y", 253),
		strings.Repeat("z", 254) + " end of it": strings.Repeat("z", 254),
	} {
		if got := sanitise(name); got != want {
			t.Errorf("sanitise(%q):\n got %q\nwant %q", name, got, want)
		}
	}
}

// As Chrome's InsertBeforeExtension.
func TestNumbered(t *testing.T) {
	long := strings.Repeat("x", 251)
	for _, tc := range []struct {
		name string
		n    int
		want string
	}{
		{"report.csv", 0, "report.csv"},
		{"report.csv", 1, "report (1).csv"},
		{"report (1).csv", 2, "report (1) (2).csv"},
		{"report", 12, "report (12)"},
		{"a.tar.gz", 1, "a (1).tar.gz"},
		{"a.TAR.GZ", 1, "a (1).TAR.GZ"},
		{"a.json.zst", 1, "a (1).json.zst"},
		{"a.user.js", 1, "a (1).user.js"},
		{"a.min.js", 1, "a.min (1).js"},
		{"v1.2.gz", 1, "v1 (1).2.gz"},
		{"a..gz", 1, "a. (1).gz"},
		{"a.large.gz", 1, "a.large (1).gz"}, // five letters are too many
		{"tar.gz", 1, "tar (1).gz"},
		{"a.", 1, "a (1)."},
		{long + ".csv", 1, long[:247] + " (1).csv"},
		{long + ".csv", 1000, long[:244] + " (1000).csv"},
	} {
		if got := numbered(tc.name, tc.n); got != tc.want {
			t.Errorf("numbered(%q, %d): got %q, want %q", tc.name, tc.n, got, tc.want)
		}
	}
}

func FuzzSanitise(f *testing.F) {
	for _, name := range []string{"", ".", "..", "a/b", "\xff", ".tar.gz", "a\u202eb", "x.y z", strings.Repeat("é.", 130), " . "} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		clean := sanitise(name)
		if again := sanitise(clean); again != clean {
			t.Errorf("sanitise(%q) is %q, and of that %q", name, clean, again)
		}
		seen := map[string]bool{}
		for n := range 12 {
			got := numbered(clean, n)
			switch {
			case seen[got]:
				t.Errorf("%q comes twice", got)
			case got == "" || len(got) > maxName || !utf8.ValidString(got) || got[0] == '.':
				t.Errorf("numbered(%q, %d): %q, %d bytes", clean, n, got, len(got))
			case filepath.Base(got) != got || strings.ContainsFunc(got, func(r rune) bool { return r == '\\' || unicode.IsControl(r) }):
				t.Errorf("numbered(%q, %d): %q is no plain name", clean, n, got)
			}
			seen[got] = true
		}
	})
}
