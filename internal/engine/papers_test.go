package engine_test

import (
	"testing"

	"github.com/millrace/millrace/internal/ai/reader"
	"github.com/millrace/millrace/internal/ai/reader/readertest"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
)

func TestWhatPapersSuggestRunsToItsEnd(t *testing.T) {
	each(t, func(t *testing.T, s *shop) {
		s.open("w1")
		started := map[ids.Run]string{}
		for _, p := range readertest.Papers(t) {
			pages := readertest.Pages(t, readertest.PDF(t, p, readertest.Layouts[0]))
			r := reader.Read(reader.Paper{Pages: pages})
			if r.Suggestion == nil {
				t.Fatalf("%s suggests nothing", p.Name)
			}
			started[s.submit(string(r.Suggestion.Definition), `{}`)] = p.Name
		}
		for id, name := range started {
			if r := s.await(id, terminal); r.Status != lifecycle.Completed || r.DoneNodes != r.TotalNodes {
				t.Errorf("%s: %s, %d of %d: %s\n%s", name, r.Status, r.DoneNodes, r.TotalNodes, r.ErrorMessage, s.story(id))
			}
		}
	})
}
