package engine_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/store/storetest"
)

// statements are what a database was asked.
type statements struct {
	mu   sync.Mutex
	list []string
}

func (s *statements) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, strings.Join(strings.Fields(text), " "))
}

// take are those since it was last called.
func (s *statements) take() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, s.list = s.list, nil
	return list
}

// From its submission to its bill, a run of two tasks with an output and a log
// each. What a worker asks from time to time may come in between, on a busy
// machine again and again, so one of some runs has to be as cheap.
func TestARunOfTwoTasksCostsFewStatements(t *testing.T) {
	const updates = 4 // of its row: claimed, a starts, a ends and b starts, it ends
	bounds := map[string]int{"sqlite": 45, "postgres": 58}
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := newHarness(t, url)
		seen := &statements{}
		s.db = storetest.OpenObserved(t, url, seen.add)
		s.archive = s.db
		ended := make(chan ids.Run, 1)
		s.ended = func(id ids.Run) { ended <- id }
		s.open("w1")
		_, kind, _ := strings.Cut(t.Name(), "/")
		var list []string
		var changes int
		for range 50 {
			seen.take()
			id := s.submit(`{"nodes":[
				{"id":"a","command":"# dummy: print=hello output:a.txt=one","outputs":{"o":{"path":"a.txt"}}},
				{"id":"b","command":"# dummy: print=hello output:b.txt=two","outputs":{"o":{"path":"b.txt"}}}],
				"edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}`, `{}`)
			<-ended
			list, changes = seen.take(), 0
			for _, text := range list {
				if strings.HasPrefix(text, "UPDATE runs") {
					changes++
				}
			}
			if r := s.await(id, terminal); r.Status != lifecycle.Completed {
				t.Fatalf("%s: %s", r.Status, r.ErrorMessage)
			}
			if len(list) <= bounds[kind] && changes <= updates {
				return
			}
		}
		t.Errorf("%d statements, %d updates of the run's row, want at most %d and %d in one of 50 runs; the last one's:\n%s",
			len(list), changes, bounds[kind], updates, strings.Join(list, "\n"))
	})
}
