package access

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// serveBodies answers with what came of the body of a POST, and reads no other.
func serveBodies(t *testing.T, b *Bodies, limit time.Duration) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer b.Bound(w, r, limit)()
		if r.Method == http.MethodPost {
			if _, err := io.ReadAll(r.Body); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
			}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// begun is a request whose body does not come to its end.
func begun(method string) string {
	return method + " / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n{"
}

// A body that does not come in time holds nothing, where it is read and where
// it is not; one that came bounds nothing.
func TestBodiesAreBoundedInTime(t *testing.T) {
	s := serveBodies(t, &Bodies{Most: 1}, 50*time.Millisecond)
	hangsUp(t, connect(t, s, begun(http.MethodPost)))
	hangsUp(t, connect(t, s, begun(http.MethodPut)))
	conn := connect(t, s, begun(http.MethodPost)+"12345678}")
	if got := status(t, conn); got != 200 {
		t.Errorf("a body that came: HTTP %d", got)
	}
}

// Not too many bodies are awaited at once, and one that nobody reads never is.
func TestAwaitedBodiesAreCounted(t *testing.T) {
	const most = 16
	b := Bodies{Most: most}
	s := serveBodies(t, &b, time.Hour)
	for range most {
		defer connect(t, s, begun(http.MethodPost)).Close()
	}
	await(t, "all of them", func() bool { return b.awaited.Load() == most })
	answer, _ := io.ReadAll(connect(t, s, begun(http.MethodPost)))
	if text := string(answer); !strings.HasPrefix(text, "HTTP/1.1 400") || !strings.Contains(text, errBodies.Error()) {
		t.Errorf("one too many: %q", answer)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		hangsUp(t, connect(t, s, begun(method)))
	}
	if n := b.awaited.Load(); n != most {
		t.Errorf("%d bodies are awaited", n)
	}
}
