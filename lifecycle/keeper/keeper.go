package keeper

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"cdpmux/lifecycle"
	"cdpmux/lifecycle/proc"
)

// keeper is one run of the process: one browser, from exec until it is gone.
// Its fields belong to the goroutine of run, unless a line says otherwise.
type keeper struct {
	spec   Spec
	report Report // what is true now; a new proxy gets it first
	watch  *lifecycle.Watch
	remains

	// static after launch
	cmd    *exec.Cmd
	exited chan struct{} // closed when the root process has been reaped
	out    *output
	pipe   *pipe

	proxy  net.Conn // nil: there is none now
	events chan event
	lines  chan string
}

// event is something that a connection brings.
type event struct {
	conn  net.Conn
	fresh bool // it is a new proxy's
	order Order
	err   error // the connection ended
}

// retries is how often a cleanup that was not verified is tried again, and
// retryPause what lies between.
const (
	retries    = 3
	retryPause = 5 * time.Second
)

// Main is the keeper's process, with what Spawn has given it: the first proxy
// as file 3, and the lock as file 4. It returns when the browser is gone, or
// cannot be made to go.
func Main() error {
	closeOnExec(4)
	file := os.NewFile(3, "proxy")
	first, err := net.FileConn(file)
	if err != nil {
		return fmt.Errorf("serve starts the keeper; it has no use by hand (%w)", err)
	}
	file.Close()
	var order Order
	in := json.NewDecoder(first)
	if err := in.Decode(&order); err != nil {
		return err
	}
	if order.Spec == nil {
		return errors.New("the first order has no spec")
	}
	host, _ := os.Hostname()
	k := &keeper{
		spec:   *order.Spec,
		report: Report{State: Starting},
		watch:  lifecycle.NewWatch(),
		exited: make(chan struct{}),
		proxy:  first,
		events: make(chan event),
		lines:  make(chan string, 100),
	}
	w := &k.spec.Waits
	w.Close, w.Interrupt = cmp.Or(w.Close, DefaultWaits.Close), cmp.Or(w.Interrupt, DefaultWaits.Interrupt)
	w.Rest, w.Kill = cmp.Or(w.Rest, DefaultWaits.Rest), cmp.Or(w.Kill, DefaultWaits.Kill)
	k.remains = remains{killed: map[proc.ID]bool{}, rec: &Record{
		ID: k.spec.ID, Boot: proc.Boot(), Host: host, Keeper: proc.Identify(os.Getpid()),
		Profile: k.spec.Profile, TMPDIR: k.spec.TMPDIR, Socket: k.spec.Socket, Upstream: k.spec.Upstream, Started: time.Now(),
	}}
	defer func() { k.drop() }() // all is done: who waits for our end need not wait for the process
	go k.read(first, in)
	if k.spec.Socket != "" {
		l, err := listenUnix(k.spec.Socket)
		if err != nil {
			return k.failed(err)
		}
		defer l.Close()
		go k.accept(l)
	}
	adoptOrphans()
	if err := k.launch(); err != nil {
		if k.cmd == nil {
			k.clear()
			_ = os.Remove(k.spec.Record)
			return k.failed(err)
		}
		k.end(err)
	}
	return k.run()
}

// run lives with the browser.
func (k *keeper) run() error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	children := make(chan os.Signal, 1)
	signal.Notify(children, sigchld)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ready := make(chan error, 1)
	var ws string
	go func() {
		var err error
		ws, err = k.awaitReady(ctx)
		ready <- err
	}()
	lonely := time.NewTimer(k.spec.Grace) // only while there is no proxy
	lonely.Stop()
	exited := k.exited
	again := time.NewTimer(0)
	again.Stop()
	for tries := 0; ; {
		switch r := k.report.Receipt; {
		case r == nil:
		case r.Verified || tries > retries:
			return nil
		case tries == 0:
			tries++
			again.Reset(retryPause)
		}
		select {
		case err := <-ready:
			if k.report.Receipt != nil {
				continue
			}
			if err != nil {
				k.end(err)
				continue
			}
			k.held = true
			k.watch.Done("devtools", true)
			k.report.State, k.report.WS, k.report.Stages = Ready, ws, k.watch.Stages
			k.tell(k.report)
		case <-exited:
			exited = nil
			if k.report.State == Ready {
				k.end(nil)
			} // else awaitReady says why
		case e := <-k.events:
			switch {
			case e.fresh:
				k.take(e.conn)
				lonely.Stop()
			case e.conn != k.proxy:
			case e.err != nil:
				k.drop()
				lonely.Reset(k.spec.Grace)
			case e.order.Stop && k.report.Receipt == nil:
				k.end(nil)
			case e.order.Stop:
				k.retry()
			}
		case <-lonely.C:
			k.end(nil)
		case <-signals:
			k.end(nil)
		case <-again.C:
			k.retry()
			tries++
			again.Reset(retryPause)
		case <-children:
			reapOrphans(k.rec.Root.PID)
		case line := <-k.lines:
			k.tell(Report{Line: line})
		}
	}
}

// end ends the browser and says so; why is why it did not start, if so.
func (k *keeper) end(why error) {
	if k.report.Receipt != nil {
		return
	}
	receipt := k.ladder()
	k.report = Report{State: Ended, Root: k.rec.Root.PID, Receipt: &receipt, Tail: lastLines(k.out.lines(), "")}
	if why != nil {
		k.report.Failure = asFailure(why)
	}
	k.settle()
}

// retry tries again to get rid of what is left.
func (k *keeper) retry() {
	r := *k.report.Receipt
	if r.Verified {
		return
	}
	watch := &lifecycle.Watch{Stages: r.Stages}
	k.clean(&r, watch, k.spec.Waits, k.gone())
	k.report.Receipt = &r
	k.settle()
}

// settle leaves on record what the next proxy must know, and tells this one.
func (k *keeper) settle() {
	r := k.report.Receipt
	if r.Verified && (r.Method != lifecycle.MethodCrashed || k.report.Failure != nil) {
		_ = os.Remove(k.spec.Record)
	} else {
		k.rec.Receipt = r
		_ = k.rec.write(k.spec.Record) // without it, the next proxy sweeps what is left
	}
	k.tell(k.report)
}

// failed tells the proxy why there is no browser.
func (k *keeper) failed(err error) error {
	k.tell(Report{
		State: Ended, Failure: asFailure(err),
		Receipt: &lifecycle.Receipt{Incarnation: k.spec.ID, Method: lifecycle.MethodNone, Verified: true},
	})
	return err
}

func asFailure(err error) *lifecycle.Failure {
	var f *lifecycle.Failure
	if errors.As(err, &f) {
		return f
	}
	return &lifecycle.Failure{Kind: lifecycle.LaunchFailed, Text: err.Error()}
}

// printed passes one of Chrome's lines on, or loses it: nothing waits for it.
// Called by the reader of Chrome's output.
func (k *keeper) printed(line string) {
	if !k.spec.Verbose || line == "" {
		return
	}
	select {
	case k.lines <- line:
	default:
	}
}
