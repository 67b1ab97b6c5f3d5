package routing

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/mailru/easyjson"
)

// firstID is the least id that the browser hears. Ten digits are never
// shorter than what fits in an int32, so a reply's id is put back in place.
const firstID = 1_000_000_000

// answer does what is to be done with the reply to a request. It gets an
// error of ours, in the same form, when Chrome will never reply.
type answer func(*Router, *request, *Message, *Envelope)

// request is a command that the browser has not answered yet.
type request struct {
	id  int32     // as the browser knows it
	seq uint64    // order of sending
	via *session  // where it was sent; nil: the proxy's root
	at  time.Time // when the client's command came

	// who waits for it
	conn     *conn    // nil: the proxy itself, or one that is gone
	session  *session // what the client spoke to
	clientID int32    // the id it gave
	token    uint64   // of an HTTP request; 0: none

	answer answer // nil: pass it on

	// what some answers need
	maker    ConnID   // createTarget: whose connection asked
	client   *client  // createTarget: whose the tab will be
	window   *window  // createTarget: where the tab will be
	opens    *conn    // an attach: of this connection's root or page
	detaches string   // a detach: session or target id
	subject  string   // an attach: target id; a context or permission: what it is about
	list     []string // grantPermissions: what was asked for
	legacy   bool     // an attach: the client wants a non-flat session
	auto     bool     // an attach: made by virtual auto-attach
	batch    *batch   // one of several that a reply waits for
	owed     owed     // a run: who waits for the detach that follows
	discover filter   // setDiscoverTargets
	autoAsk  *auto    // setAutoAttach
	hidden   string   // what stands in the command for a foreign id …
	foreign  string   // … which the client wrote so

	makes bool // createBrowserContext
	late  bool // nobody waits any more: what it makes is closed

	prev, next     *request // on via's list
	earlier, later *request // in the queue of its limit
	limit          limit
	due            time.Time // zero: never
}

// batch is a reply owed to a client until several requests of ours are done.
type batch struct {
	open int
	owed owed
	body string // `"result":{…}`
}

// owed names a reply that a client waits for.
type owed struct {
	conn    *conn
	session *session
	id      int32
}

// open enters a request of a client's; its command still has to be sent.
func (r *Router) open(via *session, c *conn, s *session, clientID int32) *request {
	q := r.spare
	if q == nil {
		q = &request{}
	} else {
		r.spare = q.next
		*q = request{}
	}
	for {
		if r.lastID == math.MaxInt32 {
			r.lastID = firstID - 1
		}
		r.lastID++
		if _, taken := r.requests[r.lastID]; !taken {
			break
		}
	}
	r.lastUse++
	q.id, q.seq, q.at = r.lastID, r.lastUse, r.came
	q.via, q.conn, q.session, q.clientID = via, c, s, clientID
	r.requests[q.id] = q
	if c != nil {
		r.deadlines.put(q, r.limit, r.now)
	}
	if via != nil {
		if q.prev = via.last; q.prev != nil {
			q.prev.next = q
		} else {
			via.first = q
		}
		via.last = q
	}
	return q
}

// ask sends a command of the proxy's own.
func (r *Router) ask(via *session, method string, params any, a answer) *request {
	if !r.up {
		return &request{} // there is nobody to ask: nothing comes of it
	}
	q := r.open(via, nil, nil, 0)
	q.answer = a
	buf := make([]byte, Headroom, Headroom+256)
	buf = append(buf, `{"id":`...)
	buf = strconv.AppendInt(buf, int64(q.id), 10)
	buf = append(buf, `,"method":"`...)
	buf = append(buf, method...)
	buf = append(buf, '"')
	if params != nil {
		buf = append(buf, `,"params":`...)
		if raw, ok := params.(rawParams); ok {
			buf = append(buf, raw...)
		} else if p, err := json.Marshal(params); err == nil {
			buf = append(buf, p...)
		} else {
			panic(err) // our own types always marshal
		}
	}
	if via != nil {
		buf = append(buf, `,"sessionId":"`...)
		buf = append(buf, via.id...)
		buf = append(buf, '"')
	}
	r.toBrowser(&Message{Buf: append(buf, '}'), Start: Headroom})
	return q
}

// rawParams are params as a client wrote them.
type rawParams string

// ignore is the answer of a command whose reply tells nothing.
func ignore(*Router, *request, *Message, *Envelope) {}

// finish takes a request out of the tables and does what its answer says.
func (r *Router) finish(q *request, m *Message, env *Envelope) {
	delete(r.requests, q.id)
	r.deadlines.drop(q)
	if q.conn != nil {
		r.totals.Latency.count(r.now.Sub(q.at))
	}
	if s := q.via; s != nil {
		if q.prev != nil {
			q.prev.next = q.next
		} else {
			s.first = q.next
		}
		if q.next != nil {
			q.next.prev = q.prev
		} else {
			s.last = q.prev
		}
	}
	if q.answer != nil {
		q.answer(r, q, m, env)
	} else {
		r.pass(q, m, env)
	}
	if b := q.batch; b != nil {
		r.settle(b)
	}
	*q = request{next: r.spare}
	r.spare = q
}

// fail finishes a request that Chrome will not answer, with an error in the
// form that Chrome's would have.
func (r *Router) fail(q *request, code int, text string) {
	session := ""
	if q.via != nil {
		session = `,"sessionId":"` + q.via.id + `"`
	}
	m := NewMessage(errorText(q.id, code, text, session))
	var env Envelope
	if !Scan(m.Text(), &env) {
		panic("our own error does not scan: " + string(m.Text()))
	}
	r.finish(q, m, &env)
}

// pass gives a reply to the client that waits for it, under the id it gave.
func (r *Router) pass(q *request, m *Message, env *Envelope) {
	if q.conn == nil {
		return
	}
	m.SetID(env, q.clientID)
	if q.hidden != "" && failed(env) {
		m = unhide(m, q.hidden, q.foreign)
		Scan(m.Text(), env)
	}
	if q.via != q.session { // it was sent elsewhere than the client said
		m.SetSession(env, "")
		if member := appendSession(nil, q.session); member != nil { // last, where Chrome has it
			end := len(m.Text()) - 1
			m.Replace(env, Span{end, end}, member)
		}
		if q.session.carrier != nil {
			r.ascend(q.session.carrier, m)
		}
		return
	}
	r.deliver(q.session, m, env)
}

// settle counts down a batch and sends its reply when all is done.
func (r *Router) settle(b *batch) {
	if b.open--; b.open > 0 || b.owed.conn == nil || b.owed.conn.state == connEnded {
		return
	}
	r.reply(b.owed.session, b.owed.id, b.body)
}

// failed reports whether a reply is an error.
func failed(env *Envelope) bool { return env.Error.Present() }

// resultIDs reads the ids of a result; none of an error.
func resultIDs(m *Message, env *Envelope) (v ids) {
	if env.Result.Present() {
		// What does not decode names nothing.
		_ = easyjson.Unmarshal(env.Result.Of(m.Text()), &v)
	}
	return v
}

// dropCreating takes a createTarget out of those in flight.
func (r *Router) dropCreating(q *request) {
	r.creating = slices.DeleteFunc(r.creating, func(o *request) bool { return o == q })
}
