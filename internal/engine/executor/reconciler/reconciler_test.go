package reconciler_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
)

var errAway = errors.New("no route")

// What the cluster complains of may pass; it is shown, tried again, and given up in time.
func TestASubmissionIsTriedAgain(t *testing.T) {
	eachRecords(t, func(t *testing.T, w *world) {
		w.refusal = errAway
		h := w.submit()
		w.want("while the cluster is away", executor.Pending, executor.Queued, "Slurm does not take it at the moment: no route")
		w.lookFor(2 * refusalWait)
		w.want("after a long time", executor.Pending, executor.Queued, "no route")
		w.refusal = nil
		w.lookFor(30 * time.Second)
		if len(w.starts) != 1 {
			t.Errorf("it is started %d times", len(w.starts))
		}
		w.says(h, reconciler.JobStatus{Waits: true, Reason: executor.Queued, Detail: "Priority"})
		w.look()
		if s := w.want("once it is taken", executor.Pending, executor.Queued, "Priority"); s.Job != "7" {
			t.Errorf("its job is %q", s.Job)
		}
	})
}

func TestARefusalThatMayPassIsGivenUpInTime(t *testing.T) {
	eachRecords(t, func(t *testing.T, w *world) {
		w.refusal = fault.Conflict("too many jobs")
		w.submit()
		w.lookFor(refusalWait - 31*time.Second)
		w.want("before", executor.Pending, executor.Queued, "too many jobs")
		w.lookFor(62 * time.Second)
		w.want("after", executor.Ended, executor.StartFailed, "Slurm refused the task: too many jobs")
	})
}

func TestAFinalRefusalEndsAnAttempt(t *testing.T) {
	eachRecords(t, func(t *testing.T, w *world) {
		w.refusal = fault.Invalid("invalid qos")
		h := w.submit()
		if s := w.want("at once", executor.Ended, executor.StartFailed, "Slurm refused the task: invalid qos"); s.Exit == nil || s.Exit.StartFailed != s.Detail || !s.Exit.Start.Equal(s.Exit.End) {
			t.Errorf("%+v", s.Exit)
		}
		for range 2 { // what has ended stays as it is
			if err := errors.Join(w.Stop(t.Context(), executor.NoRun, h, 0), w.Release(t.Context(), executor.NoRun, h)); err != nil {
				t.Error(err)
			}
		}
	})
}

// A job that the cluster seemed to have lost may have begun while its attempt is submitted
// once more: whatever becomes of that, the first one counts.
func TestAJobThatHasBegunIsNotRefused(t *testing.T) {
	eachRecords(t, func(t *testing.T, w *world) {
		h := w.submit()
		w.look()
		w.lookFor(lag - time.Second)
		if len(w.starts) != 1 {
			t.Fatalf("it is started %d times before the cluster had the time to list it", len(w.starts))
		}
		w.refusal = fault.Conflict("try later")
		w.lookFor(2 * time.Second) // it was lost, and is submitted again
		w.begins(h)
		w.refusal = fault.Invalid("invalid partition")
		w.lookFor(5 * time.Second)
		w.want("refused", executor.Pending, executor.Starting, "")
		w.reports(h, 1, nil)
		w.look()
		w.want("it runs", executor.Running, executor.Executing, "")
	})
}

// One that nobody handed to the cluster is handed over by whoever comes next, once.
func TestTheNextServerStartsWhatNobodyHasStarted(t *testing.T) {
	eachRecords(t, func(t *testing.T, w *world) {
		w.refusal = errAway
		w.submit()
		w.refusal = nil
		w.Driver = w.server()
		w.look()
		w.lookFor(lag - time.Second)
		if len(w.starts) != 0 {
			t.Error("the server that it was submitted to is not given the time")
		}
		w.lookFor(5 * time.Second)
		if len(w.starts) != 1 || len(w.asked) == 0 {
			t.Errorf("it is started %d times, after accounts were asked about %q", len(w.starts), w.asked)
		}
	})
}

