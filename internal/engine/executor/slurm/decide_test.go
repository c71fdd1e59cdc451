package slurm

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
)

// deciding is a driver that has no Slurm, only what it is told of it, and one attempt
// whose job Slurm has long missed.
type deciding struct {
	*Driver
	a   *attempt
	now time.Time
}

func newDeciding(t *testing.T) *deciding {
	t.Helper()
	d := &deciding{now: time.Unix(1_700_000_000, 0)}
	sealer, err := newSealer(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	d.Driver = &Driver{
		config: Config{Folder: t.TempDir(), Lag: defaultLag, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return d.now }},
		sealer: sealer, installation: "i", watchers: newWatchers(), attempts: map[string]*attempt{}, queue: make(chan struct{}, 1), wake: make(chan struct{}, 1),
	}
	key := executor.Key{Run: "run_1", Node: "n", Attempt: 1}
	f := job.Folder(filepath.Join(d.config.Folder, key.Folder()))
	if err := errors.Join(os.Mkdir(string(f), 0o700), f.Create(job.Job{}, job.Control{})); err != nil {
		t.Fatal(err)
	}
	d.a = newAttempt("i", executor.Spec{Key: key, Fence: "f"}, f, d.now)
	d.a.missing, d.a.tries = d.now.Add(-defaultLag), 1
	d.attempts[key.Folder()] = d.a
	return d
}

// What Slurm says of a job that left no record is not taken for what its command did.
func TestWhatBecomesOfAJobWithoutARecord(t *testing.T) {
	t.Parallel()
	const ended, gone = executor.Ended, executor.Gone
	for name, tt := range map[string]struct {
		state            string
		claimed, stopped bool
		limit            time.Duration
		phase            executor.Phase
		reason           executor.Reason
		detail           string
	}{
		"it is said to have succeeded":  {"COMPLETED", true, false, 0, gone, executor.Lost, "Slurm says COMPLETED"},
		"it is said to have failed":     {"FAILED", true, false, 0, gone, executor.Lost, "Slurm says FAILED"},
		"too much memory":               {"OUT_OF_MEMORY", true, false, 0, ended, executor.OutOfMemory, "Slurm says"},
		"its own time limit":            {"TIMEOUT", true, false, time.Hour, ended, executor.TimedOut, "Slurm says TIMEOUT"},
		"the site's time limit":         {"TIMEOUT", true, false, 0, ended, executor.TimedOut, "set `timeoutSeconds`"},
		"cancelled by us":               {"CANCELLED", true, true, 0, ended, executor.Cancelled, ""},
		"cancelled by the site":         {"CANCELLED", true, false, 0, ended, executor.Preempted, ""},
		"preempted":                     {"PREEMPTED", true, false, 0, ended, executor.Preempted, ""},
		"its machine is gone":           {"NODE_FAIL", true, false, 0, gone, executor.NodeLost, ""},
		"never begun, and not wanted":   {"NODE_FAIL", false, true, 0, ended, executor.Cancelled, ""},
		"never begun, and failed":       {"FAILED", false, false, 0, ended, executor.StartFailed, "does the machine node7 see the folder"},
		"never begun: a lost machine":   {"NODE_FAIL", false, false, 0, executor.Pending, executor.Starting, ""},
		"never begun: cancelled there":  {"CANCELLED", false, false, 0, executor.Pending, executor.Starting, ""},
		"never begun: at a time limit":  {"TIMEOUT", false, false, 0, executor.Pending, executor.Starting, ""},
		"it may still be at its end":    {"COMPLETING", true, false, 0, executor.Pending, executor.Starting, ""},
		"a word that nobody knows here": {"RESIZING", false, false, 0, executor.Pending, executor.Starting, ""},
	} {
		d := newDeciding(t)
		d.a.about.Limit = tt.limit
		if tt.claimed {
			if err := d.a.folder.Claim("f"); err != nil {
				t.Fatal(err)
			}
			d.a.claimed = true
		}
		if tt.stopped {
			d.a.stopAt = d.now
		}
		j := slurmJob{id: "7", name: d.a.name, state: tt.state, node: "node7"}
		d.weigh([]*attempt{d.a}, map[string][]slurmJob{d.a.name: {j}}, d.now)
		if !j.ended() { // it is there
			if d.a.phase.Final() || len(d.waiting) != 0 || !d.a.missing.IsZero() {
				t.Errorf("%s: %s, %s", name, d.a.phase, d.a.reason)
			}
			continue
		}
		if d.a.phase != tt.phase || d.a.reason != tt.reason || !strings.Contains(d.a.detail, tt.detail) {
			t.Errorf("%s: %s, %s, %q", name, d.a.phase, d.a.reason, d.a.detail)
		}
		if resubmitted := len(d.waiting) == 1; resubmitted != (tt.phase == executor.Pending) {
			t.Errorf("%s: submitted again: %v", name, resubmitted)
		}
		if tt.phase == ended && (d.a.exit == nil || executor.ReasonOf(d.a.exit) != tt.reason || d.a.exit.Fence != "f") {
			t.Errorf("%s: %+v", name, d.a.exit)
		}
		// The next server says the same, whatever Slurm has forgotten by then.
		if tt.phase != executor.Pending {
			o, err := d.readOutcome(d.a)
			if err != nil || o.Phase != tt.phase || o.Reason != tt.reason || o.Recorded {
				t.Errorf("%s: %+v, %v", name, o, err)
			}
		}
	}
}

