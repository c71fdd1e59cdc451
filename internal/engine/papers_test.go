package engine_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/millrace/millrace/internal/ai/reader"
	"github.com/millrace/millrace/internal/ai/reader/readertest"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
)

// everyImage stands in for a registry: whatever is named can be
// had, as an empty root. The dummy executor looks into none.
type everyImage struct{ root string }

func (everyImage) Resolve(_ context.Context, ref string) (string, error) {
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(ref))), nil
}

func (i everyImage) Root(context.Context, string, string) (string, []string, func(), error) {
	return i.root, nil, func() {}, nil
}

func TestWhatPapersSuggestRunsToItsEnd(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		s.images = everyImage{t.TempDir()}
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
