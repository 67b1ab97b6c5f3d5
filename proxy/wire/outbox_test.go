package wire

import (
	"strings"
	"testing"

	"cdpmux/routing"
)

func TestOutboxKeepsOrderAndWakesOnce(t *testing.T) {
	o := newOutbox(1 << 20)
	o.push(routing.NewMessage("a"))
	o.push(routing.NewMessage("b"))
	<-o.wake
	select {
	case <-o.wake:
		t.Error("a second push woke the writer again")
	default:
	}
	batch, end := o.take(nil)
	if len(batch) != 2 || string(batch[0].Text()) != "a" || string(batch[1].Text()) != "b" || end != nil {
		t.Errorf("took %d messages, ending %v", len(batch), end)
	}
	o.push(routing.NewMessage("c"))
	select {
	case <-o.wake:
	default:
		t.Error("the first push after a take did not wake the writer")
	}
}

func TestOutboxCountsUntilWritten(t *testing.T) {
	o := newOutbox(2000)
	m := routing.NewMessage(strings.Repeat("x", 3000))
	size := Memory(m)
	if got := o.push(m); got != size {
		t.Errorf("%d bytes wait, want %d", got, size)
	}
	batch, _ := o.take(nil)
	if got, _ := o.state(); got != size {
		t.Errorf("%d bytes wait while they are written, want %d", got, size)
	}
	room := o.backlog()
	if room == nil {
		t.Fatal("no backlog above the mark")
	}
	o.written(Memory(batch[0]))
	select {
	case <-room:
	default:
		t.Error("the backlog did not end")
	}
	if o.backlog() != nil {
		t.Error("a backlog below the mark")
	}
}

func TestOutboxEnds(t *testing.T) {
	for _, drop := range []bool{false, true} {
		o := newOutbox(0)
		o.push(routing.NewMessage("before"))
		room := o.backlog()
		if !o.finish(Ending{Reason: TakenOver, Drop: drop}) {
			t.Error("the first ending did not count")
		}
		if o.finish(Ending{Reason: ClientLeft}) {
			t.Error("a second ending counted")
		}
		select {
		case <-room:
		default:
			t.Error("who waits for room was not told of the end")
		}
		o.push(routing.NewMessage("after"))
		batch, end := o.take(nil)
		if want := map[bool]int{false: 1, true: 0}[drop]; len(batch) != want {
			t.Errorf("drop %v: %d messages left, want %d", drop, len(batch), want)
		}
		if end == nil || end.Reason != TakenOver {
			t.Errorf("ending %+v", end)
		}
	}
}
