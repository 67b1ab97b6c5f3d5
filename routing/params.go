package routing

import "strings"

// setParam sets a member of params to a raw value.
func setParam(m *Message, env *Envelope, key, value string, present bool) {
	params := object(m, env)
	if present {
		v, _ := Member(params, key)
		m.Replace(env, Span{env.Params.Start + v.Start, env.Params.Start + v.End}, []byte(value))
		return
	}
	member := `"` + key + `":` + value
	if len(strings.TrimSpace(string(params[1:len(params)-1]))) > 0 {
		member += ","
	}
	at := env.Params.Start + 1
	m.Replace(env, Span{at, at}, []byte(member))
}

// object is a command's params; nil when they are none or no object.
func object(m *Message, env *Envelope) []byte {
	if p := env.Params.Of(m.Text()); len(p) > 0 && p[0] == '{' {
		return p
	}
	return nil
}

// boolParam reads a boolean of params; ok is false where Chrome would refuse
// what stands there.
func boolParam(params []byte, key string) (v, present, ok bool) {
	s, present := Member(params, key)
	if !present {
		return false, false, true
	}
	switch string(s.Of(params)) {
	case "true":
		return true, true, true
	case "false":
		return false, true, true
	}
	return false, true, false
}

// textParam reads a string of params; ok is false where Chrome would refuse
// what stands there.
func textParam(params []byte, key string) (v string, present, ok bool) {
	s, present := Member(params, key)
	if !present {
		return "", false, true
	}
	text, ok := Unquote(s.Of(params))
	return string(text), true, ok
}

// stringParam reads a string of params, "" when there is none.
func stringParam(params []byte, key string) string {
	v, ok := Member(params, key)
	if !ok {
		return ""
	}
	s, _ := Unquote(v.Of(params))
	return string(s)
}

// stringsParam reads a list of strings of params; false when it is none.
func stringsParam(params []byte, key string) (list []string, ok bool) {
	v, ok := Member(params, key)
	if !ok || v.Of(params)[0] != '[' {
		return nil, false
	}
	list = []string{}
	for raw := range elements(v.Of(params)) {
		s, ok := Unquote(raw)
		if !ok {
			return nil, false
		}
		list = append(list, string(s))
	}
	return list, true
}

// quoteAll is a list of strings as JSON.
func quoteAll(list []string) string {
	out := []byte{'['}
	for i, s := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = AppendQuoted(out, []byte(s))
	}
	return string(append(out, ']'))
}
