package chrome

import (
	"net/url"
	"testing"

	"cdpmux/lifecycle"
)

func TestAttachToChrome(t *testing.T) {
	c := newChrome(t, testConfig(t))
	ws := start(t, c)
	u, err := url.Parse(ws)
	if err != nil {
		t.Fatal(err)
	}
	for _, endpoint := range []string{"http://" + u.Host, "http://" + u.Host + "/", ws} {
		a, err := lifecycle.NewAttach(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		if got := start(t, a); got != ws {
			t.Errorf("%s: %s, want %s", endpoint, got, ws)
		}
		if r := a.Stop(t.Context()); r.Method != lifecycle.MethodNone {
			t.Errorf("stop: %+v", r)
		}
		if err := a.Probe(t.Context()); err != nil {
			t.Errorf("probe: %v", err)
		}
	}
	if err := c.Probe(t.Context()); err != nil {
		t.Errorf("after the stops: %v", err)
	}
}
