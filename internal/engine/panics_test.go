package engine_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/dummy"
	"github.com/millrace/millrace/internal/engine/runimages"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/addresses"
	"github.com/millrace/millrace/internal/store/storetest"
)

// panickyResolve panics when it is asked what an image is, and panickyRoot when it is
// asked for its files.
type (
	panickyResolve struct{ everyImage }
	panickyRoot    struct{ everyImage }
	panickyHost    struct{}
)

func (panickyResolve) Resolve(context.Context, string) (string, error) { panic("out of order") }

func (panickyRoot) Root(context.Context, string, string) (string, []string, func(), error) {
	panic("out of order")
}

func (panickyHost) Open(context.Context, ids.Team, addresses.Object, int64, int64) (io.ReadCloser, error) {
	panic("out of order")
}

// A panic while the images or inputs of a run are fetched, in goroutines of their own, is
// an error of that run.
func TestPanicWhileFetchingEndsThatRunOnly(t *testing.T) {
	t.Parallel()
	const image = `{"nodes":[{"id":"a","image":"alpine:3","command":"true"}]}`
	const input = `{"inputs":{"ref":{"type":"file"}},"nodes":[{"id":"a","command":"true","inputs":{"in":{"from":"inputs.ref"}}}]}`
	for name, tt := range map[string]struct {
		definition string
		images     func(everyImage) runimages.Store
		etag       string // of the input
	}{
		"what an image is":         {image, func(i everyImage) runimages.Store { return panickyResolve{i} }, ""},
		"the files of an image":    {image, func(i everyImage) runimages.Store { return panickyRoot{i} }, ""},
		"an input in parts":        {input, func(i everyImage) runimages.Store { return i }, "e1"},
		"an input that has no tag": {input, func(i everyImage) runimages.Store { return i }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHarness(t, storetest.SQLite(t))
			s.images, s.elsewhere = tt.images(everyImage{t.TempDir()}), panickyHost{}
			var log bytes.Buffer
			s.log = io.MultiWriter(t.Output(), &log)
			stop := s.open("w")
			beside := s.submit(`{"nodes":[{"id":"a","command":"# dummy: await=go"}]}`, `{}`)
			s.await(beside, func(r runs.Run) bool { return strings.Contains(s.story(r.ID), "node.started") })
			if tt.definition == input {
				o := (&farAway{text: "genome", etag: tt.etag}).object()
				s.given = []addresses.Object{o}
			}
			id := s.submit(tt.definition, `{}`)
			r := s.await(id, terminal)
			if r.Status != lifecycle.Interrupted || r.ErrorCode != lifecycle.Internal || strings.Contains(r.ErrorMessage, "out of order") {
				t.Errorf("%s, %s: %s\n%s", r.Status, r.ErrorCode, r.ErrorMessage, s.story(id))
			}
			if r, err := s.db.Run(t.Context(), s.team, beside); err != nil || r.Status != lifecycle.Running {
				t.Errorf("the run beside it is %s, %v", r.Status, err)
			}
			stop()
			panicked, stacks := strings.Count(log.String(), "panic: out of order"), strings.Count(log.String(), "panics_test.go")
			if tries := strings.Count(s.story(id), "run.requeued") + 1; panicked != tries || stacks != tries {
				t.Errorf("%d panics and %d stacks are logged of %d tries", panicked, stacks, tries)
			}
		})
	}
}

// panickyDriver panics whenever it is asked for the first times.
type panickyDriver struct {
	executor.Driver
	snapshots, releases atomic.Int64
}

func (d *panickyDriver) Snapshot(ctx context.Context) ([]executor.Status, error) {
	if d.snapshots.Add(-1) >= 0 {
		panic("out of order")
	}
	return d.Driver.Snapshot(ctx)
}

func (d *panickyDriver) Release(ctx context.Context, p executor.Permit, h executor.Handle) error {
	if d.releases.Add(-1) >= 0 {
		panic("out of order")
	}
	return d.Driver.Release(ctx, p, h)
}

func TestPanicOfADriverEndsNoRun(t *testing.T) {
	t.Parallel()
	s := newHarness(t, storetest.SQLite(t))
	s.around = func(d *dummy.Driver) executor.Driver {
		around := &panickyDriver{Driver: d}
		around.snapshots.Store(5)
		around.releases.Store(1)
		return around
	}
	s.open("w")
	id := s.submit(`{"nodes":[{"id":"a","command":"# dummy: output:o=1","outputs":{"o":{"path":"o"}}},{"id":"b","command":"true"}],"edges":[{"id":"e","source":"a","target":"b"}]}`, `{}`)
	if r := s.await(id, terminal); r.Status != lifecycle.Completed {
		t.Errorf("%s: %s", r.Status, r.ErrorMessage)
	}
}
