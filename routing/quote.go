package routing

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote returns what a JSON string stands for; nil and false when raw, a JSON
// value, is no string. Without an escape the result aliases raw. As Chrome
// does, it knows \v, and makes U+FFFD of half a surrogate pair.
func Unquote(raw []byte) ([]byte, bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return nil, false
	}
	raw = raw[1 : len(raw)-1]
	n := bytes.IndexByte(raw, '\\')
	if n < 0 {
		return raw, true
	}
	out := make([]byte, 0, len(raw))
	for ; n >= 0; n = bytes.IndexByte(raw, '\\') {
		out = append(out, raw[:n]...)
		raw = raw[n:]
		size := escapeLen(raw)
		if size == 0 || raw[1] == 'x' {
			return nil, false
		}
		if raw[1] == 'u' {
			r := hexRune(raw)
			if rest := raw[size:]; escapeLen(rest) == size {
				if pair := utf16.DecodeRune(r, hexRune(rest)); pair != utf8.RuneError {
					r, size = pair, 2*size
				}
			}
			out = utf8.AppendRune(out, r) // U+FFFD of a lone surrogate
		} else {
			out = append(out, unescape(raw[1]))
		}
		raw = raw[size:]
	}
	return append(out, raw...), true
}

// AppendQuoted appends text to dst as a JSON string. It escapes what JSON
// demands and nothing more, as Chrome does where it quotes one message inside another.
func AppendQuoted(dst, text []byte) []byte {
	dst = append(dst, '"')
	plain := 0 // where the bytes not appended yet begin
	for i, b := range text {
		if b >= ' ' && b != '"' && b != '\\' {
			continue
		}
		dst = append(dst, text[plain:i]...)
		plain = i + 1
		switch b {
		case '"', '\\':
			dst = append(dst, '\\', b)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', hex[b>>4], hex[b&0xf])
		}
	}
	dst = append(dst, text[plain:]...)
	return append(dst, '"')
}

// escapeLen returns the length of the escape that text begins with, 0 when it
// is none. \x41 counts: Chrome reads it to its end, and refuses it only then.
func escapeLen(text []byte) int {
	if len(text) < 2 || text[0] != '\\' {
		return 0
	}
	digits := 0
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't', 'v':
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	default:
		return 0
	}
	if len(text) < 2+digits {
		return 0
	}
	for _, b := range text[2 : 2+digits] {
		if !('0' <= b && b <= '9' || 'a' <= b && b <= 'f' || 'A' <= b && b <= 'F') {
			return 0
		}
	}
	return 2 + digits
}

// unescape returns what the letter of a two-byte escape stands for.
func unescape(letter byte) byte {
	switch letter {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'v':
		return '\v'
	}
	return letter // " \ /
}

// hexRune reads the four digits of a sound \uXXXX.
func hexRune(escape []byte) rune {
	n, _ := strconv.ParseUint(string(escape[2:6]), 16, 16)
	return rune(n)
}
