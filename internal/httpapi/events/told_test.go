package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/live"
)

// story is a run whose events and log a test writes.
type story struct {
	mu     sync.Mutex
	events int64
	gone   int64 // of them, the first ones
	log    string
	status lifecycle.Status
	err    error
	odd    bool // its messages cannot be encoded
	panics bool // looking for what is new does
}

func (s *story) change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *story) run() runs.Run { return runs.Run{ID: "run", Seq: s.events, Status: s.status} }

func (s *story) Changes(_ context.Context, _ ids.Team, _ ids.Run, seq, log, most int64) (n runs.Changes, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.panics {
		panic("out of order")
	}
	n.Run, n.Log = s.run(), runs.LogPage{Offset: log, Next: log, Size: int64(len(s.log))}
	for i := max(seq, s.gone) + 1; i <= s.events; i++ {
		n.Events = append(n.Events, runs.Event{Seq: i})
	}
	if log < int64(len(s.log)) {
		n.Log.Text = []byte(s.log[log:min(log+most, int64(len(s.log)))])
		n.Log.Next = log + int64(len(n.Log.Text))
	}
	return n, s.err
}

func (s *story) Snapshot(_ context.Context, _ ids.Team, _ ids.Run, end int64) (runs.Changes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if end < 0 {
		end = int64(len(s.log))
	}
	return runs.Changes{Run: s.run(), Log: runs.LogPage{Size: end, Text: []byte(s.log[:end])}}, s.err
}

// wording is what is sent of it.
type wording struct{ *story }

func (w wording) Snapshot(n runs.Changes) map[string]any {
	return map[string]any{"type": "snapshot", "seq": n.Run.Seq, "size": len(n.Log.Text)}
}

func (w wording) Progress(n runs.Changes, from, to Place, _ live.Usage) map[string]any {
	m := map[string]any{"type": "progress", "from": from.String(), "to": to.String(), "text": string(n.Log.Text)}
	if w.odd {
		m["odd"] = math.NaN()
	}
	return m
}

// telling is a run that is told, and who may watch it.
func telling(ctx context.Context) (*Streams, *story, *live.Hub) {
	s, hub := &story{}, &live.Hub{}
	return New(Options{
		Runs: s, Messages: wording{s}, Feed: hub, Log: slog.New(slog.DiscardHandler), Now: time.Now, Life: ctx, MayWatch: func(context.Context, Watcher, ids.Team) bool { return true },
	}), s, hub
}

// listen joins, and gathers what is sent until the stream ends.
func listen(t *testing.T, w *Streams, last string) (heard func() string, ended <-chan error) {
	t.Helper()
	s, err := w.Join(t.Context(), "team", "run", Watcher{Session: "ada"}, last)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var text strings.Builder
	s.write = func(b []byte) error {
		mu.Lock()
		defer mu.Unlock()
		text.Write(b)
		return nil
	}
	over := make(chan error, 1)
	go func() {
		defer s.b.leave(s.c)
		err := s.begin(t.Context())
		for err == nil {
			select {
			case <-t.Context().Done():
				err = t.Context().Err()
			case <-s.c.wake:
				err = s.drain(t.Context(), true)
			}
		}
		over <- err
	}()
	return func() string { mu.Lock(); defer mu.Unlock(); return text.String() }, over
}

// Whoever comes back hears what they missed and nothing twice, before what is new.
func TestWhatWasMissedIsReplayedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		w, s, hub := telling(ctx)
		s.events, s.log = 5, "abcdef"
		heard, ended := listen(t, w, "3:4")
		time.Sleep(time.Second)
		s.change(func() { s.events, s.log, s.status = 6, "abcdefgh", lifecycle.Completed })
		hub.Ended("run")
		<-ended
		text := heard()
		for _, want := range []string{`"text":"ef"`, `"to":"5:6"`, "id: 5:6\n", `"text":"gh"`, `"to":"6:8"`} { // fields come in any order
			if strings.Count(text, want) != 1 {
				t.Errorf("%s is not there once in\n%s", want, text)
			}
		}
		if strings.Count(text, `"progress"`) != 2 || strings.Count(text, `"done"`) != 1 || !strings.HasPrefix(text, "retry: 3000\nid: 3:4\n") {
			t.Errorf("heard\n%s", text)
		}
		end()
		synctest.Wait()
	})
}

// Of a run whose time is over only the last event is kept. Who heard some of the others
// is told that one, and the end.
func TestAReplayGoesOverEventsThatAreGone(t *testing.T) {
	t.Parallel()
	for _, last := range []string{"0:0", "3:0", "98:0", "99:0", "100:0"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			w, s, _ := telling(ctx)
			s.events, s.gone, s.status = 100, 99, lifecycle.Completed
			heard, ended := listen(t, w, last)
			<-ended
			missed := 1
			if last == "100:0" {
				missed = 0
			}
			if text := heard(); strings.Count(text, `"progress"`) != missed || strings.Count(text, `"done"`) != 1 {
				t.Errorf("after %s\n%s", last, text)
			}
			end()
			synctest.Wait()
		})
	}
}

