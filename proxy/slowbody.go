package proxy

import (
	"io"
	"net/http"
	"time"
)

// slowBody bounds the time that a request's body may take, from its first read
// on. Once it is read, the connection has no deadline: an answer may wait for
// the browser.
type slowBody struct {
	io.ReadCloser
	control *http.ResponseController
	limit   time.Duration
	begun   bool
	ended   bool
}

// boundBody gives a request with a body its bound. done is called when the
// request is answered: net/http then reads what is left.
func boundBody(w http.ResponseWriter, r *http.Request, limit time.Duration) (done func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}
	}
	b := &slowBody{ReadCloser: r.Body, control: http.NewResponseController(w), limit: limit}
	r.Body = b
	return func() {
		if !b.ended {
			b.begin()
		}
	}
}

func (b *slowBody) begin() {
	if !b.begun {
		b.begun = true
		_ = b.control.SetReadDeadline(time.Now().Add(b.limit))
	}
}

func (b *slowBody) Read(p []byte) (int, error) {
	b.begin()
	n, err := b.ReadCloser.Read(p)
	if err != nil && !b.ended {
		b.ended = true
		if err == io.EOF {
			_ = b.control.SetReadDeadline(time.Time{})
		}
	}
	return n, err
}
