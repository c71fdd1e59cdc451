package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

// The server goes down over a run twice: a task of the run lives on and is not lost by
// that, but the run is not loaded a third time.
func TestTheSecondCrashInterruptsARun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		stop := s.open("w0")
		id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: await=go"}]}`, `{}`)
		honest := s.submit(`{"nodes":[{"id":"a","command":"# dummy: await=go"}]}`, `{}`)
		for _, one := range []ids.Run{id, honest} {
			s.await(one, func(runs.Run) bool { return strings.Contains(s.story(one), "node.started") })
		}
		for crash := 1; crash <= 2; crash++ {
			stop()
			if err := os.WriteFile(filepath.Join(s.dir, ".suspects", string(id)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			stop = s.open("w" + strings.Repeat("'", crash))
			r := s.await(id, func(r runs.Run) bool { return r.Losses == crash || r.Status.Terminal() })
			if r.Status.Terminal() != (crash == 2) {
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