// A place that never was, or from which too much was missed, is where the run is now.
func TestAnImpossiblePlaceIsThePresent(t *testing.T) {
	t.Parallel()
	now := Place{5, 2 * maxBehind}
	for last, want := range map[string]Place{
		fmt.Sprintf("5:%d", now.Log): now, fmt.Sprintf("2:%d", maxBehind): {2, maxBehind}, fmt.Sprintf("2:%d", maxBehind-1): now, fmt.Sprintf("6:%d", now.Log): now,
		fmt.Sprintf("5:%d", now.Log+1): now, "": now, "5": now, "-1:0": now,
	} {
		if got := lastPlace(last, now); got != want {
			t.Errorf("%q is %s, want %s", last, got, want)
		}
	}
}

// A run that is deleted while it is watched ends its streams; who comes back hears why.
func TestStreamsOfADeletedRunEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		w, s, hub := telling(ctx)
		_, first := listen(t, w, "")
		_, second := listen(t, w, "")
		time.Sleep(time.Second)
		gone := errors.New("no such run")
		s.change(func() { s.err = gone })
		hub.Changed("run")
		<-first
		<-second
		if _, err := w.Join(t.Context(), "team", "run", Watcher{}, ""); !errors.Is(err, gone) {
			t.Errorf("who comes back hears %v", err)
		}
		s.change(func() { s.err = nil })
		_, third := listen(t, w, "")
		time.Sleep(10 * presenceLook)
		select {
		case err := <-third:
			t.Errorf("a stream after a failure ended: %v", err)
		default:
		}
		end()
		<-third
		synctest.Wait()
		if len(w.all) != 0 {
			t.Errorf("%d runs are still followed", len(w.all))
		}
	})
}

// A message that cannot be encoded ends the stream; it is not the end of the server.
func TestAMessageThatCannotBeEncodedEndsTheStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		w, s, hub := telling(ctx)
		heard, ended := listen(t, w, "")
		time.Sleep(time.Second)
		s.change(func() { s.events, s.odd = 1, true })
		hub.Changed("run")
		<-ended
		if strings.Contains(heard(), `"progress"`) {
			t.Error(heard())
		}
		end()
		synctest.Wait()
	})
}

// Runs are followed in goroutines of their own, in which a panic would end the server.
func TestPanicOverARunEndsItsStreamsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		w, s, hub := telling(ctx)
		_, ended := listen(t, w, "")
		time.Sleep(time.Second)
		s.change(func() { s.panics = true })
		<-ended // at the next look, of which nobody was told
		if !w.looking.TryLock() {
			t.Fatal("no other run is looked at any more")
		}
		w.looking.Unlock()
		s.change(func() { s.panics = false })
		heard, ended := listen(t, w, "")
		time.Sleep(time.Second)
		s.change(func() { s.log = "on it goes" })
		hub.Changed("run")
		time.Sleep(time.Second)
		if !strings.Contains(heard(), "on it goes") {
			t.Error(heard())
		}
		end()
		<-ended
		synctest.Wait()
	})
}

// A flood of log is not sent: how the run stands at its end is.
func TestAFloodIsSkipped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		w, s, hub := telling(ctx)
		heard, ended := listen(t, w, "")
		time.Sleep(time.Second)
		s.change(func() { s.events, s.log = 1, strings.Repeat("x", maxBehind+1) })
		hub.Changed("run")
		time.Sleep(time.Second)
		s.change(func() { s.log += "the end" })
		hub.Changed("run")
		time.Sleep(time.Second)
		text := heard()
		if strings.Count(text, `"snapshot"`) != 2 || strings.Count(text, `"progress"`) != 1 || !strings.Contains(text, `"text":"the end"`) || len(text) > 10_000 {
			t.Errorf("%d bytes, %.300s", len(text), text)
		}
		end()
		<-ended
		synctest.Wait()
	})
}

// A client that takes nothing is left no more than so many frames. When it takes again,
// it is given how the run stands, and the end still closes the stream.
func TestASlowClientIsGivenASnapshotAndTheEnd(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w, s, _ := telling(ctx)
	joined, err := w.Join(t.Context(), "team", "run", Watcher{}, "")
	if err != nil {
		t.Fatal(err)
	}
	b, c := joined.b, joined.c
	var text strings.Builder
	joined.write = func(b []byte) error { text.Write(b); return nil }
	for i := range 3 * maxWaiting {
		s.change(func() { s.events++ })
		b.mu.Lock()
		b.news(ctx)
		b.mu.Unlock()
		if c.mu.Lock(); len(c.waiting) != min(i+1, maxWaiting) || c.lagging != (i >= maxWaiting) {
			t.Fatalf("after %d frames %d lie there, lagging %t", i+1, len(c.waiting), c.lagging)
		}
		c.mu.Unlock()
	}
	s.change(func() { s.status = lifecycle.Failed })
	b.mu.Lock()
	b.news(ctx)
	b.mu.Unlock()
	err = joined.drain(ctx, true)
	got := text.String()
	if err == nil || strings.Count(got, `"snapshot"`) != 1 || strings.Contains(got, `"progress"`) || !strings.HasSuffix(got, "\n\n") || strings.Count(got, `"done"`) != 1 || strings.Index(got, `"snapshot"`) > strings.Index(got, `"done"`) {
		t.Errorf("%v after\n%s", err, got)
	}
}
