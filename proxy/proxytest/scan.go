package proxytest

import "bytes"

// scan calls member for each top-level member of a JSON object, in the order
// of the text, with the key between its quotes as written and the raw value.
// It reports whether text is one object and nothing else; it looks into values
// only as far as it must to find their ends.
func scan(text []byte, member func(key, value []byte)) bool {
	i := skipSpace(text, 0)
	if i == len(text) || text[i] != '{' {
		return false
	}
	i = skipSpace(text, i+1)
	if i < len(text) && text[i] == '}' {
		return skipSpace(text, i+1) == len(text)
	}
	for i < len(text) && text[i] == '"' {
		end := skipString(text, i)
		if end < 0 {
			return false
		}
		key := text[i+1 : end-1]
		i = skipSpace(text, end)
		if i == len(text) || text[i] != ':' {
			return false
		}
		i = skipSpace(text, i+1)
		end = skipValue(text, i)
		if end < 0 {
			return false
		}
		member(key, text[i:end])
		i = skipSpace(text, end)
		if i == len(text) {
			return false
		}
		if text[i] == '}' {
			return skipSpace(text, i+1) == len(text)
		}
		if text[i] != ',' {
			return false
		}
		i = skipSpace(text, i+1)
	}
	return false
}

func skipSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index behind the string that starts at i, or -1.
func skipString(text []byte, i int) int {
	for i++; ; i++ {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		back := i
		for text[back-1] == '\\' {
			back--
		}
		if (i-back)%2 == 0 {
			return i + 1
		}
	}
}

// skipValue returns the index behind the value that starts at i, or -1.
func skipValue(text []byte, i int) int {
	depth := 0
	for i < len(text) {
		switch text[i] {
		case '"':
			if i = skipString(text, i); i < 0 {
				return -1
			}
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return -1
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return -1
			}
		default:
			if depth == 0 {
				return skipScalar(text, i)
			}
		}
		i++
	}
	return -1
}

// skipScalar returns the index behind a number or a literal.
func skipScalar(text []byte, i int) int {
	if n := bytes.IndexAny(text[i:], ",}] \t\n\r"); n >= 0 {
		return i + n
	}
	return len(text)
}
