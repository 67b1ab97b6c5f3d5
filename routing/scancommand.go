package routing

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// Refusal is what Chrome answers to a text that is no usable command.
type Refusal struct {
	Code    int
	Message string
	HasID   bool // Chrome puts the id into some of these errors only
	ID      int32
}

// JSON-RPC error codes of a text that is no usable command.
const (
	codeNoJSON    = -32700
	codeNoCommand = -32600
)

// maxDepth is how many containers may enclose a value, Chrome's own limit.
const maxDepth = 300

// ScanCommand reads one command of a client, strictly. It is a security
// boundary: policy acts on what it reads here, so it accepts no text that
// Chrome would read otherwise. It keeps the grammar of Chrome's parser, oddities
// included (raw control characters in strings, \v, \f between tokens), in one
// pass, and refuses in Chrome's words. testdata/commands.txt has every rule with
// Chrome's answer. It is stricter in three cases, which no JSON writer makes:
//
//   - true, false and null must be spelled right: Chrome ignores their last byte.
//   - Text must be UTF-8: Chrome takes surrogates and overlong forms above U+007F.
//   - An empty method or sessionId, too, may stand only once.
//
// A position in an error counts bytes of the text. Chrome's does so only where
// the message begins with "JSON:".
func ScanCommand(text []byte, env *Envelope) *Refusal {
	*env = Envelope{}
	c := commandScanner{text: text, env: env}
	if c.value(0) && skipSpace(text, c.pos) != len(text) {
		c.fail("unprocessed input remains")
	}
	switch {
	case c.fault != nil: // whatever else is wrong: Chrome looks at members only once all is parsed
		return c.fault
	case text[skipSpace(text, 0)] != '{':
		return &Refusal{Code: codeNoCommand, Message: "Message must be an object"}
	case c.refusal == nil && !env.IDSpan.Present():
		c.refuse("Message must have integer 'id' property")
	case c.refusal == nil && len(env.Method) == 0:
		c.refuse("Message must have string 'method' property")
	}
	return c.refusal
}

// commandScanner is the state of one ScanCommand. Its methods that return a
// bool move pos past what they are named for; false means that fault is set.
type commandScanner struct {
	text    []byte
	pos     int
	env     *Envelope
	refusal *Refusal // the first member that a command may not have
	fault   *Refusal // why the text is no JSON
}

func (c *commandScanner) fail(why string) bool {
	return c.failAt(why, skipSpace(c.text, c.pos))
}

func (c *commandScanner) failAt(why string, pos int) bool {
	c.fault = &Refusal{Code: codeNoJSON, Message: fmt.Sprintf("JSON: %s at position %d", why, pos)}
	return false
}

// take moves past the next token if it is b.
func (c *commandScanner) take(b byte) bool {
	i := skipSpace(c.text, c.pos)
	if byteAt(c.text, i) != b {
		return false
	}
	c.pos = i + 1
	return true
}

