package reconciler

import (
	"context"
	"encoding/json"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
)

// attempt is one that was submitted and not released, with what this server knows of it
// beside its record. The driver's lock guards it.
type attempt struct {
	Attempt

	exit    json.RawMessage // as its shim says, until there is an outcome
	outcome *Outcome
	seen    JobStatus
	known   bool       // the cluster has a job for it
	account *JobStatus // what the cluster's accounts say of a job that it does not list any more

	added     time.Time       // to what this server knows
	ours      bool            // it was submitted to this server
	permit    executor.Permit // of whoever did; nil: it may be started by any server
	number    string          // of its job, for people
	lastNode  string          // where its job was last listed
	suspended []executor.Span

	starting  bool      // it is being handed over, or about to be
	tries     int       // to start it
	handed    time.Time // when the cluster last took it
	refusal   string    // why the cluster does not take it
	refusedAt time.Time // since when
	retryAt   time.Time // when it is handed over again

	asOf      time.Time // of what the cluster last said
	pendingAt time.Time // when this server last knew that it had not begun; zero if it never did
	missing   time.Time // since when the cluster says nothing of it, or that it has ended
	asked     time.Time // when the cluster's accounts were last asked about it
	failing   time.Time // since when its image cannot be had

	stopped        time.Time     // when this server first saw that it is to end
	signalled      time.Time     // when its job was last told
	signalledGrace time.Duration // with what grace
	ended          time.Time     // when the cluster was last told to end its job

	keepAt time.Time // before which keeping its outcome is not tried again
	told   executor.Status
}

// Refresh reads what is kept of all attempts, whichever server submitted them. All who wait
// for somebody else's read share the next one: after a takeover each run asks.
func (d *Driver) Refresh(ctx context.Context) error {
	return d.refreshSince(ctx, d.reads.Load())
}

// refreshSince reads unless a read has succeeded that began after so many.
func (d *Driver) refreshSince(ctx context.Context, begun int64) error {
	d.reading.Lock()
	defer d.reading.Unlock()
	if d.lastRead > begun {
		return nil
	}
	number := d.reads.Add(1)
	if err := d.readRecords(ctx); err != nil {
		return err
	}
	d.lastRead = number
	return nil
}

func (d *Driver) readRecords(ctx context.Context) error {
	at := d.config.Now()
	list, err := d.config.Records.List(ctx)
	if err != nil {
		return err
	}
	ends, err := d.newEnds(ctx, list)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	there := map[string]bool{}
	for _, kept := range list {
		if !d.released[kept.Job.ID].Before(at) {
			continue // meanwhile
		}
		there[kept.Job.ID] = true
		a := d.attempts[kept.Job.ID]
		if a == nil || a.Job.Fence != kept.Job.Fence {
			a = &attempt{}
			d.attempts[kept.Job.ID] = a
		}
		a.Attempt = kept
		if end, ok := ends[kept.Job.ID]; ok {
			a.take(end)
		}
		d.tell(a)
	}
	for id, a := range d.attempts {
		if !there[id] && a.added.Before(at) {
			delete(d.attempts, id) // another server has released it
		}
	}
	for id, when := range d.released {
		if at.Sub(when) > time.Minute {
			delete(d.released, id)
		}
	}
	d.read, d.took = at, d.config.Now().Sub(at)
	return nil
}

// newEnds are those that are not known here: they may be large, and stay as they are.
func (d *Driver) newEnds(ctx context.Context, list []Attempt) (map[string]End, error) {
	ends := map[string]End{}
	for _, kept := range list {
		d.mu.Lock()
		a := d.attempts[kept.Job.ID]
		known := a != nil && a.Job.Fence == kept.Job.Fence && (a.outcome != nil || a.exit != nil && !kept.Decided)
		d.mu.Unlock()
		if known || !kept.Reported && !kept.Decided {
			continue
		}
		end, err := d.config.Records.End(ctx, kept.Ref())
		if err != nil {
			return nil, err
		}
		ends[kept.Job.ID] = end
	}
	return ends, nil
}

func (a *attempt) take(end End) {
	a.exit = end.Exit
	if a.outcome == nil && end.Outcome != nil {
		a.outcome, a.exit = end.Outcome, nil
	}
}

// takeListing takes in what the cluster said of an attempt at a moment. The driver's
// lock is held.
func (a *attempt) takeListing(jobs map[string]JobStatus, asOf time.Time) {
	if a.handed.After(asOf) {
		return // it says nothing of the job yet
	}
	before := a.seen
	a.asOf = asOf
	a.seen, a.known = jobs[a.Job.Name]
	switch {
	case a.known:
		a.account = nil
		a.number = a.seen.Number
		if a.seen.Node != "" {
			a.lastNode = a.seen.Node
		}
		a.noteSuspended(before)
	case a.account != nil:
		a.seen, a.known = *a.account, true
	}
	if a.BeganAt.IsZero() && (a.known && a.seen.Waits || a.number == "" && !a.pendingAt.IsZero()) && asOf.After(a.pendingAt) {
		a.pendingAt = asOf
	}
	switch {
	case a.known && !a.seen.Ended:
		a.missing, a.asked = time.Time{}, time.Time{}
	case a.missing.IsZero():
		a.missing = asOf
	}
}

// noteSuspended notes the time in which the cluster suspends a job, since it last said
// something of it.
func (a *attempt) noteSuspended(before JobStatus) {
	if !a.seen.Suspended {
		return
	}
	if n := len(a.suspended); n > 0 && before.Suspended {
		a.suspended[n-1].To = a.asOf
		return
	}
	a.suspended = append(a.suspended, executor.Span{From: a.asOf, To: a.asOf})
}

// silentSince is since when neither the cluster lists a job that lives nor its shim says
// something.
func (a *attempt) silentSince() time.Time {
	since := a.missing
	for _, heard := range []time.Time{a.BeganAt, a.HeardAt} {
		if heard.After(since) {
			since = heard
		}
	}
	return since
}
