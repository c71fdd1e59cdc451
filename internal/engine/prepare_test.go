package engine_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/dummy"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/offers"
	"github.com/millrace/millrace/internal/store/storetest"
)

// slowImage is fetched when somebody says so.
type slowImage struct {
	everyImage
	asked, come, given chan struct{}
	missing            bool
}

func newSlowImage(t *testing.T) slowImage {
	return slowImage{everyImage{t.TempDir()}, make(chan struct{}, 10), make(chan struct{}), make(chan struct{}, 10), false}
}

func (i slowImage) Root(ctx context.Context, _, _ string) (string, []string, func(), error) {
	i.asked <- struct{}{}
	select {
	case <-i.come:
	case <-ctx.Done():
		i.given <- struct{}{}
		return "", nil, nil, ctx.Err()
	}
	if i.missing {
		return "", nil, nil, fault.Unavailable("there is no such image")
	}
	return i.root, nil, func() { i.given <- struct{}{} }, nil
}

const withImage = `{"nodes":[{"id":"a","image":"alpine:3","command":"# dummy: output:out=1","outputs":{"out":{"path":"out"}}}]}`

// waits is what a queued run waits for.
func (s *harness) waits(id ids.Run) runs.WaitReason {
	s.t.Helper()
	q, err := s.db.QueueState(s.t.Context(), s.team, []ids.Run{id}, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	return q.Preparing[id]
}

func TestARunIsQueuedWhileItsImageIsFetched(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		image := newSlowImage(t)
		s.images = image
		stop := s.open("w1")
		id := s.submit(withImage, `{}`)
		<-image.asked
		beside := s.submit(`{"nodes":[{"id":"a","command":"true"}]}`, `{}`)
		s.await(beside, terminal)
		if r := s.await(id, func(runs.Run) bool { return true }); r.Status != lifecycle.Queued || s.waits(id) != offers.WaitsForImage {
			t.Errorf("%s, waits for %q", r.Status, s.waits(id))
		}
		// The server goes, and the next one begins again.
		stop()
		<-image.given
		s.open("w2")
		<-image.asked
		close(image.come)
		if r := s.await(id, terminal); r.Status != lifecycle.Completed {
			t.Errorf("%s: %s", r.Status, r.ErrorMessage)
		}
		<-image.given // back, when the run has ended
		if got := s.story(id); strings.Count(got, "run.started") != 1 {
			t.Error(got)
		}
	})
}

const cachedWithImage = `{"id":"a","image":"alpine:3","cache":true,"command":"# dummy: output:out=1","outputs":{"out":{"path":"out"}}}`

// computedOnce is a team that has computed cachedWithImage, and a registry that
// hangs since then.
func computedOnce(t *testing.T, s *harness) slowImage {
	t.Helper()
	s.images = everyImage{t.TempDir()}
	stop := s.open("w1")
	if r := s.await(s.submit(`{"nodes":[`+cachedWithImage+`]}`, `{}`), terminal); r.Status != lifecycle.Completed {
		t.Fatalf("%s: %s", r.Status, r.ErrorMessage)
	}
	stop()
	hanging := newSlowImage(t)
	s.images = hanging
	s.open("w2")
	return hanging
}

func TestWhatTheCacheAnswersWaitsForNoImage(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		hanging := computedOnce(t, s)
		id := s.submit(`{"nodes":[`+cachedWithImage+`]}`, `{}`)
		if r := s.await(id, terminal); r.Status != lifecycle.Completed || !s.node(id, "a").Cached {
			t.Errorf("%s: %s", r.Status, s.story(id))
		}
		if n := len(hanging.asked); n > 0 {
			t.Errorf("the image was fetched %d times", n)
		}
		// One of two nodes that start first has to run: then the image is needed.
		id = s.submit(`{"nodes":[`+cachedWithImage+`,{"id":"b","image":"alpine:3","command":"true"}]}`, `{}`)
		<-hanging.asked
		if r := s.await(id, func(runs.Run) bool { return true }); r.Status != lifecycle.Queued {
			t.Errorf("%s before its image is there", r.Status)
		}
		close(hanging.come)
		s.await(id, terminal)
	})
}

