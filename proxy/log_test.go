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
	const command = `{"id":1,"method":"Browser.getVersion"}`
	old.Send(command)
	answer := len(old.Await(func(m proxytest.Msg) bool { return m.ID == "1" }).Raw)
	newer := proxytest.Dial(t, s.ws("/client-1a2b3c4d5e6f-w2"))
	old.CloseStatus()
	old.Drop()
	ended := func() (line struct {
		Level, Client, Reason, Message string
		Code                           int
		InMessages                     int64 `json:"in_messages"`
		InBytes                        int64 `json:"in_bytes"`
		OutMessages                    int64 `json:"out_messages"`
		OutBytes                       int64 `json:"out_bytes"`
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
	} else if l.InMessages != 1 || l.InBytes != int64(len(command)) || l.OutMessages != 1 || l.OutBytes != int64(answer) {
		t.Errorf("line %+v, want one message of %d bytes in, one of %d out", l, len(command), answer)
	}
	newer.Close()
	if l := ended(); l.Level != "info" || l.Reason != "client_left" || l.Message != "connection ended: client left" {
		t.Errorf("line %+v", l)
	}
}
