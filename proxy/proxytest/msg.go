package proxytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// Msg is one received text and its top-level members, as raw bytes of it.
type Msg struct {
	Raw     []byte
	ID      string // the id's token as written; "" when there is none
	Method  string // "" in a reply
	Session string // "" on the connection itself
	Params  json.RawMessage
	Result  json.RawMessage
	Error   json.RawMessage
}

// ParseMsg splits one text that a browser or a proxy sent.
func ParseMsg(raw []byte) (Msg, error) {
	m := Msg{Raw: raw}
	ok := scan(raw, func(key, value []byte) {
		switch string(key) {
		case "id":
			m.ID = string(value)
		case "method":
			m.Method = unquote(value)
		case "sessionId":
			m.Session = unquote(value)
		case "params":
			m.Params = value
		case "result":
			m.Result = value
		case "error":
			m.Error = value
		}
	})
	if !ok {
		return m, fmt.Errorf("not a CDP message: %s", head(raw))
	}
	return m, nil
}

// Err is the message's error, nil when it has none.
func (m Msg) Err() *Error {
	if m.Error == nil {
		return nil
	}
	e := new(Error)
	if err := json.Unmarshal(m.Error, e); err != nil {
		e.Message = string(m.Error)
	}
	return e
}

// Is reports whether m is the named event of that session.
func (m Msg) Is(session, method string) bool {
	return m.ID == "" && m.Method == method && m.Session == session
}

// Param is the string at params.name, "" when there is none.
func (m Msg) Param(name string) string { return member(m.Params, name) }

// Into decodes the result, or the params of an event, into v.
func (m Msg) Into(v any) error {
	if m.Result != nil {
		return json.Unmarshal(m.Result, v)
	}
	return json.Unmarshal(m.Params, v)
}

func (m Msg) String() string { return head(m.Raw) }

// Error is a CDP error.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    string `json:"data,omitempty"`
}

func (e *Error) Error() string {
	text := strconv.Itoa(e.Code) + " " + e.Message
	if e.Data != "" {
		text += " (" + e.Data + ")"
	}
	return text
}

// member is the string member name of an object, "" when there is none.
func member(object []byte, name string) (s string) {
	scan(object, func(key, value []byte) {
		if string(key) == name {
			s = unquote(value)
		}
	})
	return s
}

// unquote reads a JSON string, "" when it is something else.
func unquote(value []byte) (s string) {
	if n := len(value); n >= 2 && value[0] == '"' && bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : n-1])
	}
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// head is as much of a text as a failure message should show.
func head(raw []byte) string {
	const most = 300
	if len(raw) <= most {
		return string(raw)
	}
	return fmt.Sprintf("%s… (%d bytes)", raw[:most], len(raw))
}
