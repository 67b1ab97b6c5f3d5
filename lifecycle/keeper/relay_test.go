package keeper

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// chromeEnd is the other end of a pipe.
type chromeEnd struct {
	t   *testing.T
	in  *bufio.Reader
	out *os.File
}

func (c *chromeEnd) say(text string) {
	c.t.Helper()
	if _, err := c.out.WriteString(text + "\x00"); err != nil {
		c.t.Error(err)
	}
}

// next is the next message that Chrome hears.
func (c *chromeEnd) next() string {
	c.t.Helper()
	text, err := c.in.ReadString(0)
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.TrimSuffix(text, "\x00")
}

// hears checks the next command of the keeper's own, and returns its id.
func (c *chromeEnd) hears(method, param string) (id int) {
	c.t.Helper()
	text := c.next()
	if _, err := fmt.Sscanf(text, `{"id":%d,`, &id); err != nil || !strings.Contains(text, `"`+method+`"`) || !strings.Contains(text, param) {
		c.t.Fatalf("Chrome hears %.200s, want %s with %s", text, method, param)
	}
	return id
}

// hearsReset checks what is sent when a proxy has gone.
func (c *chromeEnd) hearsReset() {
	c.t.Helper()
	c.hears("Target.setDiscoverTargets", `"discover":false`)
	c.hears("Target.setAutoAttach", `"autoAttach":false`)
	c.hears("Browser.setDownloadBehavior", `"eventsEnabled":false`)
}

// testRelay is a pipe whose both ends are the test's, relayed on a socket.
func testRelay(t *testing.T) (*pipe, *chromeEnd, string) {
	t.Helper()
	p, ends, err := newPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.patience = 50 * time.Millisecond
	socket := filepath.Join(t.TempDir(), "up")
	l, err := listenUnix(socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = http.Serve(l, p)
	}()
	limit := time.Now().Add(20 * time.Second)
	for _, end := range ends {
		_ = end.SetDeadline(limit)
	}
	t.Cleanup(func() {
		for _, end := range ends {
			end.Close()
		}
		<-p.gone
		p.close()
		l.Close()
		<-served
	})
	return p, &chromeEnd{t, bufio.NewReaderSize(ends[0], 1<<20), ends[1]}, socket
}

func dialRelay(t *testing.T, socket string) (*websocket.Conn, error) {
	t.Helper()
	d := websocket.Dialer{NetDial: func(string, string) (net.Conn, error) { return net.Dial("unix", socket) }}
	conn, resp, err := d.DialContext(t.Context(), "ws://localhost/", nil)
	if resp != nil {
		resp.Body.Close()
	}
	if err != nil {
		return nil, err
	}
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	t.Cleanup(func() { conn.Close() })
	return conn, nil
}

func mustDial(t *testing.T, socket string) *websocket.Conn {
	t.Helper()
	conn, err := dialRelay(t, socket)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// meanwhile runs f beside the test, and closes done when it has returned.
func meanwhile(f func()) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}

func tell(t *testing.T, conn *websocket.Conn, text string) {
	t.Helper()
	if err := conn.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		t.Error(err)
	}
}

func wantRead(t *testing.T, conn *websocket.Conn, want string) {
	t.Helper()
	if _, got, err := conn.ReadMessage(); err != nil || string(got) != want {
		t.Fatalf("the proxy reads %.200q (%d bytes), %v; want %.200q (%d bytes)", got, len(got), err, want, len(want))
	}
}

// sessionEvent is a Target.attachedToTarget or detachedFromTarget as Chrome writes it.
func sessionEvent(kind, session, parent, address string) string {
	text := `{"method":"Target.` + kind + `","params":{"sessionId":"` + session + `","targetInfo":{"url":"` + address + `"},"waitingForDebugger":false}`
	if parent != "" {
		text += `,"sessionId":"` + parent + `"`
	}
	return text + "}"
}

// Messages of any size pass, in order, and as they are.
func TestRelay(t *testing.T) {
	_, chrome, socket := testRelay(t)
	conn := mustDial(t, socket)
	for _, size := range []int{0, 1, pipeSize - 64, pipeSize, pipeSize + 1, 3 << 20} {
		text := fmt.Sprintf(`{"id":1000000000,"method":"M","params":%q}`, strings.Repeat("x", size))
		done := meanwhile(func() { tell(t, conn, text) })
		if got := chrome.next(); got != text {
			t.Fatalf("Chrome hears %.100s (%d bytes), want %.100s (%d bytes)", got, len(got), text, len(text))
		}
		<-done
		done = meanwhile(func() { chrome.say(text) })
		wantRead(t, conn, text)
		<-done
	}
}

