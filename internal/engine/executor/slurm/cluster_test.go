package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/slurm"
)

// waits prints, waits for a file and ends with a status.
const waits = "echo ran; while [ ! -e go ]; do sleep 0.02; done; exit 4"

func unblock(t *testing.T, s executor.Spec) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.Work(), "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

func ranOnce(t *testing.T, b *drivertest.Fixture, h executor.Handle) {
	t.Helper()
	seen := b.End(t, h)
	if seen.Reason != executor.ExitedNonZero || seen.Exit.Code != 4 {
		t.Errorf("ended as %s (%s), %+v", seen.Reason, seen.Detail, seen.Exit)
	}
	if log := b.Log(t, h, 0); log != "ran\n" {
		t.Errorf("the log of one run is %q", log)
	}
}

func shownToNobody(t *testing.T) {
	b := drivertest.NewFixture(t, maker)
	s := b.Spec(t, waits)
	s.Env = map[string]string{"SECRET_A": "correct-horse-battery", "PLAIN": "plain-value-of-a-variable"}
	s.Secrets = []string{"correct-horse-battery"}
	h := b.Submit(t, s)
	b.AwaitLog(t, h, "ran\n")
	shown := command(t, "scontrol", "--details", "--details", "show", "job") + command(t, "squeue", "--all", "--format=%all")
	for _, id := range strings.Fields(command(t, "squeue", "--noheader", "--format=%A")) {
		shown += command(t, "scontrol", "write", "batch_script", id, "-")
	}
	for _, secret := range []string{"correct-horse", "plain-value"} {
		if strings.Contains(shown, secret) {
			t.Errorf("Slurm shows %s", secret)
		}
	}
	// Nor does a login shell read the user's files for it.
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", shimOf(t, s)))
	if err != nil || !strings.Contains(string(environment), "SLURM_JOB_ID=") || strings.Contains(string(environment), "SLURM_GET_USER_ENV") {
		t.Errorf("the job has %q, %v", environment, err)
	}
	unblock(t, s)
	ranOnce(t, b, h)
}

func impossible(t *testing.T) {
	b := drivertest.NewFixture(t, maker)
	for what, ask := range map[string]func(*executor.Spec){
		"more processors than any machine has": func(s *executor.Spec) { s.VCPU = 1000 },
		"three of two GPUs":                    func(s *executor.Spec) { s.GPU = 3 },
	} {
		s := b.Spec(t, "true")
		ask(&s)
		if seen := b.Do(t, s); seen.Reason != executor.StartFailed || !strings.Contains(seen.Detail, "Slurm refused the task") {
			t.Errorf("%s: %s: %s", what, seen.Reason, seen.Detail)
		}
	}
}

func gpus(t *testing.T) {
	b := drivertest.NewFixture(t, maker)
	s := b.Spec(t, `echo "${CUDA_VISIBLE_DEVICES:-none}"`)
	s.GPU = 2
	h := b.Submit(t, s)
	b.End(t, h)
	if log := b.Log(t, h, 0); log != "0,1\n" {
		t.Errorf("the task sees %q", log)
	}
}

func orphan(t *testing.T) {
	b := drivertest.NewFixture(t, maker)
	s := b.Spec(t, waits)
	h := b.Submit(t, s)
	b.AwaitLog(t, h, "ran\n")
	job := jobOf(t, s)
	b.Leave()
	drivertest.Eventually(t, func() bool { return os.RemoveAll(s.Dir) == nil }, func() string { return "the job keeps writing" })
	b.Subject = maker(t, b.Folder)
	drivertest.Eventually(t, func() bool {
		return !strings.Contains(command(t, "squeue", "--noheader", "--format=%A.", "--states=PENDING,RUNNING"), job+".")
	}, func() string { return "job " + job + " goes on" })
}

func startedTwice(t *testing.T) {
	b := drivertest.NewFixture(t, maker)
	s := b.Spec(t, waits)
	h := b.Submit(t, s)
	b.AwaitLog(t, h, "ran\n")
	job := jobOf(t, s)
	script := filepath.Join(t.TempDir(), "script")
	command(t, "scontrol", "write", "batch_script", job, script)
	command(t, "sbatch", "--wait", "--output=/dev/null", "--wrap=sh "+script+"; [ $? = 75 ]")
	unblock(t, s)
	ranOnce(t, b, h)
}

// jobOf is the number of a job, as Slurm has it.
func jobOf(t *testing.T, s executor.Spec) string {
	t.Helper()
	var text []byte
	drivertest.Eventually(t, func() (there bool) { // a job may begin before sbatch has told its number
		text, _ = os.ReadFile(filepath.Join(s.Dir, "slurm-job"))
		return len(text) > 0
	}, func() string { return "sbatch tells no number" })
	return strings.TrimSpace(string(text))
}

// with makes drivers with settings.
func with(c slurm.Config) drivertest.Maker {
	return func(t testing.TB, folder string) drivertest.Subject {
		c.Folder = folder
		return subject(t, c)
	}
}

