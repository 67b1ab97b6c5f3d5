package proxy

import (
	"testing"

	"github.com/gorilla/websocket"

	"cdpmux/proxy/proxytest"
)

// masked is one frame of a client, with a mask of zeros.
func masked(opcode byte, text string) []byte {
	return append([]byte{0x80 | opcode, 0x80 | byte(len(text)), 0, 0, 0, 0}, text...)
}

// What is routed together may be cut short by a frame that ends the
// connection: the commands before it are carried out.
func TestCommandsBeforeTheEndCount(t *testing.T) {
	for name, end := range map[string][]byte{
		"binary": masked(websocket.BinaryMessage, "x"),
		"close":  masked(websocket.CloseMessage, "\x03\xe8"),
		"broken": masked(7, "x"),
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, nil)
			c := proxytest.Dial(t, s.ws("/client-a"))
			c.Call("", "Browser.getVersion", nil)
			text := masked(websocket.TextMessage, `{"id":7,"method":"Storage.getUsageAndQuota"}`)
			after := masked(websocket.TextMessage, `{"id":8,"method":"Storage.clearTrustTokens"}`)
			c.SendBytes(append(append(append(text, text...), end...), after...))
			seen := 0
			s.browser.AwaitCommand(func(cmd proxytest.Command) bool {
				if cmd.Method == "Storage.getUsageAndQuota" {
					seen++
				}
				return seen == 2
			})
			c.CloseStatus()
			for _, cmd := range s.browser.Received() {
				if cmd.Method == "Storage.clearTrustTokens" {
					t.Error("a command behind the end was carried out")
				}
			}
		})
	}
}

// What came together in one read, in whatever pieces, is known to be whole.
func TestWholeMessagesAreKnown(t *testing.T) {
	c := &frameConn{on: true}
	fragment := masked(websocket.TextMessage, "ab")
	fragment[0] &^= 0x80
	c.follow(masked(websocket.TextMessage, "ab"))
	c.follow(masked(websocket.PingMessage, "ab"))
	c.follow(fragment)
	if c.taken() {
		t.Error("a message that has only begun is whole")
	}
	rest := append(masked(0, "cd"), masked(websocket.TextMessage, "")...)
	for _, b := range rest {
		c.follow([]byte{b})
	}
	if !c.taken() {
		t.Error("the last one is not whole")
	}
	if c.taken() {
		t.Error("there is one more")
	}
	for i, want := range []int{2, 2, 0} {
		if got := c.next(); got != want {
			t.Errorf("message %d begins with %d bytes, want %d", i, got, want)
		}
	}
}
