package main

import (
	"strings"
	"testing"
)

func TestTraceCommand(t *testing.T) {
	d := startDouble(t)
	lines := strings.Join([]string{
		`{"time":"2030-01-01T00:00:00Z","kind":"waiting"}`,
		`{"time":"2030-01-01T00:00:00Z","kind":"connected","conn":7}`,
		`{"time":"2030-01-01T00:00:00Z","kind":"command","conn":7,"id":1,"method":"Page.navigate","session":"A1B2C3D4","target":"page","bytes":90}`,
		`{"time":"2030-01-01T00:00:00Z","kind":"reply","conn":7,"id":1,"method":"Page.navigate","session":"A1B2C3D4","target":"page","bytes":40,"latency_ms":12.34,"error":-32000}`,
		`{"time":"2030-01-01T00:00:00Z","kind":"lost","lost":9}`,
		`{"time":"2030-01-01T00:00:00Z","kind":"ended","conn":7,"reason":"client_left"}`,
		`{"time":"2030-01-01T00:00:00Z","kind":"gone"}`, "",
	}, "\n")
	d.says(200, lines)
	out, _ := d.run(t, exitOK, "trace", "--store", "demo", "--client", "alice")
	mustSay(t, out, "not there yet", "connected", "#1", "Page.navigate", "A1B2C3D4", "12.3 ms", "error -32000", "9 lines are missing", "client_left", "left for good")
	if d.asked[0] != "GET /v1/clients/alice/trace" {
		t.Errorf("asked %q", d.asked)
	}
	out, _ = d.run(t, exitOK, "trace", "--store", "demo", "--client", "alice", "--json")
	if out != lines {
		t.Errorf("--json changes lines:\n%s", out)
	}
	d.says(200, `{"time":"2030-01-01T00:00:00Z","kind":"connected","conn":7}`+"\n")
	_, errs := d.run(t, exitFailed, "trace", "--store", "demo", "--client", "alice")
	mustSay(t, errs, "the proxy ended the trace")
	_, errs = d.run(t, exitUsage, "trace", "--store", "demo", "--client", "a/b")
	mustSay(t, errs, "--client")
}
