package lease

import (
	"context"
	"errors"
	"time"

	"cdpmux/lifecycle"
)

// Create makes the lease that was asked for, or joins the request that makes
// it, and waits for it until ctx ends. replayed: another request made it.
// While it is being made, err is ErrPending.
func (r *Registry) Create(ctx context.Context, q Request) (s Session, replayed bool, err error) {
	rec, f, replayed, err := r.begin(q)
	if err != nil {
		return Session{}, false, err
	}
	if f != nil {
		select {
		case <-f.done:
		case <-ctx.Done():
			return Session{}, false, ErrPending
		}
		if f.err != nil {
			return Session{}, false, f.err
		}
	}
	s, ok := r.session(rec)
	if !ok { // closed since
		return Session{}, false, errClosed
	}
	return s, replayed, nil
}

// ErrPending says that what was asked for is under way, and goes on.
var ErrPending = errors.New("under way")

// begin finds the lease of a request, or starts to make it. The flight is nil
// when it is ready.
func (r *Registry) begin(q Request) (rec *record, f *flight, replayed bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.cfg.Now()
	rec = r.records[q.ID]
	switch {
	case rec == nil:
	case !rec.opens(q.Token.text):
		return nil, nil, false, errForbidden
	case rec.state == Closed:
		return nil, nil, false, errClosed
	case !rec.tomb && rec.fingerprint != q.fingerprint():
		return nil, nil, false, errConflict
	case rec.state == Ready:
		rec.touched = now
		return rec, nil, true, nil
	case rec.state == ReleaseFailed || rec.late:
		return nil, nil, false, errUnfinished
	case rec.state == Closing:
		return nil, nil, false, errClosed
	default:
		return rec, rec.creation, true, nil
	}
	if r.ending {
		return nil, nil, false, &lifecycle.Failure{Kind: lifecycle.Draining, Text: "proxy is shutting down"}
	}
	rec = &record{
		id: q.ID, digest: Digest(q.Token.text), fingerprint: q.fingerprint(), client: q.Client,
		state: Creating, created: now, touched: now, creation: newFlight(),
	}
	if err := r.insert(rec); err != nil {
		return nil, nil, false, err
	}
	f = rec.creation
	r.flights.Go(func() { r.make(rec, f) })
	return rec, f, false, nil
}

// make carries a creation out. It alone changes the record meanwhile, but for
// unwanted, and late.
func (r *Registry) make(rec *record, f *flight) {
	err := r.world.Refused()
	if err == nil {
		err = r.world.Reserve(rec.client, rec.digest, Creating)
	}
	if err != nil {
		r.unmade(rec, f, err)
		return
	}
	stop := r.watch(rec, f)
	receipt, err := r.world.Start(r.ctx)
	stop()
	if err != nil {
		r.world.Free(rec.client.Name)
		r.unmade(rec, f, err)
		return
	}
	r.mu.Lock()
	rec.granted, rec.receipt = true, receipt
	r.counts.Acquired++
	wanted, ready := !rec.unwanted && !rec.late, rec.entry(Ready)
	r.mu.Unlock()
	if wanted {
		err = r.journal.append(ready)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rec.creation = nil
	switch {
	case rec.late: // f has ended
	case rec.unwanted:
		f.err = errClosed
	case err != nil:
		f.err = unwritten(err)
		rec.late = true // it is not had, and has to be given back
	default:
		rec.state = Ready
		r.log.Info().Str("session", rec.id).Str("client", rec.client.Name).Msg("session is ready")
	}
	if !isDone(f) {
		close(f.done)
	}
	if rec.state != Ready {
		r.letGo(rec)
	}
}

// watch tells who waits for a creation when it passes its time. The creation
// goes on: it is the registry's, and what comes of it will be released.
func (r *Registry) watch(rec *record, f *flight) (stop func()) {
	if r.cfg.StartTimeout <= 0 {
		return func() {}
	}
	timer := time.AfterFunc(r.cfg.StartTimeout, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if rec.creation != f || isDone(f) || rec.granted {
			return
		}
		rec.late = true
		f.err = &lifecycle.Failure{Kind: lifecycle.LaunchTimeout, Text: "the browser is not up after " + r.cfg.StartTimeout.String() + "; should it come, it is let go again"}
		close(f.done)
		r.log.Warn().Str("session", rec.id).Dur("after", r.cfg.StartTimeout).Msg("start of a session is late")
	})
	return func() { timer.Stop() }
}

// unmade ends a creation that came to nothing: the id is free again, unless a
// close came meanwhile.
func (r *Registry) unmade(rec *record, f *flight, err error) {
	r.mu.Lock()
	rec.creation = nil
	if !rec.unwanted {
		delete(r.records, rec.id)
	} else {
		rec.tomb = true
		r.flights.Go(func() { r.entomb(rec) })
		err = errClosed
	}
	if !isDone(f) {
		f.err = err
		close(f.done)
	}
	r.mu.Unlock()
}

func isDone(f *flight) bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}
