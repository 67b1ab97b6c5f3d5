package proxytest

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"
)

// Command is one command as the fake browser understood it.
type Command struct {
	ID      int32
	Method  string
	Params  json.RawMessage // nil when absent
	Session string          // "" for the connection itself

	loseReply bool
}

// Param is the string at params.name, "" when there is none.
func (c Command) Param(name string) string { return member(c.Params, name) }

// Into decodes the params into v.
func (c Command) Into(v any) error {
	if c.Params == nil {
		return nil
	}
	return json.Unmarshal(c.Params, v)
}

// A refusal is Chrome's answer to a text that is no usable command.
type refusal struct {
	code  int
	text  string
	hasID bool
	id    int32
}

// maxDepth is how deep Chrome's parser lets objects and arrays nest.
const maxDepth = 301

// parseCommand reads one text as Chrome does: member by member, in the order
// of the text, and the first thing wrong decides. The command's params alias
// the text.
func parseCommand(text []byte) (cmd Command, refused *refusal) {
	if why := invalid(text); why != "" {
		return cmd, &refusal{code: -32700, text: why}
	}
	if text[skipSpace(text, 0)] != '{' {
		return cmd, &refusal{code: -32600, text: "Message must be an object"}
	}
	var hasID bool
	refuse := func(code int, why string) {
		if refused == nil {
			refused = &refusal{code: code, text: why, hasID: hasID, id: cmd.ID}
		}
	}
	var seen [4]bool
	once := func(i int) bool {
		if seen[i] {
			refuse(-32700, "CBOR: duplicate map key at position 0")
		}
		seen[i] = true
		return refused == nil
	}
	scan(text, func(key, value []byte) {
		if bytes.IndexByte(key, '\\') >= 0 {
			key = []byte(unquote([]byte(`"` + string(key) + `"`)))
		}
		switch string(key) {
		case "id":
			if !once(0) {
				return
			}
			n, err := strconv.ParseFloat(string(value), 64)
			if err != nil || n != math.Trunc(n) || n < math.MinInt32 || n > math.MaxInt32 {
				refuse(-32600, "Message must have integer 'id' property")
				return
			}
			cmd.ID, hasID = int32(n), true
		case "method":
			if !once(1) {
				return
			}
			if cmd.Method = unquote(value); cmd.Method == "" || !ascii(cmd.Method) {
				refuse(-32600, "Message must have string 'method' property")
			}
		case "params":
			if !once(2) {
				return
			}
			switch value[0] {
			case '{':
				cmd.Params = value
			case '[', 'n':
			default:
				refuse(-32600, "Message may have object 'params' property")
			}
		case "sessionId":
			if !once(3) {
				return
			}
			if value[0] != '"' {
				refuse(-32600, "Message may have string 'sessionId' property")
			}
			cmd.Session = unquote(value)
		default:
			refuse(-32600, "Message has property other than 'id', 'method', 'sessionId', 'params'")
		}
	})
	switch {
	case !hasID:
		refuse(-32600, "Message must have integer 'id' property")
	case cmd.Method == "":
		refuse(-32600, "Message must have string 'method' property")
	}
	return cmd, refused
}

// invalid says in Chrome's words why text is no JSON; "" when it is. Chrome
// gives the true position, has a few more words, and lets control characters
// stand in strings.
func invalid(text []byte) string {
	switch {
	case skipSpace(text, 0) == len(text):
		return "JSON: no input at position 0"
	case !utf8.Valid(text):
		return "JSON: invalid string at position 0"
	case tooDeep(text):
		return "JSON: stack limit exceeded at position 0"
	case json.Valid(text):
		return ""
	}
	var first json.RawMessage
	if json.NewDecoder(bytes.NewReader(text)).Decode(&first) == nil {
		return "JSON: unprocessed input remains at position 0"
	}
	return "JSON: invalid token at position 0"
}

func tooDeep(text []byte) bool {
	if bytes.Count(text, []byte{'['})+bytes.Count(text, []byte{'{'}) <= maxDepth {
		return false
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			end := skipString(text, i)
			if end < 0 {
				return false
			}
			i = end - 1
		case '{', '[':
			if depth++; depth > maxDepth {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// appendQuoted appends s as a JSON string the way Chrome writes one: pure
// ASCII, everything else as \u escapes.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r >= ' ' && r < 0x7f:
			dst = append(dst, byte(r))
		case r > 0xffff:
			r -= 0x10000
			dst = appendEscape(dst, 0xd800+r>>10)
			dst = appendEscape(dst, 0xdc00+r&0x3ff)
		default:
			dst = appendEscape(dst, r)
		}
	}
	return append(dst, '"')
}

func appendEscape(dst []byte, unit rune) []byte {
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', hex[unit>>12&15], hex[unit>>8&15], hex[unit>>4&15], hex[unit&15])
}

func quote(s string) string { return string(appendQuoted(nil, s)) }
