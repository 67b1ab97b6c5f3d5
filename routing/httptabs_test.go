package routing

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPageSocketHoldsGrace: a client is there while any of its connections is;
// its grace begins with the end of the last one.
func TestPageSocketHoldsGrace(t *testing.T) {
	p := playerWithPage(t)
	p.r.clients["alice"].grace = time.Minute
	p.step("gone c1")
	p.step("tick 59s")
	p.step("page p1 alice PAGE1")
	closes := func(outcomes []string) bool {
		return slices.ContainsFunc(outcomes, func(o string) bool { return strings.Contains(o, "Target.closeTarget") })
	}
	if out := p.step("tick 100s"); closes(out) {
		t.Errorf("with a page socket: %q", out)
	}
	p.step("gone p1")
	if out := p.step("tick 59s"); closes(out) {
		t.Errorf("in grace: %q", out)
	}
	if out := p.step("tick 1s"); !closes(out) {
		t.Errorf("after it: %q, want the tab closed", out)
	}
}
