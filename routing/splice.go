package routing

import (
	"bytes"
	"strconv"
)

// SetID puts id in the place of the id that env found. A shorter one is padded
// with spaces, so that nothing moves however large the message is.
func (m *Message) SetID(env *Envelope, id int32) {
	var space [16]byte
	digits := strconv.AppendInt(space[:0], int64(id), 10)
	n, padded := len(digits), digits
	for len(padded) < env.IDSpan.End-env.IDSpan.Start {
		padded = append(padded, ' ')
	}
	m.Replace(env, env.IDSpan, padded)
	env.ID, env.IDSpan.End = id, env.IDSpan.Start+n
}

// SetSession gives the message a sessionId: in the place of the one it has,
// else as its first member. An empty session takes the member away.
func (m *Message) SetSession(env *Envelope, session string) {
	if session == "" {
		m.removeSession(env)
		return
	}
	var space [64]byte
	member := append(space[:0], `"sessionId":"`...)
	member = append(append(member, session...), '"')
	n := len(member)
	if env.Member.Present() {
		if !bytes.Equal(env.Member.Of(m.Text()), member) {
			m.Replace(env, env.Member, member)
		}
		return
	}
	at := skipSpace(m.Text(), 0) + len(`{`)
	if byteAt(m.Text(), skipSpace(m.Text(), at)) != '}' {
		member = append(member, ',')
	}
	m.Replace(env, Span{at, at}, member)
	env.Member = Span{at, at + n}
}

// removeSession removes the member and one comma: the one after it, else the one before.
func (m *Message) removeSession(env *Envelope) {
	if !env.Member.Present() {
		return
	}
	text, cut := m.Text(), env.Member
	if after := skipSpace(text, cut.End); text[after] == ',' {
		cut.End = after + 1
	} else {
		before := cut.Start - 1
		for isSpace(text[before]) {
			before--
		}
		if text[before] == ',' {
			cut.Start = before
		}
	}
	m.Replace(env, cut, nil)
	env.Member = Span{}
}

// Replace puts with, which may not alias the message, in the place of a span.
// It moves the bytes before the span into the headroom, or whatever is shorter
// when the text shrinks; only without enough headroom does it copy the message.
// Afterwards env's spans fit the new text, but those within s, which are
// absent, and its byte slices are nil.
func (m *Message) Replace(env *Envelope, s Span, with []byte) {
	text := m.Text()
	grow := len(with) - (s.End - s.Start)
	switch {
	case grow > m.Start:
		larger := &Message{Buf: make([]byte, Headroom+len(text)+grow), Start: Headroom}
		copy(larger.Text(), text[:s.Start])
		copy(larger.Text()[s.End+grow:], text[s.End:])
		*m = *larger
	case grow < 0 && len(text)-s.End < s.Start:
		copy(text[s.End+grow:], text[s.End:])
		m.Buf = m.Buf[:len(m.Buf)+grow]
	default:
		copy(m.Buf[m.Start-grow:], text[:s.Start])
		m.Start -= grow
	}
	copy(m.Text()[s.Start:], with)

	for _, span := range []*Span{&env.IDSpan, &env.Member, &env.Params, &env.Error, &env.Result} {
		switch {
		case !span.Present():
		case span.Start >= s.End:
			span.Start += grow
			span.End += grow
		case span.End <= s.Start:
		case span.Start <= s.Start && span.End >= s.End:
			span.End += grow
		default:
			*span = Span{}
		}
	}
	env.Method, env.Session = nil, nil
	env.TargetID, env.ChildID, env.ContextID = nil, nil, nil
}