// Chrome must not hear a message that would end its pipe: of one that is too
// long it gets a beginning.
func TestRelayCutsWhatIsTooLong(t *testing.T) {
	p, chrome, socket := testRelay(t)
	p.most = 1000
	conn := mustDial(t, socket)
	tell(t, conn, strings.Repeat("x", 1001))
	tell(t, conn, "next")
	if got := len(chrome.next()); got != 1000 {
		t.Errorf("Chrome hears %d bytes, want 1000", got)
	}
	if got := chrome.next(); got != "next" {
		t.Errorf("then Chrome hears %.100s", got)
	}
}

// For Chrome all proxies are one client: the next one must hear and find
// nothing of what the last one has left, and never the answers to the keeper.
func TestNextProxyFindsCleanPipe(t *testing.T) {
	_, chrome, socket := testRelay(t)
	chrome.say(`{"method":"early"}`)
	a := mustDial(t, socket)
	tell(t, a, "first")
	chrome.next()
	long := "data:" + strings.Repeat("x", 2*pipeSize)
	said := []string{
		sessionEvent("attachedToTarget", "S1", "", ""), sessionEvent("attachedToTarget", "S2", "S1", ""),
		sessionEvent("attachedToTarget", "S3", "", ""), sessionEvent("detachedFromTarget", "S3", "", ""),
		sessionEvent("attachedToTarget", "S4", "", long),
	}
	for _, text := range said {
		done := meanwhile(func() { chrome.say(text) })
		wantRead(t, a, text)
		<-done
	}

	w, err := a.NextWriter(websocket.TextMessage) // it dies in the middle of a command
	if err != nil {
		t.Fatal(err)
	}
	done := meanwhile(func() {
		_, _ = io.WriteString(w, strings.Repeat("y", 3*pipeSize))
		a.NetConn().Close()
	})
	if got := chrome.next(); strings.Trim(got, "y") != "" {
		t.Errorf("Chrome hears %.100q of a command that broke off", got)
	}
	<-done
	chrome.hearsReset()
	roots := map[string]bool{}
	for range 2 {
		text := chrome.next()
		for _, id := range []string{"S1", "S2", "S3", "S4"} {
			if strings.Contains(text, `"Target.detachFromTarget"`) && strings.Contains(text, `"`+id+`"`) {
				roots[id] = true
			}
		}
	}
	if len(roots) != 2 || !roots["S1"] || !roots["S4"] {
		t.Errorf("detached: %v, want S1 and S4", roots)
	}
	id := chrome.hears("Browser.getVersion", "")
	chrome.say(`{"method":"late"}`)
	chrome.say(sessionEvent("attachedToTarget", "S5", "", ""))
	chrome.say(fmt.Sprintf(`{"id":%d,"result":{}}`, id))
	chrome.hears("Target.detachFromTarget", `"S5"`)
	id = chrome.hears("Browser.getVersion", "")
	chrome.say(`{"method":"later"}`)
	chrome.say(fmt.Sprintf(`{"id":%d,"result":{}}`, id))

	b := mustDial(t, socket)
	tell(t, b, "hello")
	if got := chrome.next(); got != "hello" {
		t.Errorf("Chrome hears %.100s, want the next proxy", got)
	}
	chrome.say(`{"id":1000000000,"result":{}}`)
	wantRead(t, b, `{"id":1000000000,"result":{}}`)

	if _, err := dialRelay(t, socket); err == nil {
		t.Error("a second proxy is let in beside the first")
	}
	proven := make(chan error, 1)
	go func() { proven <- Prove(t.Context(), upstreamURL(socket)) }()
	chrome.say(fmt.Sprintf(`{"id":%d,"result":{}}`, chrome.hears("Browser.getVersion", "")))
	if err := <-proven; err != nil {
		t.Errorf("proof beside a proxy: %v", err)
	}
	chrome.say(`{"method":"on"}`)
	wantRead(t, b, `{"method":"on"}`)
}

// Who waits for a Chrome that ends is told, and a proxy that does not read
// keeps Chrome from nothing.
func TestRelayEnds(t *testing.T) {
	p, chrome, socket := testRelay(t)
	conn := mustDial(t, socket)
	tell(t, conn, "first")
	chrome.next()
	stuck := meanwhile(func() {
		for range 100 {
			chrome.say(strings.Repeat("x", pipeSize))
		}
	})
	select {
	case <-stuck:
		t.Fatal("what the proxy does not read is kept")
	case <-time.After(100 * time.Millisecond):
	}
	p.quit()
	<-stuck
	chrome.hears("Browser.close", "")
	proven := make(chan error, 1)
	go func() { proven <- Prove(t.Context(), upstreamURL(socket)) }()
	chrome.hears("Browser.getVersion", "")
	chrome.out.Close()
	if err := <-proven; err == nil {
		t.Error("a Chrome that is gone is proven")
	}
}
