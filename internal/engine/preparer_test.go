package engine

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/runimages"
	"github.com/millrace/millrace/internal/runs/admission"
)

// world is what runs are prepared with: each thing takes a minute.
type world struct {
	*preparer
	mu   sync.Mutex
	said []string
	slow time.Duration
}

func (w *world) say(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

// happened reports whether everything was said, in whatever order.
func (w *world) happened(t *testing.T, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.said)
	slices.Sort(want)
	if !slices.Equal(w.said, want) {
		t.Errorf("%q, want %q", w.said, want)
	}
}

func (w *world) wait(ctx context.Context, what string) error {
	select {
	case <-time.After(w.slow):
		w.say(what)
		return nil
	case <-ctx.Done():
		w.say(what + " was given up")
		return ctx.Err()
	}
}

func (w *world) Resolve(context.Context, string) (string, error) { return "digest", nil }

func (w *world) Root(ctx context.Context, ref, _ string) (string, []string, func(), error) {
	err := w.wait(ctx, "fetched "+ref)
	if err != nil {
		return "", nil, nil, err
	}
	return "/root", nil, func() { w.say("let go of " + ref) }, nil
}

func (w *world) Prepare(ctx context.Context, team ids.Team, run ids.Run) {
	_ = w.wait(ctx, "inputs of "+string(team)+" "+string(run))
}

func (w *world) Release(run ids.Run) { w.say("let go of inputs of " + string(run)) }

func newWorld() *world {
	w := &world{slow: time.Minute}
	images := func(ids.Team) runimages.Store { return w }
	needed := func(_ context.Context, _ ids.Run, _ *runimages.Images, refs []string) []string {
		return slices.DeleteFunc(slices.Clone(refs), func(ref string) bool { return ref == "unneeded" })
	}
	w.preparer = newPreparer(images, needed, w, func(run ids.Run) { w.say(string(run) + " is ready") })
	return w
}

var needs = []admission.Need{
	{Kind: admission.Image, Ref: "ubuntu"}, {Kind: admission.Image, Ref: "unneeded"}, {Kind: admission.Environment, Ref: "pip"}, {Kind: admission.Inputs, Ref: "team_1"},
}

const environmentRef = "environment pip"

func TestARunIsPreparedAndTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.Begin(t.Context(), "run_1", "team_1", needs)
		synctest.Wait()
		if ready, there := w.State()["run_1"]; ready || !there || w.Take("run_1") != nil {
			t.Error("it is ready at once")
		}
		w.work.Wait()
		if !w.State()["run_1"] {
			t.Error("it is not ready")
		}
		images := w.Take("run_1")
		if images == nil || images.Image("ubuntu") == nil || images.Image(environmentRef) == nil {
			t.Fatalf("%+v", images)
		}
		if w.Take("run_1") != nil || w.Take("run_2") != nil || len(w.State()) != 0 {
			t.Error("it was taken twice")
		}
		w.Drop("run_1") // whoever has it closes it
		w.Close()
		w.happened(t, "fetched ubuntu", "fetched "+environmentRef, "inputs of team_1 run_1", "run_1 is ready")
		images.Close()
	})
}

// What is dropped is let go of, whenever that is, and is never said to be ready then.
func TestWhatIsDroppedIsLetGoOf(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after time.Duration
		want  []string
	}{
		"at once":               {0, []string{"fetched ubuntu was given up", "inputs of team_1 run_1 was given up"}},
		"after the first image": {90 * time.Second, []string{"fetched ubuntu", "let go of ubuntu", "fetched " + environmentRef + " was given up", "inputs of team_1 run_1 was given up"}},
		"while inputs come":     {150 * time.Second, []string{"fetched ubuntu", "let go of ubuntu", "fetched " + environmentRef, "let go of " + environmentRef, "inputs of team_1 run_1 was given up"}},
		"when all is there":     {time.Hour, []string{"fetched ubuntu", "let go of ubuntu", "fetched " + environmentRef, "let go of " + environmentRef, "inputs of team_1 run_1", "run_1 is ready"}},
	} {
		for how, drop := range map[string]func(*world){
			"dropped": func(w *world) { w.Drop("run_1"); w.Drop("run_1"); w.work.Wait() },
			"closed":  func(w *world) { w.Close(); w.Close() },
		} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.Begin(t.Context(), "run_1", "team_1", needs)
				<-time.After(tt.after)
				synctest.Wait()
				drop(w)
				t.Log(name, how)
				w.happened(t, append([]string{"let go of inputs of run_1"}, tt.want...)...)
				if len(w.State()) != 0 {
					t.Error("it is still there")
				}
			})
		}
	}
}

// After its time a run starts with what is there, and waits for the rest itself.
func TestPreparingEndsAfterItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.slow = time.Hour
		w.Begin(t.Context(), "run_1", "team_1", needs[:1])
		began := time.Now()
		w.work.Wait()
		if took := time.Since(began); took != maxPreparation {
			t.Errorf("it took %s", took)
		}
		images := w.Take("run_1")
		if images == nil {
			t.Fatal("it is not ready")
		}
		images.Close()
	})
}

// server is the context of one that goes on. Whoever waits for its end is a goroutine,
// and a bubble does not end while one is left.
type server chan struct{}

func (server) Deadline() (time.Time, bool) { return time.Time{}, false }
func (s server) Done() <-chan struct{}     { return s }
func (server) Err() error                  { return nil }
func (server) Value(any) any               { return nil }

// A server lives long, and prepares many runs.
func TestNothingIsLeftOfARunThatWasTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(*testing.T) {
		w, ctx := newWorld(), make(server)
		for range 3 {
			w.Begin(ctx, "run_1", "team_1", needs)
			w.work.Wait()
			w.Take("run_1").Close()
		}
	})
}
