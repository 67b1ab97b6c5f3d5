package routing

import (
	"testing"
	"time"
)

// TestHotPathAllocates holds the router to nothing at all for a command, its
// reply and an event of a session.
func TestHotPathAllocates(t *testing.T) {
	p := playerWithPage(t)
	id := p.r.lastID + 1
	conn, now := p.conns["c1"], time.Unix(0, 0)
	command := []byte(`{"id":77,"method":"Runtime.evaluate","params":{"expression":"1"},"sessionId":"S1"}`)
	reply := []byte(`{"id":1000000000,"result":{"result":{"type":"number","value":1}},"sessionId":"S1"}`)
	event := []byte(`{"method":"Page.loadEventFired","params":{"timestamp":1},"sessionId":"S1"}`)
	m := &Message{Buf: make([]byte, 4096)}
	var env Envelope
	var out []Action
	fill := func(text []byte) *Message {
		m.Buf, m.Start = m.Buf[:Headroom+len(text)], Headroom
		copy(m.Buf[Headroom:], text)
		return m
	}
	count := func(name string, f func()) {
		t.Helper()
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
	count("command and reply", func() {
		if ref := ScanCommand(fill(command).Text(), &env); ref != nil {
			t.Fatal(ref)
		}
		out = p.r.FromClient(now, conn, m, &env, out[:0])
		for i, n := len(`{"id":`)+9, id; i >= len(`{"id":`); i, n = i-1, n/10 {
			reply[i] = byte('0' + n%10)
		}
		id++
		if !Scan(fill(reply).Text(), &env) {
			t.Fatal("reply does not scan")
		}
		if out = p.r.FromBrowser(now, m, &env, out[:0]); len(out) != 1 {
			t.Fatalf("reply ends in %d actions", len(out))
		}
	})
	count("event", func() {
		if !Scan(fill(event).Text(), &env) {
			t.Fatal("event does not scan")
		}
		if out = p.r.FromBrowser(now, m, &env, out[:0]); len(out) != 1 {
			t.Fatalf("event ends in %d actions", len(out))
		}
	})
}