func (c *commandScanner) value(depth int) bool {
	if depth > maxDepth {
		return c.failAt("stack limit exceeded", c.pos)
	}
	c.pos = skipSpace(c.text, c.pos)
	if c.pos == len(c.text) {
		return c.fail("no input")
	}
	switch b := c.text[c.pos]; b {
	case '{':
		return c.object(depth)
	case '[':
		return c.array(depth)
	case '"':
		return c.str("invalid token")
	case 't':
		return c.literal("true")
	case 'f':
		return c.literal("false")
	case 'n':
		return c.literal("null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return c.number()
	case '}', ']', ',', ':':
		return c.fail("value expected")
	}
	return c.fail("invalid token")
}

func (c *commandScanner) object(depth int) bool {
	c.pos++
	if c.take('}') {
		return true
	}
	for {
		c.pos = skipSpace(c.text, c.pos)
		name := Span{Start: c.pos}
		if !c.str("string literal expected") {
			return false
		}
		name.End = c.pos
		if !c.take(':') {
			return c.fail("colon expected")
		}
		value := Span{Start: skipSpace(c.text, c.pos)}
		if !c.value(depth + 1) {
			return false
		}
		value.End = c.pos
		switch {
		case depth == 0 && c.refusal == nil:
			c.member(name, value)
		case depth == 1: // of params: a command has no other object
			c.param(name, value)
		}
		if c.take('}') {
			return true
		}
		if !c.take(',') {
			return c.fail("comma or map end expected")
		}
		if c.take('}') {
			return c.failAt("unexpected map end", c.pos-1)
		}
	}
}

func (c *commandScanner) array(depth int) bool {
	c.pos++
	if c.take(']') {
		return true
	}
	for {
		if !c.value(depth + 1) {
			return false
		}
		if c.take(']') {
			return true
		}
		if !c.take(',') {
			return c.fail("comma or array end expected")
		}
		if c.take(']') {
			return c.failAt("unexpected array end", c.pos-1)
		}
	}
}

// str reads a string; otherwise is what Chrome says where there is none. A bad
// escape, or no end, means that there is none; bytes that are not UTF-8, and
// the escape \x, make it a bad one.
func (c *commandScanner) str(otherwise string) bool {
	if byteAt(c.text, c.pos) != '"' {
		return c.fail(otherwise)
	}
	valid := true
	for i := c.pos + 1; i < len(c.text); {
		switch b := c.text[i]; {
		case b == '"':
			if !valid {
				return c.fail("invalid string")
			}
			c.pos = i + 1
			return true
		case b == '\\':
			n := escapeLen(c.text[i:])
			if n == 0 {
				return c.fail(otherwise)
			}
			valid = valid && c.text[i+1] != 'x'
			i += n
		case b < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRune(c.text[i:])
			valid = valid && (r != utf8.RuneError || n > 1)
			i += n
		}
	}
	return c.fail(otherwise)
}

func (c *commandScanner) literal(word string) bool {
	if !bytes.HasPrefix(c.text[c.pos:], []byte(word)) {
		return c.fail("invalid token")
	}
	c.pos += len(word)
	return true
}

// number reads a number as JSON spells it, within the range of a double.
func (c *commandScanner) number() bool {
	digits := func(i int) int {
		for i < len(c.text) && '0' <= c.text[i] && c.text[i] <= '9' {
			i++
		}
		return i
	}
	start, i := c.pos, c.pos
	if c.text[i] == '-' {
		i++
	}
	end := digits(i)
	if end == i || end > i+1 && c.text[i] == '0' {
		return c.fail("invalid token")
	}
	if byteAt(c.text, end) == '.' {
		i = end + 1
		if end = digits(i); end == i {
			return c.fail("invalid token")
		}
	}
	exponent := byteAt(c.text, end)|0x20 == 'e'
	if exponent {
		i = end + 1
		if sign := byteAt(c.text, i); sign == '-' || sign == '+' {
			i++
		}
		if end = digits(i); end == i {
			return c.fail("invalid token")
		}
	}
	if exponent || end-start > 300 { // else it cannot be too large
		if _, err := strconv.ParseFloat(string(c.text[start:end]), 64); err != nil {
			return c.fail("invalid number")
		}
	}
	c.pos = end
	return true
}

func (c *commandScanner) nameOf(name Span) []byte {
	unquoted, _ := Unquote(name.Of(c.text))
	return unquoted
}

// member takes one top-level member.
func (c *commandScanner) member(name, value Span) {
	env, key, raw := c.env, c.nameOf(name), value.Of(c.text)
	switch string(key) {
	case "id":
		switch id, ok := int32Of(raw); {
		case env.IDSpan.Present():
			c.refuseKey("duplicate", name)
		case !ok:
			c.refuse("Message must have integer 'id' property")
		default:
			env.ID, env.IDSpan = id, value
		}
	case "method":
		switch method, ok := Unquote(raw); {
		case env.Method != nil:
			c.refuseKey("duplicate", name)
		case !ok || !isASCII(method):
			c.refuse("Message must have string 'method' property")
		default:
			env.Method = method
		}
	case "sessionId":
		switch session, ok := Unquote(raw); {
		case env.Member.Present():
			c.refuseKey("duplicate", name)
		case !ok || !isASCII(session):
			c.refuse("Message may have string 'sessionId' property")
		default:
			env.Member = Span{name.Start, value.End}
			if len(session) > 0 {
				env.Session = session
			}
		}
	case "params":
		switch {
		case env.Params.Present():
			c.refuseKey("duplicate", name)
		case raw[0] != '{' && raw[0] != '[' && raw[0] != 'n':
			c.refuse("Message may have object 'params' property")
		default:
			env.Params = value
		}
	default:
		if isASCII(key) {
			c.refuse("Message has property other than 'id', 'method', 'sessionId', 'params'")
		} else {
			c.refuseKey("invalid", name)
		}
	}
}

func (c *commandScanner) refuse(message string) {
	c.refusal = &Refusal{Code: codeNoCommand, Message: message, HasID: c.env.IDSpan.Present(), ID: c.env.ID}
}

func (c *commandScanner) refuseKey(why string, name Span) {
	c.refuse(fmt.Sprintf("CBOR: %s map key at position %d", why, name.Start))
	c.refusal.Code = codeNoJSON
}

// param takes one member of params. Of several with one name Chrome takes the last.
func (c *commandScanner) param(name, value Span) {
	var field *[]byte
	switch string(c.nameOf(name)) {
	case "targetId":
		field = &c.env.TargetID
	case "sessionId":
		field = &c.env.ChildID
	case "browserContextId":
		field = &c.env.ContextID
	default:
		return
	}
	*field, _ = Unquote(value.Of(c.text))
}

// int32Of reads an id as Chrome does: any number whose value, as a double, is
// whole and fits.
func int32Of(raw []byte) (int32, bool) {
	if n, err := strconv.ParseInt(string(raw), 10, 32); err == nil {
		return int32(n), true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || f < math.MinInt32 || f > math.MaxInt32 {
		return 0, false
	}
	return int32(f), true
}

func isASCII(text []byte) bool {
	for _, b := range text {
		if b >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
