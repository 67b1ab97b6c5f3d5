package proxytest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// evaluate answers Runtime.evaluate. The fake knows these expressions:
//
//	12.5, true, null, undefined, "text", 'text'   the value itself
//	document.title, location.href                 the page's
//	never()              no reply, ever (but an error when the page navigates)
//	after(ms)            ms, after that many milliseconds
//	after(ms, value)     the value, then
//	big(n)               a string of n bytes
//	burst(n, size)       n, after n events Runtime.bindingCalled with a payload of size bytes
//	window.open("url")   opens a popup; with the arguments "", "noopener" one without access
//	window.close()       closes the page
//
// Everything else throws.
func evaluate(b *Browser, s *session, cmd Command) {
	expression := cmd.Param("expression")
	if expression == "" {
		missing(s, cmd, "expression")
		return
	}
	name, args := call(expression)
	switch name {
	case "never":
		s.target.pending = append(s.target.pending, &pending{session: s, cmd: cmd})
	case "after":
		value := args[len(args)-1]
		p := &pending{session: s, cmd: cmd}
		s.target.pending = append(s.target.pending, p)
		b.after(time.Duration(number(args, 0))*time.Millisecond, func() {
			if s.target.settle(p) {
				s.result(cmd, []byte(b.value(s, value)))
			}
		})
	case "big":
		s.result(cmd, []byte(`{"result":{"type":"string","value":"`), b.filling(number(args, 0)), []byte(`"}}`))
	case "burst":
		payload := strings.Repeat("x", number(args, 1))
		for range number(args, 0) {
			s.event("Runtime.bindingCalled", `{"name":"burst","payload":"`+payload+`","executionContextId":1}`)
		}
		s.result(cmd, []byte(b.value(s, args[0])))
	case "window.open":
		noopener := len(args) == 3 && args[2] == `"noopener"`
		page := b.openTab(newTab{context: s.target.context, opener: s.target, canAccess: !noopener})
		if noopener {
			s.result(cmd, []byte(b.value(s, "null")))
		} else {
			s.result(cmd, []byte(`{"result":{"type":"object","className":"Window","description":"Window","objectId":"1.1.1"}}`))
		}
		b.load(page, unquote([]byte(args[0])))
	case "window.close":
		s.result(cmd, []byte(b.value(s, "undefined")))
		b.closeTab(s.target)
	default:
		s.result(cmd, []byte(b.value(s, expression)))
	}
}

// settle takes a command out of the open ones; false if it is not to be
// answered any more.
func (t *target) settle(p *pending) bool {
	if t.crashed || !slices.Contains(t.pending, p) {
		return false
	}
	t.pending = remove(t.pending, p)
	return true
}

// call splits name(arg, arg); the name is empty when it is no call.
func call(expression string) (name string, args []string) {
	name, rest, ok := strings.Cut(expression, "(")
	if !ok || !strings.HasSuffix(rest, ")") || strings.ContainsAny(name, `"'`) {
		return "", nil
	}
	for arg := range strings.SplitSeq(strings.TrimSuffix(rest, ")"), ",") {
		args = append(args, strings.TrimSpace(arg))
	}
	return name, args
}

func number(args []string, i int) int {
	if i >= len(args) {
		return 0
	}
	n, _ := strconv.Atoi(args[i])
	return max(n, 0)
}

// value is the result of an expression that is no call.
func (b *Browser) value(s *session, expression string) string {
	switch expression {
	case "undefined", "":
		return `{"result":{"type":"undefined"}}`
	case "true", "false":
		return `{"result":{"type":"boolean","value":` + expression + `}}`
	case "null":
		return `{"result":{"type":"object","subtype":"null","value":null}}`
	case "document.title":
		return `{"result":{"type":"string","value":` + quote(s.target.title) + `}}`
	case "location.href":
		return `{"result":{"type":"string","value":` + quote(s.target.url) + `}}`
	}
	if text := expression; text[0] == '\'' && text[len(text)-1] == '\'' && len(text) > 1 {
		return `{"result":{"type":"string","value":` + quote(text[1:len(text)-1]) + `}}`
	}
	if expression[0] == '"' && json.Valid([]byte(expression)) {
		return `{"result":{"type":"string","value":` + expression + `}}`
	}
	if _, err := strconv.ParseFloat(expression, 64); err == nil {
		return `{"result":{"type":"number","value":` + expression + `,"description":"` + expression + `"}}`
	}
	description := quote("ReferenceError: " + expression + " is not defined")
	thrown := `{"type":"object","subtype":"error","className":"ReferenceError","description":` + description + `}`
	return `{"result":` + thrown + `,"exceptionDetails":{"exceptionId":1,"text":"Uncaught","lineNumber":0,"columnNumber":0,"exception":` + thrown + `}}`
}
