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
