package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/proc"
)

// Handle is a proxy's hold on a keeper. While it lives, the keeper does not
// count its grace.
type Handle struct {
	Keeper proc.ID

	conn    net.Conn
	printed func(line string)
	greeted chan struct{} // closed when the keeper has said something, or is lost
	settled chan struct{} // closed when the browser is ready, or ended
	ended   chan struct{} // closed when it has ended, or the keeper is lost
	closed  chan struct{} // closed when nothing more comes

	mu   sync.Mutex
	last Report
}

// ErrLost is the end of a keeper that did not say goodbye.
var ErrLost = errors.New("the browser's keeper is gone")

// ErrKept is the refusal of Lock: there is a keeper, with or without a record.
var ErrKept = errors.New("another keeper has the browser")

// Spawn starts a keeper by argv (`cdpmux keeper`, which calls Main) and gives
// it the lock and the spec. printed gets Chrome's lines, if the spec asks for
// them.
func Spawn(argv []string, lock *os.File, spec Spec, printed func(string)) (*Handle, error) {
	conn, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	// With our stderr, whoever waits for its end would wait for the keeper's.
	cmd.ExtraFiles = []*os.File{theirs, lock}
	cmd.SysProcAttr = ownSession(nil)
	if err := cmd.Start(); err != nil {
		conn.Close()
		return nil, fmt.Errorf("start the browser's keeper: %w", err)
	}
	h := newHandle(conn, proc.Identify(cmd.Process.Pid), printed)
	go func() { _ = cmd.Wait() }() // so that it does not stay a zombie
	if err := h.order(Order{Spec: &spec}); err != nil {
		conn.Close()
		return nil, fmt.Errorf("order to the browser's keeper: %w", err)
	}
	return h, nil
}

// Adopt connects to the keeper of a record. ErrLost: there is none any more.
func Adopt(ctx context.Context, rec *Record, printed func(string)) (*Handle, error) {
	if rec.Boot != proc.Boot() || !rec.Keeper.Alive() {
		return nil, ErrLost
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", rec.Socket)
	if err != nil {
		return nil, err
	}
	return newHandle(conn, rec.Keeper, printed), nil
}

func newHandle(conn net.Conn, id proc.ID, printed func(string)) *Handle {
	h := &Handle{
		Keeper: id, conn: conn, printed: printed,
		greeted: make(chan struct{}), settled: make(chan struct{}), ended: make(chan struct{}), closed: make(chan struct{}),
	}
	go h.read()
	return h
}

func (h *Handle) read() {
	defer close(h.closed)
	in := json.NewDecoder(h.conn)
	greeted, settled, ended := false, false, false
	for {
		var r Report
		err := in.Decode(&r)
		if err == nil && r.State == "" {
			h.printed(r.Line)
			continue
		}
		if err == nil {
			h.mu.Lock()
			h.last = r
			h.mu.Unlock()
		}
		if !greeted {
			greeted = true
			close(h.greeted)
		}
		if !settled && (err != nil || r.State != Starting) {
			settled = true
			close(h.settled)
		}
		if !ended && (err != nil || r.State == Ended) {
			ended = true
			close(h.ended)
		}
		if err != nil {
			return
		}
	}
}

// Last is the newest report.
func (h *Handle) Last() Report {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// Greeted waits until an adopted keeper has said how its browser is.
func (h *Handle) Greeted(ctx context.Context) error {
	select {
	case <-h.greeted:
		if h.Last().State == "" {
			return ErrLost
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ended is closed when the browser has ended, or its keeper was lost.
func (h *Handle) Ended() <-chan struct{} { return h.ended }

// HasEnded reports whether Ended is closed.
func (h *Handle) HasEnded() bool { return isClosed(h.ended) }

// Await waits until the browser is ready, and returns the report of that; or
// why it is not: a *lifecycle.Failure, ErrLost, or ctx's error.
func (h *Handle) Await(ctx context.Context) (Report, error) {
	select {
	case <-h.settled:
	case <-ctx.Done():
		return Report{}, ctx.Err()
	}
	switch r := h.Last(); {
	case r.State == Ready && !h.HasEnded():
		return r, nil
	case r.Failure != nil:
		return r, r.Failure
	case r.State == Ended:
		return r, &lifecycle.Failure{Kind: lifecycle.LaunchFailed, Text: "the browser was ended while it started"}
	}
	return Report{}, ErrLost
}

// Stop ends the browser and returns the receipt; ErrLost when the keeper dies,
// or is hung, before it has written one. It takes about as long as waits say,
// at worst.
func (h *Handle) Stop(waits Waits) (lifecycle.Receipt, error) {
	if err := h.order(Order{Stop: true}); err != nil {
		h.conn.Close()
	}
	select {
	case <-h.ended:
	case <-time.After(waits.Close + waits.Interrupt + waits.Rest + 3*waits.Kill + 5*time.Second):
		_ = h.Keeper.Signal(syscall.SIGKILL) // then the browser's pipe ends
		h.conn.Close()
		<-h.ended
	}
	r := h.Last()
	if r.State != Ended {
		return lifecycle.Receipt{}, ErrLost
	}
	if r.Receipt.Verified {
		h.Wait() // who is killed together with us must not be in the middle of it
	}
	return *r.Receipt, nil
}

// Gone reports whether the keeper has left.
func (h *Handle) Gone() bool { return isClosed(h.closed) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Wait waits until a keeper whose browser has ended is through with it; it
// lets go of one that cannot get rid of it.
func (h *Handle) Wait() {
	select {
	case <-h.closed:
	case <-time.After(time.Second):
	}
	h.Close()
}

// Close leaves the keeper to the next proxy.
func (h *Handle) Close() {
	h.conn.Close()
	<-h.closed
}

func (h *Handle) order(o Order) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_ = h.conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
	_, err = h.conn.Write(append(line, '\n'))
	return err
}
