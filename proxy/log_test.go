package proxy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"cdpmux/proxy/proxytest"
)

// lines is a writer that passes on each line of a log.
type lines chan []byte

func (l lines) Write(p []byte) (int, error) {
	l <- append([]byte(nil), p...)
	return len(p), nil
}

func TestOneLinePerConnection(t *testing.T) {
	log := make(lines, 100)
	s := startServer(t, func(s *testServer) { s.log = zerolog.New(log) })
	old := proxytest.Dial(t, s.ws("/client-1a2b3c4d5e6f-w2"))
	old.Call("", "Browser.getVersion", nil)
	newer := proxytest.Dial(t, s.ws("/client-1a2b3c4d5e6f-w2"))
	old.CloseStatus()
	old.Drop()
	ended := func() (line struct {
		Level, Client, Reason, Message string
		Code                           int
	}) {
		for text := range log {
			if err := json.Unmarshal(text, &line); err != nil {
				t.Fatal(err)
			}
			if line.Client != "" {
				break
			}
		}
		return line
	}
	if l := ended(); l.Level != "error" || !strings.Contains(l.Message, "1a2b3c4d-w2") || !strings.Contains(l.Message, "--worker") || l.Client != "1a2b3c4d-w2" || l.Reason != "taken_over" || l.Code != 4409 {
		t.Errorf("line %+v", l)
	}
	newer.Close()
	if l := ended(); l.Level != "info" || l.Reason != "client_left" || l.Message != "connection ended: client left" {
		t.Errorf("line %+v", l)
	}
}