// What is lost is submitted again only while nothing has begun, and not for ever.
func TestALostJobIsStartedAgainUntilItHasBegun(t *testing.T) {
	eachRecords(t, func(t *testing.T, w *world) {
		h := w.submit()
		for range 10 {
			w.lookFor(lag)
		}
		if len(w.starts) != 3 {
			t.Errorf("it is started %d times", len(w.starts))
		}
		w.want("in the end", executor.Gone, executor.EngineForgot, "Slurm has lost the job before it began")
		if err := w.Release(t.Context(), executor.NoRun, h); err != nil {
			t.Error(err)
		}
		w.starts = nil
		h = w.submit()
		w.begins(h)
		for range 10 {
			w.lookFor(lag)
		}
		if len(w.starts) != 1 {
			t.Errorf("one that has begun is started %d times", len(w.starts))
		}
		w.want("one that has begun", executor.Gone, executor.Lost, "its shim is silent")
	})
}

// Accounts know of jobs that the cluster lists no more.
func TestAccountsTellHowAJobEnded(t *testing.T) {
	eachRecords(t, func(t *testing.T, w *world) {
		h := w.submit()
		w.runs(h)
		begin := w.now
		delete(w.jobs, h.ID)
		w.accounts = map[string]reconciler.JobStatus{h.ID: {Number: "7", Ended: true, Leaving: true, Reason: executor.Preempted, Detail: "Slurm says PREEMPTED", Start: begin, End: begin.Add(10 * time.Second)}}
		w.lookFor(lag + 2*time.Second)
		s := w.want("by its accounts", executor.Ended, executor.Preempted, "Slurm says PREEMPTED")
		if took := s.Exit.End.Sub(s.Exit.Start); took != 10*time.Second || len(w.asked) != 1 {
			t.Errorf("it took %s; accounts were asked %d times", took, len(w.asked))
		}
	})
}

// A report that comes just when something is decided without it counts.
func TestALateReportCounts(t *testing.T) {
	eachRecords(t, func(t *testing.T, w *world) {
		h := w.submit()
		w.runs(h)
		w.says(h, reconciler.JobStatus{Ended: true, Leaving: true, Reason: executor.Lost, Node: "node7"})
		w.lookFor(lag - time.Second)
		w.want("while it may say something", executor.Running, executor.Executing, "")
		w.reports(h, 2, &executor.Exit{Fence: "f", Code: 3})
		w.lookFor(5 * time.Second)
		if s := w.want("after its report", executor.Ended, executor.ExitedNonZero, ""); s.Exit.Code != 3 || s.Host != "node7" {
			t.Errorf("%+v, %+v", s, s.Exit)
		}
		ends := len(w.ends)
		if err := w.Release(t.Context(), executor.NoRun, h); err != nil || len(w.ends) != ends || len(w.forgotten) != 1 {
			t.Errorf("%v; ended %q, forgotten %q", err, w.ends, w.forgotten)
		}
	})
}

// What a shim reports that is no record of its attempt says nothing, and ends it.
func TestARecordThatIsNoneLosesTheAttempt(t *testing.T) {
	eachRecords(t, func(t *testing.T, w *world) {
		h := w.submit()
		w.runs(h)
		w.reports(h, 2, &executor.Exit{Fence: "another"})
		w.look()
		w.want("after its report", executor.Gone, executor.Lost, "of another attempt")
	})
}

