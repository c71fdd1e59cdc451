package sourcecheck_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/workflows"
	"github.com/millrace/millrace/internal/workflows/sourcecheck"
)

// host is one that can be told what to say.
type host struct {
	asked  int
	latest string
	err    error
}

func (h *host) Latest(context.Context, ids.Team, source.Source) (string, error) {
	h.asked++
	return h.latest, h.err
}

func (h *host) Behind(context.Context, ids.Team, source.Source, string, string) (int, error) {
	return 3, nil
}

const definition = `{"source":{"git":"https://example.org/x","ref":"REF"},"nodes":[{"id":"a","command":"ls $SOURCE_DIR"}]}`

func TestHostsAreAskedOnceAMinute(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
		clock := func() time.Time { return now }
		caller := storetest.Owner(t, db, "ada")
		room := workflows.NewService(db.WorkflowStores(), clock)
		h := &host{latest: "c1"}
		s := &sourcecheck.Service{Store: db, Repositories: h, Log: slog.New(slog.DiscardHandler), Now: clock}
		next := func(want bool) {
			t.Helper()
			if found, err := s.Next(t.Context()); err != nil || found != want {
				t.Fatalf("asked: %v, want %v: %v", found, want, err)
			}
		}
		save := func(id ids.Workflow, text string) {
			t.Helper()
			if _, err := room.Update(t.Context(), caller, id, workflows.Edit{Definition: []byte(text)}); err != nil {
				t.Fatal(err)
			}
		}
		w, err := room.Create(t.Context(), caller, workflows.New{Name: "w", Definition: []byte(definition)})
		if err != nil {
			t.Fatal(err)
		}
		next(true)
		next(false)
		status, err := s.Status(t.Context(), caller, w.ID)
		if err != nil || status.Latest != "c1" || status.Commit != "" || status.Behind != -1 || !status.ResolvedAt.Equal(now) {
			t.Errorf("%+v: %v", status, err)
		}
		next(false) // who looks at once learns nothing new
		// Another branch is asked for, but not before the minute is over.
		h.err = fault.Unavailable("example.org cannot be reached")
		save(w.ID, `{"source":{"git":"https://example.org/x","ref":"dev"},"nodes":[]}`)
		next(false)
		now = now.Add(sourcecheck.Pause)
		next(true)
		if w, err := room.Workflow(t.Context(), caller, w.ID); err != nil || len(w.Problems) == 0 || w.Problems[len(w.Problems)-1].Path != "source" {
			t.Errorf("its problems are %v: %v", w.Problems, err)
		}
		// Whoever looks later has it asked again.
		now, h.err = now.Add(2*sourcecheck.Pause), nil
		if _, err := s.Status(t.Context(), caller, w.ID); err != nil {
			t.Fatal(err)
		}
		next(true)
		if status, err := s.Status(t.Context(), caller, w.ID); err != nil || status.Problem != "" || status.Latest != "c1" {
			t.Errorf("%+v: %v", status, err)
		}
		// What nobody foresaw is not the host's doing: it is tried again.
		now, h.err = now.Add(2*sourcecheck.Pause), errors.New("no disk")
		if _, err := s.Status(t.Context(), caller, w.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Next(t.Context()); err == nil {
			t.Error("it was kept as an answer")
		}
		now, h.err = now.Add(10*sourcecheck.Pause), nil
		next(true)
		// Another team finds nothing, nor does anybody where there is no code.
		other := storetest.Owner(t, db, "eve")
		if _, err := s.Status(t.Context(), other, w.ID); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("another team: %v", err)
		}
		save(w.ID, `{"nodes":[]}`)
		if _, err := s.Status(t.Context(), caller, w.ID); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("without code: %v", err)
		}
		if _, err := s.Status(t.Context(), access.Caller{Team: caller.Team}, w.ID); !fault.Is(err, fault.KindForbidden) {
			t.Errorf("without a role: %v", err)
		}
	})
}
