package slurm_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	"github.com/millrace/millrace/internal/engine/executor/slurm"
)

// silentShim is a job that claims its attempt and says nothing: the test says it. It
// takes two seconds at least, so that Slurm tells its end from its beginning, and ends
// when the test has removed its folder.
const silentShim = "#!/bin/sh\n: > \"$2/claim\"\n: > \"$2/began\"\nsleep 2\nwhile [ -d \"$2/work\" ] && [ ! -e \"$2/work/go\" ]; do sleep 0.02; done\n"

// billedTimes has a job claim other times than it took. What is billed is when the
// server saw it run; of a job that runs and does not say so, when Slurm started it;
// and where no server looked, Slurm's own times.
func billedTimes(t *testing.T) {
	cluster(t)
	file := filepath.Join(t.TempDir(), "shim")
	if err := os.WriteFile(file, []byte(silentShim), 0o700); err != nil {
		t.Fatal(err)
	}
	hostile := with(slurm.Config{Shim: shim.Small(file)})
	now := time.Now()
	claims := map[string]executor.Exit{
		"none, an hour ago":    {Start: now.Add(-time.Hour), End: now.Add(-time.Hour)},
		"a thousand years":     {Start: now.AddDate(-500, 0, 0), End: now.AddDate(500, 0, 0)},
		"an end before it all": {Start: now, End: time.Unix(0, 0)},
	}
	for name, bill := range map[string]func(*testing.T, drivertest.Maker, executor.Exit){
		"it says that it runs": billedWhileSeen, "it says nothing": billedInSilence, "no server looks": billedUnseen,
	} {
		for claim, exit := range claims {
			t.Run(name+", "+claim, func(t *testing.T) {
				t.Parallel()
				bill(t, hostile, exit)
			})
		}
	}
}

// billedJob is one whose test plays the part of its shim.
type billedJob struct {
	*drivertest.Fixture
	spec      executor.Spec
	handle    executor.Handle
	submitted time.Time
}

func beginBilled(t *testing.T, hostile drivertest.Maker) *billedJob {
	t.Helper()
	j := &billedJob{Fixture: drivertest.NewFixture(t, hostile), submitted: time.Now()}
	j.spec = j.Spec(t, "true")
	j.handle = j.Submit(t, j.spec)
	drivertest.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(j.spec.Dir, "began"))
		return err == nil
	}, func() string { return "Slurm does not start the job" })
	return j
}

func (j *billedJob) say(t *testing.T, s job.State) {
	t.Helper()
	s.Fence = j.spec.Fence
	if s.Exit != nil {
		s.Exit.Fence = s.Fence
	}
	if err := job.Folder(j.spec.Dir).WriteState(s); err != nil {
		t.Fatal(err)
	}
}

// forge puts in what a server might have written of the end, as a task can that has no
// container around it.
func (j *billedJob) forge(t *testing.T, claimed executor.Exit) {
	t.Helper()
	claimed.Fence = j.spec.Fence
	text, err := json.Marshal(map[string]any{"phase": executor.Ended, "reason": executor.ExitedZero, "exit": claimed, "recorded": true, "at": claimed.End})
	if err == nil {
		err = os.WriteFile(filepath.Join(j.spec.Dir, "outcome"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// check compares what is billed with what the test knows: when the job ran for certain.
// Slurm counts whole seconds.
func (j *billedJob) check(t *testing.T, began, wentOn time.Time) {
	t.Helper()
	e := j.End(t, j.handle).Exit
	after := time.Now()
	if e.Start.Before(j.submitted.Truncate(time.Second)) || e.Start.After(began) || e.End.Before(wentOn.Truncate(time.Second)) || e.End.After(after) {
		t.Errorf("it is billed from %s to %s; it was submitted at %s, ran from %s to %s at least, and had ended at %s", e.Start, e.End, j.submitted, began, wentOn, after)
	}
}

func billedWhileSeen(t *testing.T, hostile drivertest.Maker, claimed executor.Exit) {
	j := beginBilled(t, hostile)
	j.say(t, job.State{Beats: 1})
	j.Await(t, j.handle, func(s executor.Status) bool { return s.Phase == executor.Running })
	began := time.Now()
	j.say(t, job.State{Beats: 2, Exit: &claimed})
	j.check(t, began, began)
	unblock(t, j.spec)
}

func billedInSilence(t *testing.T, hostile drivertest.Maker, claimed executor.Exit) {
	j := beginBilled(t, hostile)
	j.Await(t, j.handle, func(s executor.Status) bool { return s.Host != "" })
	began := time.Now()
	j.say(t, job.State{Beats: 1, Exit: &claimed})
	j.check(t, began, began)
	unblock(t, j.spec)
}

func billedUnseen(t *testing.T, hostile drivertest.Maker, claimed executor.Exit) {
	j := beginBilled(t, hostile)
	began, number := time.Now(), jobOf(t, j.spec)
	j.Leave()
	wentOn := time.Now()
	unblock(t, j.spec)
	drivertest.Eventually(t, func() bool {
		return !strings.Contains(command(t, "squeue", "--noheader", "--format=%A.", "--states=RUNNING,COMPLETING"), number+".")
	}, func() string { return "job " + number + " goes on" })
	j.say(t, job.State{Beats: 1, Exit: &claimed})
	j.forge(t, claimed)
	j.Subject = hostile(t, j.Folder)
	j.check(t, began, wentOn)
}