// What waits for what does not come is given up, also across servers; what waits for
// others is not.
func TestWhatTheClusterCannotStart(t *testing.T) {
	eachRecords(t, func(t *testing.T, w *world) {
		h := w.submit()
		w.says(h, reconciler.JobStatus{Waits: true, Reason: executor.Queued, Detail: "Resources"})
		w.lookFor(time.Minute)
		w.later(2 * giveUp)
		w.look()
		w.want("while others have their turn", executor.Pending, executor.Queued, "Resources")
		blocked := reconciler.JobStatus{Waits: true, Blocked: true, Reason: executor.Unschedulable, Detail: "BadConstraints"}
		w.says(h, blocked)
		w.look()
		if w.dir != "" { // rows know when it was submitted
			w.want("when it cannot start", executor.Pending, executor.Unschedulable, "BadConstraints")
			long := w.now
			if err := os.Chtimes(string(w.folder(h))+"/stuck", long, long); err != nil {
				t.Fatal(err)
			}
			w.later(giveUp - time.Second)
			w.Driver = w.server()
			w.look()
			w.want("not yet", executor.Pending, executor.Unschedulable, "BadConstraints")
			w.later(time.Second)
			w.look()
		}
		w.want("given up", executor.Ended, executor.StartFailed, "Slurm could not start it for 1h0m0s: BadConstraints")
		if !slices.Contains(w.ends, h.ID) {
			t.Error("its job is left")
		}
		if w.dir != "" {
			if err := w.folder(h).Claim("f"); !errors.Is(err, fs.ErrExist) {
				t.Errorf("a job may still begin: %v", err)
			}
		}
	})
}

// What can start after all has not waited in vain.
func TestWhatCanStartAgainIsNotGivenUp(t *testing.T) {
	eachRecords(t, func(t *testing.T, w *world) {
		h := w.submit()
		for range 3 {
			w.says(h, reconciler.JobStatus{Waits: true, Blocked: true, Reason: executor.Unschedulable})
			w.look()
			w.later(giveUp - time.Minute)
			w.says(h, reconciler.JobStatus{Waits: true, Reason: executor.Queued})
			w.look()
			if w.dir == "" {
				break
			}
		}
		w.want("after all", executor.Pending, executor.Queued, "")
	})
}

// TestTimeToNoticeALossIsNotWorked checks the times of a job that runs for 30 s and of which
// nobody hears again until the cluster says that it is over.
func TestTimeToNoticeALossIsNotWorked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		reason executor.Reason
		end    time.Duration // by the cluster; 0: it does not say
		want   time.Duration
	}{
		"lost with its machine":              {executor.NodeLost, 0, 30 * time.Second},
		"killed":                             {executor.Lost, 0, 30 * time.Second},
		"ended by the site":                  {executor.Preempted, 0, 30 * time.Second},
		"ended by the site, which says when": {executor.Preempted, 33 * time.Second, 33 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			eachRecords(t, func(t *testing.T, w *world) {
				h := w.submit()
				w.runs(h)
				start := w.now
				for beat := range int64(30) {
					w.later(time.Second)
					w.reports(h, beat+2, nil)
					w.look()
				}
				s := reconciler.JobStatus{Ended: true, Leaving: true, Reason: tt.reason, Node: "node7"}
				if tt.end > 0 {
					s.End = start.Add(tt.end)
				}
				w.says(h, s)
				w.lookFor(82 * time.Second)
				for _, server := range []*reconciler.Driver{w.Driver, w.server()} { // the next one says the same
					w.Driver = server
					seen := w.seen()
					last := seen.SeenAt
					if seen.Exit != nil {
						last = seen.Exit.End
					}
					if took := last.Sub(start); !seen.Phase.Final() || took != tt.want {
						t.Errorf("%s after %s", seen.Phase, took)
					}
				}
			})
		})
	}
}

// TestSuspendedJobIsNotAtWork checks that the time is known in which the cluster has suspended a
// job, and that the job's own account of its times does not change that.
func TestSuspendedJobIsNotAtWork(t *testing.T) {
	eachRecords(t, func(t *testing.T, w *world) {
		h := w.submit()
		w.runs(h)
		start := w.now
		for second := range 50 {
			w.says(h, reconciler.JobStatus{Node: "node7", Suspended: second >= 5 && second <= 45})
			w.look()
			w.later(time.Second)
		}
		w.reports(h, 2, &executor.Exit{Fence: "f", Start: w.now, End: w.now.Add(10 * time.Second), Suspended: []executor.Span{{From: start, To: w.now}}})
		w.look()
		want := []executor.Span{{From: start.Add(5 * time.Second), To: start.Add(45 * time.Second)}}
		s := w.seen()
		if !slices.Equal(s.Suspended, want) || !s.Exit.End.Equal(w.now) || !s.Exit.OwnEnd.Equal(start.Add(10*time.Second)) {
			t.Errorf("%+v, %+v", s, s.Exit)
		}
	})
}

