package slurm

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
)

// Slurm is told softly and again; after the grace, and time for the shim to keep it, it
// ends the job itself.
func TestWhatSlurmIsToldOfAStop(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	h := d.handle(d.a)
	told := func() (words string) {
		for _, options := range d.stopsDue(d.a) {
			words += "[" + strings.Join(options, " ") + "]"
		}
		return words
	}
	stop := func(grace time.Duration) {
		t.Helper()
		if err := d.Stop(t.Context(), executor.NoRun, h, grace); err != nil {
			t.Fatal(err)
		}
	}
	const softly, hard = "[--state=PENDING][--signal=USR1 --batch --state=RUNNING]", "[]"
	expect := func(when, want string) {
		t.Helper()
		if got := told(); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	expect("of one that nobody stops", "")
	stop(time.Minute)
	expect("at once", softly)
	expect("a moment later", "")
	d.now = d.now.Add(stopAgain)
	expect("once more", softly)
	stop(time.Hour) // no longer grace
	expect("after a longer grace", "")
	stop(time.Second)
	expect("after a shorter grace", softly)
	if c, err := d.a.folder.Control(); err != nil || !c.Stop || c.Grace != time.Second {
		t.Errorf("the job reads %+v, %v", c, err)
	}
	d.now = d.now.Add(time.Second + stopHard)
	expect("when its time is over", hard)
	d.now = d.now.Add(stopAgain)
	d.a.inQueue = true
	expect("while it is submitted again", "")
	d.a.inQueue = false
	d.conclude(d.a, executor.Ended, executor.Cancelled, "")
	expect("of what has ended", "")
	d.now = d.now.Add(time.Hour)
	stop(0)
	if c, err := d.a.folder.Control(); err != nil || c.Grace != time.Second {
		t.Errorf("what has ended is told %+v, %v", c, err)
	}
}

// A job that runs for an attempt of no server is ended, and no other.
func TestJobsThatNobodyWantsAreEnded(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	if err := os.RemoveAll(string(d.a.folder)); err != nil {
		t.Fatal(err)
	}
	other := &deciding{Driver: d.next(), now: d.now}
	s := other.spec(t, "n")
	if _, err := other.Submit(t.Context(), executor.NoRun, s); err != nil {
		t.Fatal(err)
	}
	theirs := other.attempts[s.Key.Folder()].name
	said := filepath.Join(t.TempDir(), "said")
	d.client = saying(t, `echo "$@" >> `+said)
	all := map[string][]slurmJob{}
	for name, state := range map[string]string{
		theirs: "RUNNING", "millrace-i-runs": "RUNNING", "millrace-i-waits": "PENDING", "millrace-i-ended": "FAILED", "millrace-i-ends": "COMPLETING",
	} {
		all[name] = []slurmJob{{id: "7", name: name, state: state}}
	}
	d.cancelOrphans(t.Context(), all)
	text, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	slices.Sort(lines)
	if want := []string{"scancel --quiet --name=millrace-i-runs", "scancel --quiet --name=millrace-i-waits"}; !slices.Equal(lines, want) {
		t.Errorf("%q", lines)
	}
	// A folder that cannot be listed may have the attempts of all of them.
	if err := os.RemoveAll(d.config.Folder); err != nil {
		t.Fatal(err)
	}
	d.cancelOrphans(t.Context(), all)
	if again, err := os.ReadFile(said); err != nil || string(again) != string(text) {
		t.Errorf("%q, %v", again, err)
	}
}

// What sbatch says is not the whole truth: it may have heard us all the same, and what it
// complains of may pass.
func TestHowASubmissionEnds(t *testing.T) {
	t.Parallel()
	fails := func(listed string) string {
		return `case "$1" in sbatch) cat > /dev/null; echo 'sbatch: error: Socket timed out' >&2; exit 1 ;; squeue) echo "` + listed + `" ;; esac`
	}
	for name, tt := range map[string]struct {
		script  string
		prepare func(*deciding)
		reason  executor.Reason
		tries   int
		detail  string
	}{
		"it is taken":               {"cat > /dev/null; echo 8", nil, executor.Queued, 2, ""},
		"it was heard all the same": {fails("8,NAME,PENDING,,0,0,None"), nil, executor.Queued, 2, ""},
		"nobody wants it any more":  {fails(""), func(d *deciding) { d.a.stopAt = d.now }, executor.Cancelled, 1, ""},
		"it was patient for long": {fails(""), func(d *deciding) {
			d.config.Now = func() time.Time { d.now = d.now.Add(patient + 1); return d.now }
		}, executor.StartFailed, 1, "Slurm refused the task: sbatch: sbatch: error: Socket timed out"},
		"it is refused for good": {"cat > /dev/null; echo 'invalid qos' >&2; exit 1", nil, executor.StartFailed, 1, "invalid qos"},
		"it has begun meanwhile": {fails(""), func(d *deciding) { _ = d.a.folder.Claim("f") }, executor.Starting, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDeciding(t)
			d.client, d.a.inQueue = saying(t, strings.ReplaceAll(tt.script, "NAME", d.a.name)), true
			if tt.prepare != nil {
				tt.prepare(d)
			}
			if d.submit(t.Context(), d.a); d.a.reason != tt.reason || d.a.tries != tt.tries || d.a.inQueue || !strings.Contains(d.a.detail, tt.detail) {
				t.Errorf("%s after %d tries, %q; in the queue: %t", d.a.reason, d.a.tries, d.a.detail, d.a.inQueue)
			}
			if tt.tries == 2 && d.a.receipt != "8" {
				t.Errorf("its job is %q", d.a.receipt)
			}
		})
	}
	d := newDeciding(t) // a server that goes leaves the attempt to the next one
	d.client, d.a.inQueue = saying(t, fails("")), true
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d.submit(ctx, d.a); d.a.phase != executor.Pending || d.a.tries != 1 {
		t.Errorf("%s, %s, %q", d.a.phase, d.a.reason, d.a.detail)
	}
}

// The next in line is handed over first, by one submitter after the other.
func TestAttemptsAreHandedOverInOrder(t *testing.T) {
	t.Parallel()
	d := newDeciding(t)
	if d.nextWaiting() != nil {
		t.Error("there is something to submit")
	}
	first, second := &attempt{}, &attempt{}
	d.submitLater(first)
	d.submitLater(second)
	<-d.queue
	if d.nextWaiting() != first {
		t.Error("the second one comes first")
	}
	select {
	case <-d.queue: // for the next submitter
	default:
		t.Error("nobody is told that there is another")
	}
	if d.nextWaiting() != second || d.nextWaiting() != nil {
		t.Error("the second one does not follow")
	}
}