// Files take their time on their way: nothing is concluded before they had it.
func TestAJobIsGivenTimeToSayHowItEnded(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	d.a.missing = time.Time{}
	if err := d.a.folder.Claim("f"); err != nil {
		t.Fatal(err)
	}
	j := slurmJob{id: "7", name: d.a.name, state: "FAILED", node: "node7"}
	look := func() {
		d.weigh([]*attempt{d.a}, map[string][]slurmJob{d.a.name: {j}}, d.now)
	}
	look()
	d.now = d.now.Add(defaultLag - time.Second)
	look()
	if d.a.phase.Final() {
		t.Fatalf("concluded after %s", defaultLag-time.Second)
	}
	d.a.heard = d.now // it lives
	d.now = d.now.Add(defaultLag - time.Second)
	look()
	if d.a.phase.Final() {
		t.Fatal("a job that was heard is given up")
	}
	d.now = d.now.Add(time.Second)
	// Just then its record comes, which counts.
	if err := d.a.folder.WriteState(job.State{Fence: "f", Exit: &shim.Exit{Fence: "f", Code: 3}}); err != nil {
		t.Fatal(err)
	}
	look()
	if d.a.phase != executor.Ended || d.a.reason != executor.ExitedNonZero || !d.a.recorded {
		t.Errorf("%s, %s", d.a.phase, d.a.reason)
	}
}

// A job that is not there any more was not begun, is at work unheard, or was lost.
func TestWhatBecomesOfAJobThatNobodyKnows(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		claimed, stopped, other bool
		tries                   int
		phase                   executor.Phase
		reason                  executor.Reason
	}{
		"it had begun":           {claimed: true, tries: 1, phase: executor.Gone, reason: executor.Lost},
		"it is not wanted":       {stopped: true, tries: 1, phase: executor.Ended, reason: executor.Cancelled},
		"it is submitted again":  {tries: 2, phase: executor.Pending, reason: executor.Starting},
		"too often":              {tries: maxTries, phase: executor.Gone, reason: executor.EngineForgot},
		"a record of another's":  {claimed: true, other: true, tries: 1, phase: executor.Gone, reason: executor.Lost},
		"begun, and not wanted":  {claimed: true, stopped: true, tries: 1, phase: executor.Gone, reason: executor.Lost},
		"another's, never begun": {other: true, tries: maxTries, phase: executor.Gone, reason: executor.EngineForgot},
	} {
		d := newDeciding(t)
		d.a.tries = tt.tries
		if tt.stopped {
			d.a.stopAt = d.now
		}
		var err error
		if tt.claimed {
			err = d.a.folder.Claim("f")
		}
		if tt.other {
			err = errors.Join(err, d.a.folder.WriteState(job.State{Fence: "another", Exit: &shim.Exit{Fence: "another"}}))
		}
		if err != nil {
			t.Fatal(err)
		}
		d.forgotten(d.a)
		if d.a.phase != tt.phase || d.a.reason != tt.reason || (len(d.waiting) == 1) != (tt.phase == executor.Pending) {
			t.Errorf("%s: %s, %s, %q", name, d.a.phase, d.a.reason, d.a.detail)
		}
	}
}

// What cannot start at all is given up after a while, also across servers; what waits
// for others is not.
func TestWhatSlurmCannotStart(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	d.config.GiveUpAfter = time.Hour
	waits := func(reason string) {
		d.weigh([]*attempt{d.a}, map[string][]slurmJob{d.a.name: {{id: "7", name: d.a.name, state: "PENDING", reason: reason}}}, d.now)
	}
	stuck := string(d.a.folder) + stuckFile
	waits("BadConstraints")
	if _, err := os.Stat(stuck); err != nil || d.a.reason != executor.Unschedulable {
		t.Errorf("%v, %s", err, d.a.reason)
	}
	d.now = d.now.Add(59 * time.Minute)
	waits("Resources") // it can again
	if _, err := os.Stat(stuck); !errors.Is(err, fs.ErrNotExist) || d.a.reason != executor.Queued || !strings.Contains(d.a.detail, "Resources") {
		t.Errorf("%v, %s, %s", err, d.a.reason, d.a.detail)
	}
	waits("(ReqNodeNotAvail, UnavailableNodes:node7)")
	d.now = d.now.Add(time.Hour - time.Second)
	waits("(ReqNodeNotAvail, UnavailableNodes:node7)")
	if d.a.phase.Final() {
		t.Fatal("given up too early")
	}
	d.now = d.now.Add(time.Second)
	waits("(ReqNodeNotAvail, UnavailableNodes:node7)")
	if d.a.phase != executor.Ended || d.a.reason != executor.StartFailed || !strings.Contains(d.a.detail, "for 1h0m0s: (ReqNodeNotAvail") {
		t.Errorf("%s, %s, %s", d.a.phase, d.a.reason, d.a.detail)
	}
	if err := d.a.folder.Claim("f"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a job may still begin: %v", err)
	}
}

