package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store/storetest"
)

// slowJournal takes until it is released to say what is known of a run.
type slowJournal struct {
	engine.Journal
	release chan struct{}
}

func (j slowJournal) RecordOf(ctx context.Context, id ids.Run) (runs.Record, error) {
	<-j.release
	return j.Journal.RecordOf(ctx, id)
}

// marks are the runs that the server works on itself.
func (s *shop) marks() (list []string) {
	entries, _ := os.ReadDir(filepath.Join(s.dir, ".suspects"))
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestARunThatKeepsTheServerBusyIsMarkedMeanwhile(t *testing.T) {
	t.Parallel()
	s := newShop(t, storetest.SQLite(t))
	slow := slowJournal{s.db, make(chan struct{})}
	s.journal = slow
	s.open("w1")
	id := s.submit(`{"nodes":[{"id":"a","command":"true"}]}`, `{}`)
	for deadline := time.Now().Add(time.Minute); strings.Join(s.marks(), " ") != string(id); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("marked is %v", s.marks())
		}
	}
	close(slow.release)
	if r := s.await(id, terminal); r.Status != lifecycle.Completed || len(s.marks()) != 0 {
		t.Errorf("%s, and marked is %v", r.Status, s.marks())
	}
}

// The server goes down over a run again and again: a task of it lives on, and
// is not lost by that, but the third time the run is.
func TestTheThirdCrashInterruptsARun(t *testing.T) {
	each(t, func(t *testing.T, s *shop) {
		stop := s.open("w0")
		id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: await=go"}]}`, `{}`)
		honest := s.submit(`{"nodes":[{"id":"a","command":"# dummy: await=go"}]}`, `{}`)
		for _, one := range []ids.Run{id, honest} {
			s.await(one, func(runs.Run) bool { return strings.Contains(s.story(one), "node.started") })
		}
		for crash := 1; crash <= 3; crash++ {
			stop()
			if err := os.WriteFile(filepath.Join(s.dir, ".suspects", string(id)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			stop = s.open("w" + strings.Repeat("'", crash))
			r := s.await(id, func(r runs.Run) bool { return r.Losses == crash || r.Status.Terminal() })
			if r.Status.Terminal() != (crash == 3) {
				t.Fatalf("after %d crashes it is %s: %s", crash, r.Status, r.ErrorMessage)
			}
		}
		if r := s.await(id, terminal); r.Status != lifecycle.Interrupted || r.ErrorCode != lifecycle.WorkerLost {
			t.Errorf("%s %s", r.Status, r.ErrorCode)
		}
		if r := s.await(honest, func(r runs.Run) bool { return true }); r.Losses != 0 || r.Status != lifecycle.Running {
			t.Errorf("the other run is %s and was lost %d times", r.Status, r.Losses)
		}
	})
}
