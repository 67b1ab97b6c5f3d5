package routing

import (
	"maps"
	"math"
	"slices"
	"testing"
)

// Ids begin where they are told to, and after the last one with the least.
// What a browser still answers to the Router before is nobody's.
func TestFirstID(t *testing.T) {
	for first, from := range map[int32]int32{0: firstID, 1_500_000_000: 1_500_000_000, math.MaxInt32: firstID} {
		p := newPlayer(t)
		p.r = New(Config{FirstID: first})
		p.step("start")
		p.step("open c1 alice")
		p.step(`c1> {"id":1,"method":"Target.createTarget","params":{"url":"u"}}`)
		p.step(`c1> {"id":2,"method":"Target.createTarget","params":{"url":"u"}}`)
		ids := slices.Sorted(maps.Keys(p.r.requests))
		if len(ids) != 2 || ids[0] < from || ids[1] > from+100 {
			t.Errorf("first %d: ids %d, want two from %d", first, ids, from)
		}
		if out := p.step(`b> {"id":1900000000,"result":{"targetId":"PAGE1"}}`); len(out) > 0 || len(p.r.requests) != len(ids) {
			t.Errorf("a late reply brings about %q", out)
		}
	}
}
