package engine

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/runs"
)

func TestResultsBehindAnErrorAreHandled(t *testing.T) {
	t.Parallel()
	b := newBeside(t.Context())
	first, last, handled := errors.New("the first"), errors.New("the last"), 0
	for _, err := range []error{first, nil, last} {
		b.deliver(func(context.Context) error { handled++; return err })
	}
	if err := b.handleResults(t.Context()); handled != 3 || !errors.Is(err, first) || !errors.Is(err, last) {
		t.Errorf("%d of 3 are handled: %v", handled, err)
	}
}

// slowList is a driver that takes a while to say what it has.
type slowList struct{ executor.Driver }

func (slowList) Refresh(context.Context) error {
	<-time.After(time.Minute)
	return errors.New("it is away")
}

// The list of a driver comes after the run that waited for it was cancelled. The race
// detector sees whether both have the same variables.
func TestListThatComesAfterACancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := New(Options{Driver: slowList{}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		r := newRunner(e, runs.Run{})
		r.cancel()
		if known, err := r.awaitKnown(t.Context()); known != nil || err != nil || !r.cancelling {
			t.Errorf("%v, %v, cancelling %t", known, err, r.cancelling)
		}
		<-r.looks.Idle()
	})
}