func TestWhatTheCacheAnswersWaitsForNoImageOfAnotherNode(t *testing.T) {
	t.Parallel()
	s := newHarness(t, storetest.SQLite(t))
	hanging := computedOnce(t, s)
	id := s.submit(`{"nodes":[{"id":"first","command":"true"},{"id":"runs","image":"alpine:3","command":"true"},
		{"id":"waits","command":"# dummy: await=go"},`+cachedWithImage+`],
		"edges":[{"id":"e1","source":"first","target":"runs"},{"id":"e2","source":"waits","target":"a"}]}`, `{}`)
	<-hanging.asked // for the node that has to run
	s.unblock(executor.Key{Run: id, Node: "waits", Attempt: 1})
	s.await(id, func(runs.Run) bool { return strings.Contains(s.story(id), "node.cached:a") })
	close(hanging.come)
	if r := s.await(id, terminal); r.Status != lifecycle.Completed {
		t.Errorf("%s: %s", r.Status, r.ErrorMessage)
	}
}

func TestARunIsCancelledWhileItsImageIsFetched(t *testing.T) {
	t.Parallel()
	s := newHarness(t, storetest.SQLite(t))
	image := newSlowImage(t)
	s.images = image
	s.open("w1")
	id := s.submit(withImage, `{}`)
	<-image.asked
	by := runs.Starter{Type: "user", ID: string(s.user), Name: "Ada"}
	if status, err := s.db.CancelRun(t.Context(), s.team, id, by, time.Now()); err != nil || status != lifecycle.Cancelled {
		t.Fatal(status, err)
	}
	<-image.given // nobody wants it any more
}

func TestAnImageThatCannotBeHadFailsItsNode(t *testing.T) {
	t.Parallel()
	s := newHarness(t, storetest.SQLite(t))
	image := newSlowImage(t)
	image.missing = true
	close(image.come)
	s.images = image
	s.open("w1")
	r := s.await(s.submit(withImage, `{}`), terminal)
	if r.Status != lifecycle.Failed || r.ErrorCode != lifecycle.ImageUnavailable || !strings.Contains(r.ErrorMessage, "there is no such image") {
		t.Errorf("%s %s: %s", r.Status, r.ErrorCode, r.ErrorMessage)
	}
	if n := len(image.asked); n != 1 {
		t.Errorf("it was asked for %d times", n)
	}
}

// unknownTag is a registry that does not know what a tag stands for.
type unknownTag struct{ everyImage }

func (unknownTag) Resolve(context.Context, string) (string, error) {
	return "", fault.Unavailable("there is no such tag")
}

func TestAnImageWithAnUnknownTagFailsItsNode(t *testing.T) {
	t.Parallel()
	s := newHarness(t, storetest.SQLite(t))
	s.images = unknownTag{everyImage{t.TempDir()}}
	s.open("w1")
	r := s.await(s.submit(withImage, `{}`), terminal)
	if r.Status != lifecycle.Failed || r.ErrorCode != lifecycle.ImageUnavailable || !strings.Contains(r.ErrorMessage, "there is no such tag") {
		t.Errorf("%s %s: %s", r.Status, r.ErrorCode, r.ErrorMessage)
	}
}

// closing is a driver that refuses the first submission, as one that shuts down.
type closing struct {
	executor.Driver
	refused atomic.Bool
}

func (c *closing) Submit(ctx context.Context, p executor.Permit, s executor.Spec) (executor.Handle, error) {
	if c.refused.CompareAndSwap(false, true) {
		return executor.Handle{}, fault.Unavailable("the executor is shutting down")
	}
	return c.Driver.Submit(ctx, p, s)
}

func TestUnavailableExecutorDoesNotFailAStepWithAnImage(t *testing.T) {
	t.Parallel()
	s := newHarness(t, storetest.SQLite(t))
	s.images = everyImage{t.TempDir()}
	s.around = func(d *dummy.Driver) executor.Driver { return &closing{Driver: d} }
	s.open("w")
	if r := s.await(s.submit(withImage, `{}`), terminal); r.Status != lifecycle.Completed {
		t.Errorf("%s: %s", r.Status, r.ErrorMessage)
	}
}
