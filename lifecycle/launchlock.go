package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"cdpmux/lifecycle/proc"
)

// LaunchLock lets the browsers of a machine start one at a time, in the order
// in which they asked. Each waiter has a ticket, a file in Dir; the oldest
// ticket whose process lives has the lock.
type LaunchLock struct {
	Dir  string        // made when missing; the same one for all stores (MachineDir)
	Wait time.Duration // how long to wait for the lock
}

// ticket is the content of a ticket's file.
type ticket struct {
	Store  string    `json:"store"`
	Proc   proc.ID   `json:"proc"`
	Boot   string    `json:"boot"`
	Queued time.Time `json:"queued"`
	Held   time.Time `json:"held,omitzero"` // since when it has the lock

	path string
}

// lockPoll is how often the queue is looked at: files tell nobody that they go.
const lockPoll = 25 * time.Millisecond

// Acquire waits for store's turn. The error is a *Failure of kind launch_busy
// when it does not come in time, or that of ctx.
func (l LaunchLock) Acquire(ctx context.Context, store string) (release func(), err error) {
	mine, err := l.queue(ctx, store)
	if err != nil {
		return nil, fmt.Errorf("launch lock: %w", err)
	}
	leave := func() { _ = os.Remove(mine.path) } // gone already is as good
	defer func() {
		if err != nil {
			leave()
		}
	}()
	deadline := time.NewTimer(l.Wait)
	defer deadline.Stop()
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	var front ticket
	changes := -1 // of the holder, while we waited
	for {
		first, waiting, err := l.front()
		if err != nil {
			return nil, fmt.Errorf("launch lock: %w", err)
		}
		if first.path == mine.path {
			mine.Held = time.Now()
			return leave, mine.write()
		}
		if first.path != front.path {
			changes++
		}
		front = first
		select {
		case <-poll.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-deadline.C:
			return nil, busy(mine, front, waiting-2, changes)
		}
	}
}

// busy is the refusal: who waited for whom, and whether anything moved.
func busy(mine, front ticket, others, changes int) *Failure {
	text := fmt.Sprintf("store %s waited %s for its turn to start a browser; store %s (pid %d) has had it for %s",
		mine.Store, time.Since(mine.Queued).Round(time.Second), front.Store, front.Proc.PID,
		time.Since(front.Held).Round(time.Second))
	if changes > 0 {
		return &Failure{
			Kind: LaunchBusy, Text: fmt.Sprintf("%s: contention, %d starts came before it and %d more wait", text, changes, others),
			Hint: "try again, or allow more with --lock-wait",
		}
	}
	return &Failure{
		Kind: LaunchBusy, Text: text + ": it is stuck",
		Hint: fmt.Sprintf("look into the log of store %s; ending its cdpmux (kill %d) frees the turn", front.Store, front.Proc.PID),
	}
}

// queue draws a ticket, behind all others.
func (l LaunchLock) queue(ctx context.Context, store string) (ticket, error) {
	if err := privateDir(l.Dir); err != nil {
		return ticket{}, err
	}
	counter := flock.New(filepath.Join(l.Dir, "lock"), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(ctx, max(l.Wait, time.Second))
	defer cancel()
	if _, err := counter.TryLockContext(ctx, lockPoll); err != nil {
		return ticket{}, err
	}
	defer counter.Unlock()
	names, err := l.names()
	if err != nil {
		return ticket{}, err
	}
	last := 0
	if len(names) > 0 {
		if _, err := fmt.Sscanf(names[len(names)-1], ticketName, &last); err != nil {
			return ticket{}, err
		}
	}
	t := ticket{
		Store: store, Proc: proc.Identify(os.Getpid()), Boot: proc.Boot(), Queued: time.Now(),
		path: filepath.Join(l.Dir, fmt.Sprintf(ticketName, last+1)),
	}
	return t, t.write()
}

const ticketName = "launch-%09d.json"

// names lists the tickets, the oldest first.
func (l LaunchLock) names() ([]string, error) {
	entries, err := os.ReadDir(l.Dir) // sorted
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if ok, _ := filepath.Match("launch-?????????.json", e.Name()); ok {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// front returns the ticket that has the lock, and how many there are. Tickets
// of the dead before it are thrown away.
func (l LaunchLock) front() (ticket, int, error) {
	names, err := l.names()
	if err != nil {
		return ticket{}, 0, err
	}
	boot := proc.Boot()
	for i, name := range names {
		t := ticket{path: filepath.Join(l.Dir, name)}
		data, err := os.ReadFile(t.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return ticket{}, 0, err
		}
		if json.Unmarshal(data, &t) == nil && t.Boot == boot && t.Proc.Alive() {
			return t, len(names) - i, nil
		}
		_ = os.Remove(t.path)
	}
	return ticket{}, 0, errors.New("our place in the queue was removed by somebody")
}

func (t ticket) write() error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return WriteFile(t.path, data)
}
