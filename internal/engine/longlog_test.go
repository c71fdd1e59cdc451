package engine_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/waittest"
)

// logOf is the log of a step, wherever its pieces are, and how many lie in objects.
func (s *harness) logOf(id ids.Run, node string) (text string, objects int) {
	s.t.Helper()
	pieces, err := s.db.NodeLogPieces(s.t.Context(), s.team, id, node, 0, 0, 1<<40)
	if err != nil {
		s.t.Fatal(err)
	}
	var all strings.Builder
	for _, p := range pieces {
		if p.NodeStart != int64(all.Len()) {
			s.t.Errorf("a piece begins at %d, and %d bytes came before it", p.NodeStart, all.Len())
		}
		if p.Object == "" {
			all.Write(p.Text)
			continue
		}
		objects++
		r, err := s.kept.Open(s.t.Context(), p.Object, p.ObjectStart, p.Size)
		if err != nil {
			s.t.Fatal(err)
		}
		if _, err := io.Copy(&all, r); err != nil {
			s.t.Error(err)
		}
		if err := r.Close(); err != nil {
			s.t.Error(err)
		}
	}
	return all.String(), objects
}

// awaitLog waits until so much of a log is kept, of which nobody may hear.
func (s *harness) awaitLog(id ids.Run, size int64) {
	s.t.Helper()
	if !waittest.Until(func() bool {
		kept, err := s.db.NodeLogSize(s.t.Context(), s.team, id, "talk", 0)
		if err != nil {
			s.t.Error(err)
		}
		return kept == size
	}) {
		s.t.Fatalf("not all of the log is kept\n%s", s.story(id))
	}
}

// unblockAll lets each attempt of the step go on, until the run has ended, and counts
// them: where everything fails now and then, one may be lost.
func (s *harness) unblockAll(id ids.Run) (attempts int) {
	s.t.Helper()
	seen := map[string]bool{}
	if !waittest.Until(func() bool {
		folders, err := filepath.Glob(filepath.Join(s.dir, string(id)+".talk.*", "work"))
		if err != nil {
			s.t.Error(err)
		}
		for _, work := range folders {
			seen[work] = true
			_ = os.WriteFile(filepath.Join(work, "go"), nil, 0o600) // it may have gone meanwhile
		}
		r, err := s.db.Run(s.t.Context(), s.team, id)
		if err != nil {
			s.t.Error(err)
		}
		return r.Status.Terminal()
	}) {
		s.t.Fatalf("it does not end\n%s", s.story(id))
	}
	return len(seen)
}

// talk is a definition whose step prints so many lines of a thousand bytes each, waits
// for the file go, and prints as many again.
func talk(before, after int) (definition, parameters, log string) {
	line := strings.Repeat("0123456789", 100)[:999]
	lines := func(n int) string { return strings.Repeat(" printenv=PARAM_t", n) }
	definition = fmt.Sprintf(`{"parameters":{"t":{"type":"string"}},"nodes":[{"id":"talk","command":"# dummy:%s await=go%s # $PARAM_t"}]}`, lines(before), lines(after))
	return definition, fmt.Sprintf(`{"t":%q}`, line), strings.Repeat(line+"\n", before+after)
}

// What a step prints is kept whole, whether it lies in the journal, was moved out of it
// or never was in it, and whichever worker had come how far.
func TestALongLogIsKeptWhole(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		stop := s.open("first")
		definition, parameters, log := talk(700, 3000)
		id := s.submit(definition, parameters)
		s.awaitLog(id, 700_000)
		stop()
		s.open("second")
		s.unblock(executor.Key{Run: id, Node: "talk", Attempt: 1})
		if r := s.await(id, terminal); r.Status != lifecycle.Completed {
			t.Fatalf("%s: %s", r.Status, r.ErrorMessage)
		}
		if text, objects := s.logOf(id, "talk"); text != log || objects == 0 {
			t.Errorf("%d bytes of %d, %d pieces in objects", len(text), len(log), objects)
		}
	})
}

// An object store or a database that does what it is asked and does not answer, or is
// away for a while, costs nothing of a log.
func TestALongLogSurvivesTrouble(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(s *harness){
		"of the object store": func(s *harness) { s.away = newChance(0.6) },
		"of everything":       func(s *harness) { s.flaky = newChance(0.2) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, s *harness) {
				trouble(s)
				s.open("only")
				definition, parameters, log := talk(2500, 2500)
				id := s.submit(definition, parameters)
				attempts := s.unblockAll(id)
				if r := s.await(id, terminal); r.Status != lifecycle.Completed {
					t.Fatalf("%s: %s", r.Status, r.ErrorMessage)
				}
				text, objects := s.logOf(id, "talk")
				if whole := text == log || attempts > 1 && strings.HasSuffix(text, log); !whole || objects == 0 {
					t.Errorf("%d bytes of %d, %d attempts, %d pieces in objects", len(text), len(log), attempts, objects)
				}
			})
		})
	}
}
