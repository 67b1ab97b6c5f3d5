package routing_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"cdpmux/routing"
)

func TestUnquote(t *testing.T) {
	for raw, want := range map[string]string{
		`""`:                    "",
		`"a b"`:                 "a b",
		`"é"`:                   "é",
		`"\"\\\/\b\f\n\r\t\v"`:  "\"\\/\b\f\n\r\t\v",
		`"a\u0041\u00e9b"`:      "aAéb",
		`"\ud83d\ude00\uD83D"`:  "😀\ufffd",
		`"\ud83d\ud83d\ude00"`:  "\ufffd😀",
		`"\ude00\ud83d"`:        "\ufffd\ufffd",
		`"\ud83dx\ude00"`:       "\ufffdx\ufffd",
		`"\ud83d\n"`:            "\ufffd\n",
		"\"\x00\n\"":            "\x00\n",
		`"{\"a\":\"\\u0041\"}"`: `{"a":"\u0041"}`,
	} {
		if got, ok := routing.Unquote([]byte(raw)); !ok || string(got) != want {
			t.Errorf("Unquote(%s) = %q, %v, want %q", raw, got, ok, want)
		}
	}
	for _, raw := range []string{``, `"`, `7`, `null`, `{"a":"b"}`, `["a"]`, `"\x41"`, `"\q"`, `"\u00"`, `"\"`} {
		if got, ok := routing.Unquote([]byte(raw)); ok || got != nil {
			t.Errorf("Unquote(%s) = %q, want nothing", raw, got)
		}
	}
}

func TestUnquoteAliasesPlainStrings(t *testing.T) {
	raw := []byte(`"abc"`)
	got, _ := routing.Unquote(raw)
	if &got[0] != &raw[1] {
		t.Error("a plain string was copied")
	}
}

func TestAppendQuoted(t *testing.T) {
	for text, want := range map[string]string{
		``:                              `x""`,
		`{"a":"\ud800\n"}`:              `x"{\"a\":\"\\ud800\\n\"}"`,
		"\x00\b\t\n\v\f\r\x1f \x7f/é<&": `x"\u0000\b\t\n\u000b\f\r\u001f ` + "\x7f" + `/é<&"`,
	} {
		if got := routing.AppendQuoted([]byte("x"), []byte(text)); string(got) != want {
			t.Errorf("AppendQuoted(%q) = %s, want %s", text, got, want)
		}
	}
}

// What AppendQuoted writes is JSON, and Unquote gives the text back.
func FuzzQuote(f *testing.F) {
	for _, line := range traffic(f, "browser.txt") {
		f.Add(string(line))
	}
	f.Fuzz(func(t *testing.T, text string) {
		quoted := routing.AppendQuoted(nil, []byte(text))
		if got, ok := routing.Unquote(quoted); !ok || string(got) != text {
			t.Errorf("%q became %s and then %q", text, quoted, got)
		}
		if !utf8.ValidString(text) {
			return
		}
		var got string
		if err := json.Unmarshal(quoted, &got); err != nil || got != text {
			t.Errorf("encoding/json reads %q, %v", got, err)
		}
	})
}
