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
// machine again and again, so the cheapest of some counts.
func TestARunOfTwoTasksCostsFewStatements(t *testing.T) {
	const updates = 4 // of its row: claimed, a starts, a ends and b starts, it ends
	bounds := map[string]int{"sqlite": 42, "postgres": 54}
	storetest.EachURL(t, func(t *testing.T, url string) {
		s := newHarness(t, url)
		seen := &statements{}
		s.db = storetest.OpenObserved(t, url, seen.add)
		s.archive = s.db
		ended := make(chan ids.Run, 1)
		s.ended = func(id ids.Run) { ended <- id }
		s.open("w1")
		_, kind, _ := strings.Cut(t.Name(), "/")
		fewest := []string(nil)
		for try := 0; try < 50 && (fewest == nil || len(fewest) > bounds[kind]); try++ {
			seen.take()
			id := s.submit(`{"nodes":[
				{"id":"a","command":"# dummy: print=hello output:a.txt=one","outputs":{"o":{"path":"a.txt"}}},
				{"id":"b","command":"# dummy: print=hello output:b.txt=two","outputs":{"o":{"path":"b.txt"}}}],
				"edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}`, `{}`)
			<-ended
			if list := seen.take(); fewest == nil || len(list) < len(fewest) {
				fewest = list
			}
			if r := s.await(id, terminal); r.Status != lifecycle.Completed {
				t.Fatalf("%s: %s", r.Status, r.ErrorMessage)
			}
		}
		changes := 0
		for _, text := range fewest {
			if strings.HasPrefix(text, "UPDATE runs") {
				changes++
			}
		}
		t.Logf("%d statements, %d updates of the run's row", len(fewest), changes)
		if len(fewest) > bounds[kind] || changes > updates {
			t.Errorf("%d statements, %d updates of the run's row, want at most %d and %d:\n%s", len(fewest), changes, bounds[kind], updates, strings.Join(fewest, "\n"))
		}
	})
}