func unschedulable(seen executor.Status) bool {
	return seen.Phase == executor.Pending && seen.Reason == executor.Unschedulable && strings.Contains(seen.Detail, "PartitionDown")
}

// givenUp is also given up when a new server comes meanwhile, and never begins.
func givenUp(t *testing.T) {
	command(t, "scontrol", "create", "partition=down", "nodes=n1,n2", "state=down")
	c := slurm.Config{Partition: "down", GiveUpAfter: time.Hour}
	b := drivertest.NewFixture(t, with(c))
	s := b.Spec(t, "true")
	h := b.Submit(t, s)
	b.Await(t, h, unschedulable)
	b.Leave()
	long := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(filepath.Join(s.Dir, "stuck"), long, long); err != nil {
		t.Fatal(err)
	}
	b.Subject = with(c)(t, b.Folder)
	seen := b.End(t, h)
	if seen.Reason != executor.StartFailed || !strings.Contains(seen.Detail, "PartitionDown") {
		t.Errorf("ended as %s (%s)", seen.Reason, seen.Detail)
	}
	if err := b.Release(t.Context(), executor.NoRun, h); err != nil {
		t.Fatal(err)
	}
	if left := command(t, "squeue", "--noheader", "--partition=down", "--states=PENDING,RUNNING"); left != "" {
		t.Errorf("a job is left: %s", left)
	}
}

func waitsForPartition(t *testing.T) {
	command(t, "scontrol", "create", "partition=later", "nodes=n1,n2", "state=down")
	b := drivertest.NewFixture(t, with(slurm.Config{Partition: "later", GiveUpAfter: time.Hour}))
	s := b.Spec(t, "exit 4")
	h := b.Submit(t, s)
	b.Await(t, h, unschedulable)
	command(t, "scontrol", "update", "partitionname=later", "state=up")
	if seen := b.End(t, h); seen.Reason != executor.ExitedNonZero || seen.Host == "" {
		t.Errorf("ended as %s (%s) on %q", seen.Reason, seen.Detail, seen.Host)
	}
}

// lostNode loses a machine that no other test uses: its daemon, and all that it
// ran.
func lostNode(t *testing.T) {
	dir := cluster(t)
	b := drivertest.NewFixture(t, with(slurm.Config{Partition: "fragile"}))
	s := b.Spec(t, waits)
	h := b.Submit(t, s)
	b.AwaitLog(t, h, "ran\n")
	command(t, filepath.Join(dir, "control"), "kill", "slurmd-n3")
	shim := shimOf(t, s)
	step := strings.TrimSpace(command(t, "ps", "-o", "ppid=", "-p", strconv.Itoa(shim))) // Slurm's own process beside it
	if name := command(t, "ps", "-o", "comm=", "-p", step); strings.TrimSpace(name) != "slurmstepd" {
		t.Fatalf("the job belongs to %s", name)
	}
	command(t, "kill", "-KILL", step, strconv.Itoa(shim))
	seen := b.End(t, h)
	if seen.Phase != executor.Gone || seen.Reason != executor.NodeLost && seen.Reason != executor.Lost {
		t.Errorf("ended as %s, %s (%s)", seen.Phase, seen.Reason, seen.Detail)
	}
}

// siteLimit moves the end that the limit of a partition gives a job nearer: a
// limit is a minute at least.
func siteLimit(t *testing.T) {
	command(t, "scontrol", "create", "partition=short", "nodes=n1,n2", "defaulttime=1", "state=up")
	b := drivertest.NewFixture(t, with(slurm.Config{Partition: "short"}))
	s := b.Spec(t, "echo up; sleep 600")
	h := b.Submit(t, s)
	b.AwaitLog(t, h, "up\n")
	command(t, "scontrol", "update", "jobid="+jobOf(t, s), "endtime=now+1")
	seen := b.End(t, h)
	if seen.Reason != executor.TimedOut || !strings.Contains(seen.Detail, "partition") {
		t.Errorf("ended as %s (%s)", seen.Reason, seen.Detail)
	}
}

// loginNode stands before Slurm's programs and does with their arguments what ssh
// does: a shell reads them once more, in an environment of its own.
func loginNode(t *testing.T) {
	cluster(t)
	script, calls := filepath.Join(t.TempDir(), "ssh"), filepath.Join(t.TempDir(), "calls")
	text := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = login ] && shift\necho \"$1\" >> %s\nexec env -i PATH=\"$PATH\" SLURM_CONF='%s' sh -c \"$*\"\n", calls, os.Getenv("SLURM_CONF"))
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	b := drivertest.NewFixture(t, with(slurm.Config{Prefix: []string{script, "login"}}))
	s := b.Spec(t, waits)
	h := b.Submit(t, s)
	b.AwaitLog(t, h, "ran\n")
	unblock(t, s)
	ranOnce(t, b, h)
	h = b.Submit(t, b.Spec(t, "echo up; sleep 600"))
	b.AwaitLog(t, h, "up\n")
	if err := b.Stop(t.Context(), executor.NoRun, h, 0); err != nil {
		t.Fatal(err)
	}
	if seen := b.End(t, h); seen.Reason != executor.Cancelled {
		t.Errorf("ended as %s (%s)", seen.Reason, seen.Detail)
	}
	used := command(t, "sort", "-u", calls)
	for _, program := range []string{"sbatch", "sinfo", "squeue"} { // and scancel, unless the job reads sooner that it is to end
		if !strings.Contains(used, program+"\n") {
			t.Errorf("%s did not go through it: %s", program, used)
		}
	}
}

