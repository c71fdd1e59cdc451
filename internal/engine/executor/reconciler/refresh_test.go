package reconciler

import (
	"context"
	"errors"
	"testing"
	"time"
)

// listed are records of nothing, which count how often they were read.
type listed struct {
	Records
	times int
	err   error
}

func (l *listed) List(context.Context) ([]Attempt, error) {
	l.times++
	return nil, l.err
}

// A thousand runs that are taken over at once read the records a few times, not a thousand.
func TestWhoeverWaitsForARefreshSharesTheNext(t *testing.T) {
	t.Parallel()
	records := &listed{}
	d := newDriver(Config{Records: records, Now: time.Now}, nil)
	before := d.reads.Load()
	for _, tt := range []struct {
		name  string
		begun int64
		err   error
		times int
	}{
		{"one that fails", before, errors.New("it is away"), 1},
		{"one that asked before", before, nil, 2}, // nothing was read for it
		{"others that asked before", before, nil, 2},
		{"one that asks after a read has begun", d.reads.Load() + 2, nil, 3},
	} {
		records.err = tt.err
		if err := d.refreshSince(t.Context(), tt.begun); !errors.Is(err, tt.err) || records.times != tt.times {
			t.Errorf("%s: %v after %d reads, want %d", tt.name, err, records.times, tt.times)
		}
	}
	if err := d.Refresh(t.Context()); err != nil || records.times != 4 {
		t.Errorf("one that asks now: %v after %d reads", err, records.times)
	}
}