// A task may reach the folder of its attempt; it cannot say how that ended.
func TestAnOutcomeCannotBeForged(t *testing.T) {
	t.Parallel()
	d, other := newDeciding(t), newDeciding(t)
	other.a.about.Fence = "g"
	d.conclude(d.a, executor.Ended, executor.Cancelled, "")
	other.conclude(other.a, executor.Ended, executor.Preempted, "")
	file := string(d.a.folder) + outcomeFile
	sealed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	another, err := os.ReadFile(string(other.a.folder) + outcomeFile)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for name, text := range map[string][]byte{"changed": changed, "another attempt's": another, "plain": []byte(`{"phase":"ended"}`), "empty": {}, "cut": sealed[:10]} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if o, err := d.readOutcome(d.a); err == nil {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// TestTimeToNoticeALossIsNotWork checks the times of a job that runs for 30 s and of which
// nobody hears again until Slurm says that it is over.
func TestTimeToNoticeALossIsNotWork(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		state string
		end   time.Duration // by Slurm; 0: it does not say
		want  time.Duration
	}{
		"lost with its machine":              {"NODE_FAIL", 0, 30 * time.Second},
		"killed":                             {"FAILED", 0, 30 * time.Second},
		"ended by the site":                  {"PREEMPTED", 0, 30 * time.Second},
		"ended by the site, which says when": {"PREEMPTED", 33 * time.Second, 33 * time.Second},
	} {
		d := newDeciding(t)
		if err := d.a.folder.Claim("f"); err != nil {
			t.Fatal(err)
		}
		start := d.now
		d.a.missing = time.Time{}
		for beat := range int64(31) {
			d.hear(t.Context(), d.a, job.State{Fence: "f", Beats: beat + 1})
			d.now = d.now.Add(time.Second)
		}
		j := slurmJob{id: "7", name: d.a.name, state: tt.state, node: "node7"}
		if tt.end > 0 {
			j.end = start.Add(tt.end)
		}
		for range 82 {
			d.weigh([]*attempt{d.a}, map[string][]slurmJob{d.a.name: {j}}, d.now)
			d.now = d.now.Add(time.Second)
		}
		seen := d.seen(d.a)
		last := seen.SeenAt
		if seen.Exit != nil {
			last = seen.Exit.End
		}
		if took := last.Sub(start); !seen.Phase.Final() || took != tt.want {
			t.Errorf("%s: %s after %s", name, seen.Phase, took)
		}
		if o, err := d.readOutcome(d.a); err != nil || !o.SeenAt.Equal(seen.SeenAt) {
			t.Errorf("%s: the next server reads %+v, %v", name, o, err)
		}
	}
}

// TestSuspendedJobIsNotAtWork checks that the time is known in which Slurm has suspended a
// job, and that the job's own account of its times does not change that.
func TestSuspendedJobIsNotAtWork(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	start := d.now
	d.hear(t.Context(), d.a, job.State{Fence: "f", Beats: 1})
	for second := range 50 {
		state := "RUNNING"
		if second >= 5 && second <= 45 {
			state = "SUSPENDED"
		}
		d.weigh([]*attempt{d.a}, map[string][]slurmJob{d.a.name: {{id: "7", name: d.a.name, state: state, node: "node7"}}}, d.now)
		d.now = d.now.Add(time.Second)
	}
	claims := shim.Exit{Fence: "f", Start: d.now, End: d.now.Add(10 * time.Second), Suspended: []shim.Span{{From: start, To: d.now}}}
	d.hear(t.Context(), d.a, job.State{Fence: "f", Beats: 2, Exit: &claims})
	want := []executor.Span{{From: start.Add(5 * time.Second), To: start.Add(45 * time.Second)}}
	seen := d.seen(d.a)
	if !slices.Equal(seen.Suspended, want) || !seen.Exit.End.Equal(d.now) || !seen.Exit.OwnEnd.Equal(start.Add(10*time.Second)) {
		t.Errorf("%+v, %+v", seen, seen.Exit)
	}
}