func contained(t *testing.T) {
	container := strings.Fields("bwrap --ro-bind {root} / --dev /dev --proc /proc --tmpfs /tmp --bind {work} {work} --bind {temp} {temp} --chdir {work}")
	b := drivertest.NewFixture(t, with(slurm.Config{Container: container}))
	s := b.Spec(t, "ls ..; touch /usr/x 2>/dev/null || echo sealed; echo made > out")
	s.Outputs = []executor.OutputPattern{{Port: "out", Path: "out"}}
	h := b.Submit(t, s)
	if seen := b.End(t, h); seen.Reason != executor.ExitedZero {
		t.Errorf("ended as %s (%s)", seen.Reason, seen.Detail)
	}
	if log := b.Log(t, h, 0); log != "tmp\nwork\nsealed\n" {
		t.Errorf("the command sees %q", log)
	}
}

func TestSettingsOfSbatchCannotBecomeAnythingElse(t *testing.T) {
	t.Parallel()
	fine := slurm.Config{Folder: "/shared/millrace", Partition: "cpu", Constraint: "[skylake|icelake]&ib", Options: []string{"--exclusive", "--reservation=course"}}
	if err := fine.Check(); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]slurm.Config{
		"no folder":            {},
		"a relative folder":    {Folder: "millrace"},
		"a quote":              {Folder: "/shared/it's"},
		"a line":               {Folder: "/shared", Partition: "cpu\n#SBATCH --uid=0"},
		"an option as a value": {Folder: "/shared", Account: "--uid=0"},
		"two words":            {Folder: "/shared", QOS: "high --uid=0"},
		"no option":            {Folder: "/shared", Options: []string{"script"}},
		"one of ours":          {Folder: "/shared", Options: []string{"--requeue"}},
		"one of ours, set":     {Folder: "/shared", Options: []string{"--export=ALL"}},
	} {
		if c.Check() == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// killedController is felt by all that the cluster runs. What the controller has
// written down goes on; a job that it forgets it may also have killed, and then
// the attempt is lost. None runs twice, and none is given a wrong end.
func killedController(t *testing.T) {
	dir := cluster(t)
	control := func(what, daemon string) { command(t, filepath.Join(dir, "control"), what, daemon) }
	b := drivertest.NewFixture(t, maker)
	begin := func() (executor.Spec, executor.Handle) {
		s := b.Spec(t, waits)
		h := b.Submit(t, s)
		b.AwaitLog(t, h, "ran\n")
		return s, h
	}
	first, firstHandle := begin()
	second, secondHandle := begin()
	third, thirdHandle := begin()
	for _, s := range []executor.Spec{first, second, third} {
		mark := "runs-" + s.Key.Folder() // what was written down before may still call the job pending
		command(t, "scontrol", "update", "jobid="+jobOf(t, s), "admincomment="+mark)
		drivertest.Eventually(t, func() bool {
			state, _ := os.ReadFile(filepath.Join(dir, "state", "job_state"))
			return strings.Contains(string(state), mark)
		}, func() string { return "the controller writes nothing down" })
	}
	unsaved, unsavedHandle := begin()
	control("kill", "slurmctld")
	unblock(t, first) // nobody but the files can tell
	ranOnce(t, b, firstHandle)
	b.Leave()
	b.Subject = maker(t, b.Folder) // a new server meanwhile
	late := b.Spec(t, waits)
	lateHandle := b.Submit(t, late)
	unblock(t, second)
	ranOnce(t, b, secondHandle)
	control("start", "slurmctld")
	drivertest.Eventually(t, func() bool {
		// What Slurm makes of its machines meanwhile is its own affair.
		command(t, "sh", "-c", "scontrol update nodename=n1,n2 state=resume || true")
		seen, _ := b.Find(t, lateHandle)
		return seen.Phase == executor.Running
	}, func() string { return command(t, "squeue", "--all") + command(t, "sinfo") })
	for _, s := range []executor.Spec{third, unsaved, late} {
		unblock(t, s)
	}
	ranOnce(t, b, thirdHandle)
	ranOnce(t, b, lateHandle)
	if seen := b.End(t, unsavedHandle); seen.Reason != executor.Lost && seen.Reason != executor.Preempted {
		ranOnce(t, b, unsavedHandle)
	}
}