// A stop is tried again, and after the grace, and time for the shim to keep it, the
// cluster ends the job.
func TestAStopIsTriedAgain(t *testing.T) {
	eachRecords(t, func(t *testing.T, w *world) {
		h := w.submit()
		w.runs(h)
		if err := w.Stop(t.Context(), executor.NoRun, h, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		w.lookFor(30 * time.Second)
		w.want("while it has its grace", executor.Running, executor.Stopping, "")
		if len(w.signals) != 6 || len(w.ends) != 0 {
			t.Errorf("it is told %d times, and ended %d times", len(w.signals), len(w.ends))
		}
		w.lookFor(12 * time.Second)
		if len(w.ends) < 2 || len(w.ends) > 3 {
			t.Errorf("it is ended %d times", len(w.ends))
		}
	})
}

// An attempt that has not begun ends at once, and its job never begins.
func TestAStoppedAttemptDoesNotBegin(t *testing.T) {
	eachRecords(t, func(t *testing.T, w *world) {
		h := w.submit()
		w.says(h, reconciler.JobStatus{Waits: true, Reason: executor.Queued})
		if err := w.Stop(t.Context(), executor.NoRun, h, time.Minute); err != nil {
			t.Fatal(err)
		}
		w.look()
		w.want("at once", executor.Ended, executor.Cancelled, "")
		if len(w.ends) != 1 {
			t.Errorf("its job is ended %d times", len(w.ends))
		}
	})
}

// A job that runs for an attempt of no server is ended, and no other.
func TestJobsThatNobodyWantsAreEnded(t *testing.T) {
	eachRecords(t, func(t *testing.T, w *world) {
		before := w.server()
		h := w.submit()
		w.says(h, reconciler.JobStatus{})
		w.jobs["runs"], w.jobs["waits"], w.jobs["leaves"] = reconciler.JobStatus{}, reconciler.JobStatus{Waits: true}, reconciler.JobStatus{Leaving: true}
		w.jobs["is perhaps another's"] = reconciler.JobStatus{Unsure: true}
		w.Driver = before // it did not know of the attempt
		w.look()
		slices.Sort(w.ends)
		if !slices.Equal(w.ends, []string{"runs", "waits"}) {
			t.Errorf("%q", w.ends)
		}
		if w.dir == "" {
			return
		}
		// A folder that cannot be listed may have the attempts of all of them.
		w.ends = nil
		if err := os.RemoveAll(w.dir); err != nil {
			t.Fatal(err)
		}
		if err := w.Look(t.Context()); err == nil || len(w.ends) != 0 {
			t.Errorf("%q, %v", w.ends, err)
		}
	})
}

// Nothing is removed while a job of it might come back.
func TestReleasing(t *testing.T) {
	eachRecords(t, func(t *testing.T, w *world) {
		h := w.submit()
		if err := w.Release(t.Context(), executor.NoRun, h); !fault.Is(err, fault.KindConflict) {
			t.Errorf("while it waits: %v", err)
		}
		if err := w.Stop(t.Context(), executor.NoRun, h, 0); err != nil {
			t.Fatal(err)
		}
		w.look()
		w.problem = errAway
		if err := w.Release(t.Context(), executor.NoRun, h); !errors.Is(err, errAway) {
			t.Errorf("while the cluster does not answer: %v", err)
		}
		w.want("while the cluster does not answer", executor.Ended, executor.Cancelled, "")
		w.problem = nil
		for range 2 {
			if err := w.Release(t.Context(), executor.NoRun, h); err != nil {
				t.Error(err)
			}
		}
		_, logs := w.Logs(t.Context(), h, 0)
		_, usage := w.Usage(t.Context(), h)
		_, marks := w.Marks(t.Context(), h, 0)
		for _, err := range []error{logs, usage, marks} {
			if !fault.Is(err, fault.KindNotFound) {
				t.Errorf("of what was released: %v", err)
			}
		}
	})
}

// While the cluster does not answer, shims are heard, and nothing is lost.
func TestAClusterThatDoesNotAnswer(t *testing.T) {
	eachRecords(t, func(t *testing.T, w *world) {
		h := w.submit()
		w.runs(h)
		w.problem = errAway
		w.lookFor(10 * time.Minute)
		w.want("for minutes", executor.Running, executor.Executing, "")
		w.reports(h, 2, &executor.Exit{Fence: "f"})
		w.look()
		w.want("after its report", executor.Ended, executor.ExitedZero, "")
	})
}

func TestWhatIsNotSubmitted(t *testing.T) {
	eachRecords(t, func(t *testing.T, w *world) {
		for name, tt := range map[string]struct {
			change func(*executor.Spec)
			kind   fault.Kind
		}{
			"no interpreter": {func(s *executor.Spec) { s.Interpreter = "" }, fault.KindInvalid},
			"no fence":       {func(s *executor.Spec) { s.Fence = "" }, fault.KindInvalid},
			"an image":       {func(s *executor.Spec) { s.Root = "/images/a" }, fault.KindUnavailable},
			"an environment": {func(s *executor.Spec) { s.Environment = "/e" }, fault.KindUnavailable},
			"a NUL":          {func(s *executor.Spec) { s.Command = "a\x00" }, fault.KindInvalid},
		} {
			s := executor.Spec{Key: executor.Key{Run: "run_1", Node: "n", Attempt: 1}, Fence: "f", Interpreter: "sh"}
			if w.dir != "" {
				s.Dir = string(w.folder(executor.Handle{Key: s.Key}))
			}
			tt.change(&s)
			if _, err := w.Submit(t.Context(), executor.NoRun, s); !fault.Is(err, tt.kind) {
				t.Errorf("%s: %v", name, err)
			}
		}
		h := w.submit()
		if again := w.submit(); again != h || len(w.starts) != 1 {
			t.Errorf("%+v and %+v: %d are started", h, again, len(w.starts))
		}
	})
}

// A node with GPUs may be away from a cluster for a while: the task waits for it. A machine
// gets no more GPUs.
func TestTaskWaitsForGPUsOfACluster(t *testing.T) {
	eachRecords(t, func(t *testing.T, w *world) {
		submit := func(node string) error {
			s := executor.Spec{Key: executor.Key{Run: "run_1", Node: node, Attempt: 1}, Fence: "f", Interpreter: "sh", Command: "true", GPU: 2}
			if w.dir != "" {
				s.Dir = filepath.Join(w.dir, s.Key.Folder())
			}
			if err := w.Prepare(t.Context(), s.Key); err != nil {
				t.Fatal(err)
			}
			_, err := w.Submit(t.Context(), executor.NoRun, s)
			return err
		}
		if err := submit("a"); err != nil {
			t.Errorf("on a cluster: %v", err)
		}
		w.StartWaiting(t.Context())
		if len(w.starts) != 1 {
			t.Errorf("the cluster has %d jobs", len(w.starts))
		}
		w.sameMachine = true
		w.Driver = w.server()
		if err := submit("b"); !fault.Is(err, fault.KindConflict) {
			t.Errorf("on one machine: %v", err)
		}
	})
}

// TestAnAttemptIsStartedUnderALease has the lease of whoever submits an attempt run out
// while the cluster does not take it. Whichever server finds that starts it.
func TestAnAttemptIsStartedUnderALease(t *testing.T) {
	eachRecords(t, func(t *testing.T, w *world) {
		w.refusal = errAway
		w.permit = &drivertest.Lease{Fence: 1}
		w.submit()
		w.permit.RunOut()
		w.refusal = nil
		w.lookFor(lag - time.Second)
		if len(w.starts) != 0 {
			t.Error("it is started without a lease")
		}
		w.Driver = w.server()
		w.look()
		w.lookFor(lag + 2*time.Second)
		if len(w.starts) != 1 {
			t.Errorf("it is started %d times by the next server", len(w.starts))
		}
	})
}
