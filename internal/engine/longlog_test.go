package engine_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/dummy"
	"github.com/millrace/millrace/internal/engine/executor/shim/tasklog"
	"github.com/millrace/millrace/internal/waittest"
)

// logOf is the log of a step, wherever its pieces are, and how many lie in objects.
func (s *harness) logOf(id ids.Run, node string, shard int) (text string, objects int) {
	s.t.Helper()
	pieces, err := s.db.NodeLogPieces(s.t.Context(), s.team, id, node, shard, 0, 1<<40)
	if err != nil {
		s.t.Fatal(err)
	}
	var all strings.Builder
	var end int64
	for _, p := range pieces {
		if p.NodeStart != end {
			s.t.Errorf("a piece begins at %d, and %d bytes came before it", p.NodeStart, end)
		}
		end += p.Size + p.Missing
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

// cutLog is a log of which only the beginning and the end are kept.
func cutLog(whole string, head, tail int) string {
	return whole[:head] + tasklog.MissingLine(int64(len(whole)-head-tail)) + whole[len(whole)-tail:]
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
		if text, objects := s.logOf(id, "talk", 0); text != log || objects == 0 {
			t.Errorf("%d bytes of %d, %d pieces in objects", len(text), len(log), objects)
		}
	})
}

// A log that is longer than what is kept has its beginning and its end, whichever worker
// had come how far. The failure shows the end.
func TestLongLogKeepsItsBeginningAndItsEnd(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		s.taskLog = 2 << 20
		stop := s.open("first")
		definition, parameters, whole := talk(2500, 3000)
		definition = strings.Replace(definition, " # $PARAM_t", " print=broken exit=3 # $PARAM_t", 1)
		whole += "broken\n"
		id := s.submit(definition, parameters)
		head, tail := int(s.taskLog)*3/4, int(s.taskLog)/4
		s.awaitLog(id, int64(head))
		stop()
		s.open("second")
		s.unblock(executor.Key{Run: id, Node: "talk", Attempt: 1})
		if r := s.await(id, terminal); r.Status != lifecycle.Failed {
			t.Fatalf("%s: %s", r.Status, r.ErrorMessage)
		}
		if text, objects := s.logOf(id, "talk", 0); text != cutLog(whole, head, tail) || objects == 0 {
			t.Errorf("%d bytes, %d pieces in objects", len(text), objects)
		}
		for name, size := range map[string]func() (int64, error){
			"step": func() (int64, error) { return s.db.NodeLogSize(t.Context(), s.team, id, "talk", 0) },
			"run":  func() (int64, error) { return s.db.LogSize(t.Context(), s.team, id) },
		} {
			if n, err := size(); err != nil || n != int64(len(whole)) {
				t.Errorf("the log of the %s has %d bytes of %d, %v", name, n, len(whole), err)
			}
		}
		events, err := s.db.Events(t.Context(), s.team, id, 0, 500)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Type == lifecycle.NodeFailedEvent && !strings.Contains(string(e.Data), `0123456789012345678\nbroken\n`) {
				t.Errorf("the failure shows %s", e.Data)
			}
		}
	})
}

// Once a run has as much text as is kept of one, the logs of later items have their end
// alone.
func TestManyLongLogsKeepTheirEnds(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		s.taskLog = 8 << 10
		s.open("only")
		items := make([]string, 40)
		for i := range items {
			items[i] = fmt.Sprint(i)
		}
		line := strings.Repeat("0123456789", 100)[:999]
		definition := fmt.Sprintf(`{"parameters":{"t":{"type":"string"}},"nodes":[{"id":"talk","scatter":{"over":"[%s]","maxParallel":1},"command":"# dummy:%s print=end # $PARAM_t"}]}`,
			strings.Join(items, ","), strings.Repeat(" printenv=PARAM_t", 20))
		id := s.submit(definition, fmt.Sprintf(`{"t":%q}`, line))
		if r := s.await(id, terminal); r.Status != lifecycle.Completed {
			t.Fatalf("%s: %s", r.Status, r.ErrorMessage)
		}
		whole := strings.Repeat(line+"\n", 20) + "end\n"
		var total int64
		for i := range items {
			text, _ := s.logOf(id, "talk", i)
			if total += int64(len(text)); text != cutLog(whole, 6<<10, 2<<10) && text != cutLog(whole, 0, 2<<10) || i == 0 && len(text) < 8<<10 || i == 39 && len(text) > 4<<10 {
				t.Errorf("the log of item %d has %d bytes", i, len(text))
			}
		}
		if total > 16*s.taskLog+40*(4<<10) {
			t.Errorf("%d bytes are kept", total)
		}
	})
}

// claimed is a driver whose tasks put a log of their own in the place of theirs, once they
// have ended.
type claimed struct {
	*dummy.Driver
	folder string
}

func (c claimed) Logs(ctx context.Context, h executor.Handle, offset int64) (executor.Log, error) {
	if log, err := c.Driver.Logs(ctx, h, offset); err != nil {
		return log, err
	}
	return tasklog.Open(c.folder, offset, true)
}

// A log of which a task claims that it has any size, which costs the task nothing, costs
// no more than another one.
func TestClaimedLogIsBounded(t *testing.T) {
	t.Parallel()
	for name, sizes := range map[string]map[string]int64{
		"a beginning without end": {"": 1 << 39},
		"an end without end":      {"": 100, ".1048576": 1 << 39},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			for name, size := range sizes {
				path := tasklog.Path(folder) + name
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Truncate(path, size); err != nil {
					t.Skip("the file system has no files of this size: ", err)
				}
			}
			each(t, func(t *testing.T, s *harness) {
				s.taskLog = 3 << 20
				s.around = func(d *dummy.Driver) executor.Driver { return claimed{d, folder} }
				s.open("only")
				id := s.submit(`{"nodes":[{"id":"talk","command":"# dummy:"}]}`, `{}`)
				if r := s.await(id, terminal); r.Status != lifecycle.Completed {
					t.Fatalf("%s: %s", r.Status, r.ErrorMessage)
				}
				if text, _ := s.logOf(id, "talk", 0); int64(len(text)) > s.taskLog+8<<10 || len(text) < 4<<10 {
					t.Errorf("%d bytes are kept", len(text))
				}
			})
		})
	}
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
				text, objects := s.logOf(id, "talk", 0)
				if whole := text == log || attempts > 1 && strings.HasSuffix(text, log); !whole || objects == 0 {
					t.Errorf("%d bytes of %d, %d attempts, %d pieces in objects", len(text), len(log), attempts, objects)
				}
			})
		})
	}
}
