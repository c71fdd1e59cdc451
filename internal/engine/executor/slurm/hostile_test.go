package slurm

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
)

// places are what a task without a container around it can put where the server reads: it
// may write to the folder of its attempt, and the server sees more of its own machine.
func places(t *testing.T) map[string]func(path string) error {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(`{"stop":true,"fence":"f","exit":{"fence":"f"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return map[string]func(path string) error{
		"a pipe":             func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a link to a file":   func(path string) error { return os.Symlink(secret, path) },
		"a link to a device": func(path string) error { return os.Symlink("/dev/zero", path) },
		"a folder":           func(path string) error { return os.Mkdir(path, 0o700) },
		"a huge file": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40))
		},
	}
}

// One task must not hold up the others of a server, nor have it read what it could not read
// itself: whatever it puts into its folder is looked at and left.
func TestWhatATaskPutsIntoItsFolderHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	for name, put := range places(t) {
		for _, file := range []string{"state.json", "control.json", "claim", "outcome", "job.json"} {
			d := newDeciding(t)
			path := filepath.Join(string(d.a.folder), file)
			if err := errors.Join(os.RemoveAll(path), put(path)); err != nil {
				t.Fatal(err)
			}
			d.lookAtFile(t.Context(), d.a)
			if d.recordedLately(d.a) || d.a.phase.Final() {
				t.Errorf("%s at %s: %s, %s", name, file, d.a.phase, d.a.reason)
			}
			if ours, err := d.a.folder.Withdraw(); file == "claim" && (ours || err == nil) {
				t.Errorf("%s at %s is a claim of the server's: %t, %v", name, file, ours, err)
			}
			if o, err := d.readOutcome(d.a); err == nil {
				t.Errorf("%s at %s: %+v", name, file, o)
			}
			if c, err := d.a.folder.Control(); file == "control.json" && err == nil {
				t.Errorf("%s at %s: %+v", name, file, c)
			}
			if err := d.next().scan(); err != nil { // of a server that starts
				t.Errorf("%s at %s: %v", name, file, err)
			}
		}
	}
}

func TestALogThatIsSomethingElseIsEmpty(t *testing.T) {
	t.Parallel()
	for name, put := range places(t) {
		if name == "a huge file" { // is a log, which is read as it comes
			continue
		}
		d := newDeciding(t)
		if err := put(filepath.Join(string(d.a.folder), "log")); err != nil {
			t.Fatal(err)
		}
		r, err := d.Logs(t.Context(), d.handle(d.a), 0)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if text, err := io.ReadAll(io.LimitReader(r, 100)); err != nil || len(text) != 0 {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What the server writes into a task's folder reaches no file of the server's own.
func TestALinkThatATaskPlantsIsNotWrittenThrough(t *testing.T) {
	t.Parallel()
	victim := filepath.Join(t.TempDir(), "database")
	if err := os.WriteFile(victim, []byte("rows"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newDeciding(t)
	d.config.GiveUpAfter = time.Hour
	for _, name := range []string{outcomeFile, outcomeFile + ".new", receiptFile, stuckFile, "/control.json", "/state.json"} {
		path := string(d.a.folder) + name
		if err := errors.Join(os.RemoveAll(path), os.Symlink(victim, path)); err != nil {
			t.Fatal(err)
		}
	}
	d.handedOver(d.a, "7")
	d.weigh([]*attempt{d.a}, map[string][]slurmJob{d.a.name: {{id: "7", name: d.a.name, state: "PENDING", reason: "BadConstraints"}}}, d.now)
	if err := errors.Join(d.Stop(t.Context(), executor.NoRun, d.handle(d.a), 0), d.a.folder.WriteState(job.State{})); err != nil {
		t.Error(err)
	}
	d.conclude(d.a, executor.Ended, executor.Cancelled, "")
	if text, err := os.ReadFile(victim); err != nil || string(text) != "rows" {
		t.Errorf("it is %q now, %v", text, err)
	}
	if o, err := d.readOutcome(d.a); err != nil || o.Reason != executor.Cancelled {
		t.Errorf("the next server learns %+v, %v", o, err)
	}
}

// The folder of the next attempt can be made by the one before it, links included.
func TestACommandIsWrittenToItsOwnFolderAlone(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(temp, victim string) error{
		"the file": func(temp, victim string) error { return os.Symlink(victim, filepath.Join(temp, filepath.Base(victim))) },
		"its folder": func(temp, victim string) error {
			return errors.Join(os.Remove(temp), os.Symlink(filepath.Dir(victim), temp))
		},
	} {
		victim := filepath.Join(t.TempDir(), ".millrace-command")
		if err := os.WriteFile(victim, []byte("rows"), 0o600); err != nil {
			t.Fatal(err)
		}
		d := newDeciding(t)
		s := d.spec(t, "n")
		s.Interpreter, s.Command = "python3", "print(1)"
		if err := plant(s.Places().Temp, victim); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Submit(t.Context(), executor.NoRun, s); err == nil {
			t.Errorf("%s: it is submitted", name)
		}
		if text, err := os.ReadFile(victim); err != nil || string(text) != "rows" {
			t.Errorf("%s: it is %q now, %v", name, text, err)
		}
	}
}

// What was made before the server came is not where it brings inputs to.
func TestTheFolderOfAnAttemptIsNew(t *testing.T) {
	t.Parallel()
	victim := t.TempDir()
	if err := os.WriteFile(filepath.Join(victim, "file"), []byte("rows"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newDeciding(t)
	s := d.spec(t, "n")
	for name, plant := range map[string]func() error{
		"inputs elsewhere":     func() error { return os.Symlink(victim, s.Places().Inputs) },
		"work elsewhere":       func() error { return errors.Join(os.RemoveAll(s.Work()), os.Symlink(victim, s.Work())) },
		"all of it elsewhere":  func() error { return errors.Join(os.RemoveAll(s.Dir), os.Symlink(victim, s.Dir)) },
		"nothing but a folder": func() error { return nil },
	} {
		if err := errors.Join(plant(), d.Prepare(t.Context(), s.Key)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, dir := range []string{s.Dir, s.Work(), s.Places().Temp} {
			if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
				t.Errorf("%s: %s is %v, %v", name, dir, info, err)
			}
		}
		if _, err := os.Lstat(s.Places().Inputs); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: inputs are there: %v", name, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(victim, "file")); err != nil || string(text) != "rows" {
		t.Errorf("what is elsewhere is %q, %v", text, err)
	}
	// One that was submitted is left, whoever prepares it once more.
	if _, err := d.Submit(t.Context(), executor.NoRun, s); err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(s.Work(), "made")
	if err := errors.Join(os.WriteFile(made, nil, 0o600), d.Prepare(t.Context(), s.Key)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(made); err != nil {
		t.Errorf("what it made: %v", err)
	}
}
