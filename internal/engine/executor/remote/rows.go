package remote

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/millrace/millrace/internal/attempts"
)

// rowsLive is how old the rows in memory may be.
const rowsLive = 300 * time.Millisecond

// fresh reads the rows again if they are old.
func (d *Driver) fresh(ctx context.Context) error {
	d.mu.Lock()
	old := d.config.Now().Sub(d.read) >= rowsLive
	d.mu.Unlock()
	if !old {
		return nil
	}
	return d.Refresh(ctx)
}

// Refresh reads what is kept of all attempts, whichever server submitted them.
func (d *Driver) Refresh(ctx context.Context) error {
	d.reading.Lock()
	defer d.reading.Unlock()
	at := d.config.Now()
	rows, err := d.config.Store.AttemptsIn(ctx, d.config.Scope)
	if err != nil {
		return err
	}
	ends, err := d.newEnds(ctx, rows)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	there := map[string]bool{}
	for _, row := range rows {
		if !d.released[row.ID].Before(at) {
			continue // meanwhile
		}
		there[row.ID] = true
		a := d.attempts[row.ID]
		if a == nil || a.row.Fence != row.Fence {
			a = &attempt{}
			if err := json.Unmarshal(row.About, &a.about); err != nil {
				d.config.Log.ErrorContext(ctx, "cannot read what an earlier server submitted", slog.String("attempt", row.ID), slog.Any("error", err))
				continue
			}
			a.name = a.about.Job.Name
			d.attempts[row.ID] = a
		}
		a.row = row
		if end, ok := ends[row.ID]; ok {
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
	d.read = at
	return nil
}

// newEnds are those that are not known here: they may be large, and stay as they are.
func (d *Driver) newEnds(ctx context.Context, rows []attempts.Attempt) (map[string]attempts.End, error) {
	ends := map[string]attempts.End{}
	for _, row := range rows {
		d.mu.Lock()
		a := d.attempts[row.ID]
		known := a != nil && a.row.Fence == row.Fence && (a.outcome != nil || a.exit != nil && !row.Decided)
		d.mu.Unlock()
		if known || !row.Said && !row.Decided {
			continue
		}
		end, err := d.config.Pieces.AttemptEnd(ctx, row.ID, row.Fence)
		if err != nil {
			return nil, err
		}
		ends[row.ID] = end
	}
	return ends, nil
}

func (a *attempt) take(end attempts.End) {
	a.exit = end.Exit
	var o outcome
	if a.outcome == nil && end.Outcome != nil && json.Unmarshal(end.Outcome, &o) == nil {
		a.outcome, a.exit = &o, nil
	}
}
