package access

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// Bodies bounds what requests may make us wait for: a body that is read has to
// come in time, and not too many are awaited at once; one that nobody reads is
// not awaited at all.
type Bodies struct {
	Most int // awaited at once; to read one more is an error

	awaited atomic.Int32
}

var errBodies = errors.New("too many requests whose bodies have not come; try again")

// slowBody is the body of one request. Once it is read, its connection has no
// deadline: an answer may wait for the browser.
type slowBody struct {
	io.ReadCloser
	control *http.ResponseController
	limit   time.Duration
	all     *Bodies
	begun   bool
	ended   bool // nobody waits for it any more
	whole   bool // all of it has come
}

// Bound gives the body of a request its bounds: limit is what it may take from
// when it is first read. done is called when the request is answered; net/http
// then reads what has come of the body, and no more.
func (b *Bodies) Bound(w http.ResponseWriter, r *http.Request, limit time.Duration) (done func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}
	}
	body := &slowBody{ReadCloser: r.Body, control: http.NewResponseController(w), limit: limit, all: b}
	r.Body = body
	return func() {
		body.end()
		if !body.whole {
			_ = body.control.SetReadDeadline(time.Unix(1, 0)) // the past
		}
	}
}

func (b *slowBody) Read(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		if b.all.awaited.Add(1) > int32(b.all.Most) {
			b.end()
			return 0, errBodies
		}
		_ = b.control.SetReadDeadline(time.Now().Add(b.limit))
	}
	if b.ended {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.end()
		b.whole = true
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

func (b *slowBody) end() {
	if b.begun && !b.ended {
		b.all.awaited.Add(-1)
	}
	b.ended = true
}
