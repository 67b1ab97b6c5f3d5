package routing

import (
	"bytes"
	"iter"
)

// Member finds the value of a member of obj, an object whose text is known to
// be sound: a command's params after ScanCommand, or what Chrome sent. The span
// counts from the start of obj. Names are compared unescaped, and of several
// members with one name the last counts, as for Chrome.
func Member(obj []byte, name string) (Span, bool) {
	var found Span
	m := members{text: obj}
	for m.next() {
		if unquoted, _ := Unquote(m.name.Of(obj)); string(unquoted) == name {
			found = m.value
		}
	}
	return found, m.closed && found.Present()
}

// members walks the members of an object without looking into their values.
type members struct {
	text   []byte
	pos    int  // where next goes on
	name   Span // of the member next found, with its quotes
	value  Span
	closed bool // the walk ended at the object's brace, and not at a fault
}

// next moves to the next member; false at the end of the object or at a fault.
func (m *members) next() bool {
	i := skipSpace(m.text, m.pos)
	first := m.pos == 0
	if first {
		if byteAt(m.text, i) != '{' {
			return false
		}
		i = skipSpace(m.text, i+1)
	}
	if byteAt(m.text, i) == '}' {
		m.pos, m.closed = i+1, true
		return false
	}
	if !first {
		if byteAt(m.text, i) != ',' {
			return false
		}
		i = skipSpace(m.text, i+1)
	}

	m.name.Start = i
	if m.name.End = skipString(m.text, i); m.name.End < 0 {
		return false
	}
	if i = skipSpace(m.text, m.name.End); byteAt(m.text, i) != ':' {
		return false
	}
	m.value.Start = skipSpace(m.text, i+1)
	if m.value.End = skipValue(m.text, m.value.Start); m.value.End < 0 {
		return false
	}
	m.pos = m.value.End
	return true
}

// elements walks the values of arr, an array whose text is known to be sound.
func elements(arr []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := skipSpace(arr, 0)
		for byteAt(arr, i) == '[' || byteAt(arr, i) == ',' {
			start := skipSpace(arr, i+1)
			end := skipValue(arr, start)
			if end < 0 || !yield(arr[start:end]) {
				return
			}
			i = skipSpace(arr, end)
		}
	}
}

// byteAt returns the byte at i, and NUL, which no JSON has between its tokens, past the end.
func byteAt(text []byte, i int) byte {
	if i < len(text) {
		return text[i]
	}
	return 0
}

// skipSpace returns where the next token begins. To Chrome \v and \f are spaces too.
func skipSpace(text []byte, i int) int {
	for i < len(text) && isSpace(text[i]) {
		i++
	}
	return i
}

func isSpace(b byte) bool { return b == ' ' || '\t' <= b && b <= '\r' }

// skipString returns where the string that begins at i ends, -1 when it does not.
func skipString(text []byte, i int) int {
	if byteAt(text, i) != '"' {
		return -1
	}
	for i++; ; i++ {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		backslashes := 0
		for text[i-1-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			return i + 1
		}
	}
}

// skipValue returns where the value that begins at i ends, -1 when it does not.
func skipValue(text []byte, i int) int {
	switch byteAt(text, i) {
	case '"':
		return skipString(text, i)
	case '{', '[':
		return skipContainer(text, i)
	}
	start := i
	for i < len(text) && !isSpace(text[i]) && text[i] != ',' && text[i] != '}' && text[i] != ']' {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

// skipContainer counts brackets of both kinds alike: sound text has them in pairs.
func skipContainer(text []byte, i int) int {
	depth := 0
	for i < len(text) {
		switch text[i] {
		case '"':
			if i = skipString(text, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}
