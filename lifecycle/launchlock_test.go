package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cdpmux/lifecycle/proc"
)

func testLock(t *testing.T, wait time.Duration) LaunchLock {
	return LaunchLock{Dir: filepath.Join(t.TempDir(), "m"), Wait: wait}
}

func acquire(t *testing.T, l LaunchLock, store string) func() {
	t.Helper()
	release, err := l.Acquire(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

func TestLaunchesAreSerialised(t *testing.T) {
	l := testLock(t, time.Minute)
	var inside, most atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			release := acquire(t, l, fmt.Sprint("s", i))
			defer release()
			if n := inside.Add(1); n > 1 {
				most.Store(n)
			}
			time.Sleep(3 * time.Millisecond) // what is being serialised
			inside.Add(-1)
		})
	}
	wg.Wait()
	if most.Load() > 1 {
		t.Errorf("%d at once", most.Load())
	}
	if left, err := l.names(); err != nil || len(left) > 0 {
		t.Errorf("tickets left: %v, %v", left, err)
	}
}

func TestLaunchLockIsFirstComeFirstServed(t *testing.T) {
	l := testLock(t, time.Minute)
	release := acquire(t, l, "holder")
	var mu sync.Mutex
	var order []int
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() {
			done := acquire(t, l, "waiter")
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			done()
		})
		eventually(t, "a ticket", func() bool { names, _ := l.names(); return len(names) == i+2 })
	}
	release()
	wg.Wait()
	if fmt.Sprint(order) != "[0 1 2 3 4]" {
		t.Errorf("order %v", order)
	}
}

func TestLaunchLockTellsStuckFromBusy(t *testing.T) {
	l := testLock(t, 60*time.Millisecond)
	acquire(t, l, "slow")
	_, err := l.Acquire(t.Context(), "mine")
	f := wantFailure(t, err, LaunchBusy)
	for _, want := range []string{"store mine waited", fmt.Sprintf("store slow (pid %d)", os.Getpid()), "stuck"} {
		if !strings.Contains(f.Text, want) {
			t.Errorf("%q says nothing of %q", f.Text, want)
		}
	}

	l = testLock(t, time.Minute)
	first := acquire(t, l, "first")
	got := make(chan struct{})
	go func() { acquire(t, l, "second"); close(got) }()
	eventually(t, "a ticket", func() bool { names, _ := l.names(); return len(names) == 2 })
	short := LaunchLock{l.Dir, time.Second}
	refused := make(chan error)
	go func() { _, err := short.Acquire(t.Context(), "third"); refused <- err }()
	eventually(t, "a ticket", func() bool { names, _ := l.names(); return len(names) == 3 })
	time.Sleep(2 * lockPoll) // so that the third has seen the first hold it
	first()
	<-got
	if f := wantFailure(t, <-refused, LaunchBusy); !strings.Contains(f.Text, "store second") || !strings.Contains(f.Text, "contention") {
		t.Errorf("%q", f.Text)
	}
}

// A holder that is killed gives the lock back, and so does one of an earlier
// boot, or one whose pid somebody else has now.
func TestLaunchLockOfTheDead(t *testing.T) {
	l := testLock(t, 5*time.Second)
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	live := proc.Identify(cmd.Process.Pid)
	for i, dead := range []ticket{
		{Proc: proc.ID{PID: live.PID, Ticks: live.Ticks + 1}, Boot: proc.Boot()},
		{Proc: live, Boot: "an earlier one"},
	} {
		release := acquire(t, l, "once") // makes the directory
		release()
		dead.Store, dead.path = "dead", filepath.Join(l.Dir, fmt.Sprintf(ticketName, i+1))
		if err := dead.write(); err != nil {
			t.Fatal(err)
		}
		acquire(t, l, "mine")()
	}
	holder := ticket{Store: "killed", Proc: live, Boot: proc.Boot(), Held: time.Now(), path: filepath.Join(l.Dir, fmt.Sprintf(ticketName, 1))}
	if err := holder.write(); err != nil {
		t.Fatal(err)
	}
	got := make(chan func())
	go func() { got <- acquire(t, l, "mine") }()
	eventually(t, "a ticket", func() bool { names, _ := l.names(); return len(names) == 2 })
	select {
	case <-got:
		t.Fatal("two hold the lock")
	case <-time.After(3 * lockPoll):
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	(<-got)()
}

func TestLaunchLockCallerGivesUp(t *testing.T) {
	l := testLock(t, time.Minute)
	acquire(t, l, "holder")
	ctx, cancel := context.WithCancel(t.Context())
	refused := make(chan error)
	go func() { _, err := l.Acquire(ctx, "mine"); refused <- err }()
	eventually(t, "a ticket", func() bool { names, _ := l.names(); return len(names) == 2 })
	cancel()
	if err := <-refused; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if names, _ := l.names(); len(names) != 1 {
		t.Errorf("tickets %v, want the holder's only", names)
	}
}
