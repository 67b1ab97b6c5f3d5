package lease

import (
	"context"
	"slices"

	"cdpmux/lifecycle"
)

// Reasons are what a close may give as its reason. It is only recorded.
var Reasons = []string{"completed", "failed", "cancelled", "timed_out", "abandoned", "expired", "shutdown"}

// Outcome is how a close went.
type Outcome struct {
	Already bool // it was closed before, or never seen
	Receipt any
}

// Stop closes a lease, or joins the request that closes it, and waits until
// ctx ends; then err is ErrPending. An id that was never seen is closed from
// then on. An operator needs no token. A *ReleaseError says that it keeps its
// place.
func (r *Registry) Stop(ctx context.Context, q CloseRequest, operator bool) (Outcome, error) {
	f, already, err := r.beginStop(q, operator)
	if err != nil || f == nil {
		return Outcome{Already: already, Receipt: noReceipt{}}, err
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return Outcome{}, ErrPending
	}
	return Outcome{Already: already, Receipt: f.receipt}, f.err
}

// beginStop finds or begins the release; there is none of a tombstone.
func (r *Registry) beginStop(q CloseRequest, operator bool) (f *flight, already bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := r.records[q.ID]
	switch {
	case rec == nil && q.Token.text == "":
		return nil, false, errUnknown
	case rec == nil:
		now := r.cfg.Now()
		rec = &record{id: q.ID, digest: Digest(q.Token.text), state: Closing, tomb: true, unwanted: true, created: now, reason: q.Reason, release: newFlight()}
		if err := r.insert(rec); err != nil {
			return nil, false, err
		}
		r.flights.Go(func() { r.entomb(rec) })
		return rec.release, true, nil
	case !operator && !rec.opens(q.Token.text):
		return nil, false, errForbidden
	case rec.state == Closed:
		return nil, true, nil
	}
	if operator && !rec.opens(q.Token.text) {
		r.log.Warn().Str("session", rec.id).Str("client", rec.client.Name).Msg("the operator closes a session")
	}
	return r.unwant(rec, q.Reason), rec.tomb, nil
}

// unwant has a lease released as soon as that can be. mu is held.
func (r *Registry) unwant(rec *record, reason string) *flight {
	rec.unwanted = true
	if rec.reason == "" {
		rec.reason = reason
	}
	if rec.release == nil {
		if rec.creation == nil {
			r.letGo(rec)
		} else { // whoever makes it releases it
			rec.state, rec.release = Closing, newFlight()
		}
	}
	return rec.release
}

// letGo begins the release of what a lease holds. mu is held.
func (r *Registry) letGo(rec *record) {
	rec.state = Closing
	if rec.release == nil {
		rec.release = newFlight()
	}
	f := rec.release
	r.flights.Go(func() { r.free(rec, f) })
}

// free carries a release out.
func (r *Registry) free(rec *record, f *flight) {
	ctx, cancel := context.WithTimeout(r.ctx, r.cfg.ReleaseTimeout)
	receipt, err := r.world.Release(ctx, rec.client.Name)
	cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	rec.attempts++
	if err != nil {
		if receipt.Cleanup != nil {
			rec.survivors = receipt.Cleanup.Survivors
		}
		r.log.Error().Err(err).Str("session", rec.id).Str("client", rec.client.Name).Int("attempt", rec.attempts).Msg("session could not be released")
		f.err = &ReleaseError{Survivors: rec.survivors, Attempts: rec.attempts}
		r.unfreed(rec, f)
		return
	}
	for tomb, written := rec.endsAsTomb(), false; !written || tomb != rec.endsAsTomb(); { // a close may come while it is written down
		tomb, written = rec.endsAsTomb(), true
		if err := r.writeEnd(rec, tomb); err != nil {
			f.err = unwritten(err)
			r.unfreed(rec, f)
			return
		}
	}
	r.counts.Released++
	r.log.Info().Str("session", rec.id).Str("client", rec.client.Name).Str("reason", rec.reason).Msg("session is closed")
	f.receipt = receipt
	name := rec.client.Name
	if rec.endsAsTomb() {
		rec.bury(r.cfg.Now())
	} else {
		delete(r.records, rec.id)
	}
	r.mu.Unlock()
	r.world.Free(name)
	r.mu.Lock()
	close(f.done)
}

// endsAsTomb reports whether the id is closed with the lease. One whose start
// was late is free again, unless somebody has closed it.
func (rec *record) endsAsTomb() bool { return rec.unwanted || !rec.late }

// writeEnd puts the end of a lease into the journal. mu is held, but not while
// it writes.
func (r *Registry) writeEnd(rec *record, tomb bool) error {
	buried := *rec
	buried.bury(r.cfg.Now())
	r.mu.Unlock()
	defer r.mu.Lock()
	if !tomb {
		return r.journal.drop(buried.id)
	}
	return r.journal.append(buried.entry(Closed))
}

// unfreed says that a release was in vain: the lease keeps what it holds. mu
// is held, but not while that is written down.
func (r *Registry) unfreed(rec *record, f *flight) {
	now := r.cfg.Now()
	rec.tried = now
	if rec.failed.IsZero() {
		rec.failed = now
	}
	r.counts.ReleaseFailures++
	e := rec.entry(ReleaseFailed)
	r.mu.Unlock()
	err := r.journal.append(e)
	r.mu.Lock()
	if err != nil {
		r.log.Error().Err(err).Str("session", rec.id).Msg("failed release is not in the journal")
	}
	rec.state, rec.release = ReleaseFailed, nil
	close(f.done)
}

// entomb writes down a close of what holds nothing.
func (r *Registry) entomb(rec *record) {
	r.mu.Lock()
	buried, now := *rec, r.cfg.Now()
	r.mu.Unlock()
	buried.bury(now)
	err := r.journal.append(buried.entry(Closed))
	r.mu.Lock()
	defer r.mu.Unlock()
	f := rec.release
	defer close(f.done)
	if err != nil {
		f.err = unwritten(err)
		delete(r.records, rec.id)
		return
	}
	f.receipt = noReceipt{}
	rec.bury(now)
}

// ReleaseError is a close that has to be repeated: something is left, and the
// lease keeps its place.
type ReleaseError struct {
	Survivors int // processes of the browser
	Attempts  int
}

func (e *ReleaseError) Error() string { return releaseFailed.Text }

var releaseFailed = &lifecycle.Failure{Kind: lifecycle.SessionReleaseFailed, Text: "browser processes could not be verified gone"}

func (e *ReleaseError) Unwrap() error { return releaseFailed }

func validReason(reason string) bool { return slices.Contains(Reasons, reason) }
