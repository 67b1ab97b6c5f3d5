package routing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestTabCap uses tabs at random and checks which one goes against a model:
// the one used least recently, but for the newest.
func TestTabCap(t *testing.T) {
	const limit = 30
	p := newPlayer(t)
	p.r = New(Config{TabCap: limit})
	p.step("start")
	p.step("open c1 alice")
	rng := rand.New(rand.NewPCG(7, 0))
	var order []string // least recently used first
	n, id := 0, 10
	for range max(100, int(10_000*testScale(t))) {
		id++
		if len(order) > 0 && rng.IntN(3) > 0 {
			i := rng.IntN(len(order))
			used := order[i]
			order = append(slices.Delete(order, i, i+1), used)
			p.step(fmt.Sprintf(`c1> {"id":%d,"method":"Target.activateTarget","params":{"targetId":"%s"}}`, id, used))
			p.step(`b< Target.activateTarget "result":{}`)
			continue
		}
		n++
		page := fmt.Sprintf("PAGE%d", n)
		p.step(fmt.Sprintf(`c1> {"id":%d,"method":"Target.createTarget","params":{"url":"u"}}`, id))
		p.step(`b> {"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"` + page + `","type":"page","title":"","url":"u","attached":false}}}`)
		out := p.step(`b< Target.createTarget "result":{"targetId":"` + page + `"}`)
		closed := ""
		for _, o := range out {
			if rest, ok := strings.CutPrefix(o, `>b {"id":#,"method":"Target.closeTarget","params":{"targetId":"`); ok {
				if closed != "" {
					t.Fatalf("more than one tab closed: %q", out)
				}
				closed = strings.TrimSuffix(rest, `"}}`)
			}
		}
		want := ""
		if len(order) == limit {
			want = order[0]
			order = order[1:]
		}
		if closed != want {
			t.Fatalf("tab %d: closed %q, want %q", n, closed, want)
		}
		if closed != "" {
			p.step(`b< Target.closeTarget "result":{"success":true}`)
			p.step(`b> {"method":"Target.targetDestroyed","params":{"targetId":"` + closed + `"}}`)
		}
		order = append(order, page)
		if err := p.r.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRejectTabs: a tab too many is refused, and a popup too many closed.
func TestRejectTabs(t *testing.T) {
	p := newPlayer(t)
	p.r = New(Config{TabCap: 1, RejectTabs: true})
	for _, line := range []string{
		"start", "open c1 alice",
		`c1> {"id":1,"method":"Target.createTarget","params":{"url":"u"}}`,
		`b> {"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"PAGE1","type":"page","title":"","url":"u","attached":false}}}`,
		`b< Target.createTarget "result":{"targetId":"PAGE1"}`,
	} {
		p.step(line)
	}
	out := p.step(`c1> {"id":2,"method":"Target.createTarget","params":{"url":"u"}}`)
	if len(out) != 1 || !strings.Contains(out[0], "--tab-cap") {
		t.Errorf("got %q, want an error that names --tab-cap", out)
	}
	out = p.step(`b> {"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"PAGE2","type":"page","title":"","url":"","attached":false,"openerId":"PAGE1"}}}`)
	if !slices.ContainsFunc(out, func(o string) bool { return strings.Contains(o, `closeTarget","params":{"targetId":"PAGE2"`) }) {
		t.Errorf("got %q, want the popup closed", out)
	}
}

// A client id may have a limit of its own; another client's stays.
func TestSetTabCap(t *testing.T) {
	p := newPlayer(t)
	p.r = New(Config{TabCap: 5, RejectTabs: true})
	p.r.SetTabCap("alice", 1)
	for _, line := range []string{"start", "open c1 alice", "open c2 bob"} {
		p.step(line)
	}
	ask := func(conn string, n int) (refused bool) {
		t.Helper()
		out := p.step(fmt.Sprintf(`%s> {"id":%d,"method":"Target.createTarget","params":{"url":"u"}}`, conn, n))
		return len(out) == 1 && strings.Contains(out[0], "--tab-cap")
	}
	if ask("c1", 1) || !ask("c1", 2) || ask("c2", 3) || ask("c2", 4) {
		t.Error("want one tab for alice, and more for bob")
	}
	p.r.Uncap("alice")
	if ask("c1", 5) {
		t.Error("alice is still limited")
	}
}
