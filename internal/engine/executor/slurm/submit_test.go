package slurm

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
)

// What sbatch says is not the whole truth: it may have heard us all the same, and what it
// complains of may pass.
func TestHowASubmissionEnds(t *testing.T) {
	t.Parallel()
	const fails = `case "$1" in sbatch) cat > /dev/null; echo 'sbatch: error: COMPLAINT' >&2; exit 1 ;; squeue) echo "LISTED" ;; esac`
	for name, tt := range map[string]struct {
		script, complaint, listed string
		number                    string
		kind                      fault.Kind
	}{
		"it is taken":               {script: "cat > /dev/null; echo 8", number: "8"},
		"it was heard all the same": {script: fails, complaint: "Socket timed out", listed: "8,millrace-i-a,PENDING,,0,0,None", number: "8"},
		"it may pass":               {script: fails, complaint: "Socket timed out", kind: fault.KindConflict},
		"it is refused for good":    {script: fails, complaint: "invalid qos", kind: fault.KindInvalid},
		"it was lost before":        {script: fails, complaint: "invalid qos", listed: "7,millrace-i-a,NODE_FAIL,,0,0,x", kind: fault.KindInvalid},
	} {
		k, _ := still(t)
		k.client = saying(t, strings.NewReplacer("COMPLAINT", tt.complaint, "LISTED", tt.listed).Replace(tt.script))
		j := reconciler.Job{Name: "millrace-i-a", ID: "a"}
		dir := filepath.Join(k.config.Folder, j.ID)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		number, err := k.Start(t.Context(), j)
		if number != tt.number || err != nil && !fault.Is(err, tt.kind) || (err == nil) != (tt.kind == "") {
			t.Errorf("%s: %q, %v", name, number, err)
		}
		if receipt, _ := os.ReadFile(dir + receiptFile); strings.TrimSpace(string(receipt)) != tt.number {
			t.Errorf("%s: people are told %q", name, receipt)
		}
	}
	k, _ := still(t)
	k.client = saying(t, "true")
	if number, err := k.Start(t.Context(), reconciler.Job{Name: "millrace-i-a", ID: "a"}); err == nil {
		t.Errorf("without a number: %q", number)
	}
}

// What Slurm says of a job is only what it can know: what its command did is not among
// that.
func TestWhatSlurmSaysOfAJob(t *testing.T) {
	t.Parallel()
	k, _ := still(t)
	for name, tt := range map[string]struct {
		job  slurmJob
		want reconciler.JobStatus
	}{
		"it runs":             {slurmJob{state: "RUNNING", node: "n1"}, reconciler.JobStatus{Node: "n1"}},
		"it runs on several":  {slurmJob{state: "RUNNING", node: "n[1-2]"}, reconciler.JobStatus{}},
		"it is suspended":     {slurmJob{state: "SUSPENDED", node: "n1"}, reconciler.JobStatus{Node: "n1", Suspended: true}},
		"it waits":            {slurmJob{state: "PENDING", reason: "Priority"}, reconciler.JobStatus{Waits: true, Reason: executor.Queued, Detail: "waits in Slurm's queue: Priority"}},
		"it cannot start":     {slurmJob{state: "PENDING", reason: "BadConstraints"}, reconciler.JobStatus{Waits: true, Blocked: true, Reason: executor.Unschedulable, Detail: "Slurm cannot start it: BadConstraints"}},
		"it is at its end":    {slurmJob{state: "COMPLETING", node: "n1"}, reconciler.JobStatus{Node: "n1", Leaving: true}},
		"it is said to be ok": {slurmJob{state: "COMPLETED", node: "n1"}, reconciler.JobStatus{Node: "n1", Ended: true, Leaving: true, Reason: executor.Lost, Detail: "Slurm says COMPLETED"}},
		"it is said to fail":  {slurmJob{state: "FAILED", node: "n1"}, reconciler.JobStatus{Node: "n1", Ended: true, Leaving: true, Reason: executor.Lost, Detail: "Slurm says FAILED"}},
		"too much memory":     {slurmJob{state: "OUT_OF_MEMORY"}, reconciler.JobStatus{Ended: true, Again: true, Leaving: true, Reason: executor.OutOfMemory, Detail: "Slurm says OUT_OF_MEMORY"}},
		"a time limit":        {slurmJob{state: "TIMEOUT"}, reconciler.JobStatus{Ended: true, Again: true, Leaving: true, Reason: executor.TimedOut, Detail: "Slurm says TIMEOUT"}},
		"cancelled":           {slurmJob{state: "CANCELLED", node: "None assigned"}, reconciler.JobStatus{Ended: true, Again: true, Leaving: true, Reason: executor.Preempted, Detail: "Slurm says CANCELLED"}},
		"its machine is gone": {slurmJob{state: "NODE_FAIL"}, reconciler.JobStatus{Ended: true, Again: true, Leaving: true, Reason: executor.NodeLost, Detail: "Slurm says NODE_FAIL"}},
		"a word nobody knows": {slurmJob{state: "RESIZING"}, reconciler.JobStatus{}},
	} {
		got := k.statusOf(tt.job)
		if got.Ended && !strings.Contains(got.NotBegun, "see the folder "+k.config.Folder) {
			t.Errorf("%s: %q", name, got.NotBegun)
		}
		if got.NotBegun = ""; got != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A listing is Slurm's last one, whatever it does now.
func TestTheLastListingIsRemembered(t *testing.T) {
	t.Parallel()
	k, _ := still(t)
	if l, err := k.Jobs(t.Context()); err == nil {
		t.Errorf("before Slurm was asked: %+v", l)
	}
	k.client = saying(t, "echo 8,millrace-i-a,RUNNING,n1,0,0,None")
	before := time.Now()
	k.list(t.Context())
	l, err := k.Jobs(t.Context())
	if err != nil || l.Jobs["millrace-i-a"].Number != "8" || l.Age > time.Since(before) {
		t.Errorf("%+v, %v", l, err)
	}
	select {
	case <-k.Changed():
	default:
		t.Error("nobody is told of a listing")
	}
	k.client = saying(t, "echo no controller >&2; exit 1")
	k.list(t.Context())
	if _, err := k.Jobs(t.Context()); !isRefusal(err) {
		t.Errorf("while Slurm does not answer: %v", err)
	}
}

// Accounts may say that a job runs which Slurm does not list: that is no end.
func TestOnlyJobsThatHaveEndedAreFoundInAccounts(t *testing.T) {
	t.Parallel()
	k, _ := still(t)
	k.client = saying(t, `printf '12|a|NODE_FAIL|n1|1700000000|1700000060\n13|b|RUNNING|n1|1700000000|Unknown\n'`)
	found, err := k.Ended(t.Context(), []string{"a", "b"}, time.Unix(0, 0))
	if err != nil || len(found) != 1 || found["a"].Reason != executor.NodeLost || found["a"].End.Sub(found["a"].Start) != time.Minute {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestWhatScancelIsTold(t *testing.T) {
	t.Parallel()
	k, _ := still(t)
	said := filepath.Join(t.TempDir(), "said")
	k.client = saying(t, `echo "$@" >> `+said)
	for _, call := range []func(context.Context, string) error{k.Signal, k.End, k.Forget} {
		if err := call(t.Context(), "millrace-i-a"); err != nil {
			t.Error(err)
		}
	}
	text, err := os.ReadFile(said)
	if want := "scancel --quiet --name=millrace-i-a --signal=USR1 --batch --state=RUNNING\nscancel --quiet --name=millrace-i-a\n"; err != nil || string(text) != want {
		t.Errorf("%q, %v", text, err)
	}
}

// A complaint of sbatch's does not mean that it has not heard us; a job of the same name
// that was lost before does not mean that it has.
func TestWhetherSlurmHasAJobAllTheSame(t *testing.T) {
	t.Parallel()
	for listed, want := range map[string]string{
		"":                         "",
		"7,NAME,NODE_FAIL,,0,0,x":  "",
		"7,NAME,PENDING,,0,0,None": "7",
		"7,NAME,NODE_FAIL,,0,0,x\n8,NAME,RUNNING,n,0,0,None": "8",
		"9,NAME-of-another,RUNNING,n,0,0,None":               "",
	} {
		k, _ := still(t)
		k.client = saying(t, "cat <<'END'\n"+strings.ReplaceAll(listed, "NAME", "millrace-i-a")+"\nEND\n")
		if id := k.accepted(t.Context(), "millrace-i-a"); id != want {
			t.Errorf("%q: %q", listed, id)
		}
	}
	k, _ := still(t)
	k.client = saying(t, "exit 1")
	if id := k.accepted(t.Context(), "millrace-i-a"); id != "" {
		t.Errorf("from a controller that is away: %q", id)
	}
}

func TestWhatSbatchIsTold(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		job    reconciler.Job
		prefix []string
		want   string
		not    string
	}{
		"nothing is asked for":      {want: "--cpus-per-task=1 --mem=128M", not: "--time"},
		"part of a processor":       {job: reconciler.Job{VCPU: 1.25, MemoryBytes: 1 << 30}, want: "--cpus-per-task=2 --mem=1088M"},
		"a second counts a minute":  {job: reconciler.Job{Timeout: time.Second}, want: "--time=3"},
		"whole minutes":             {job: reconciler.Job{Timeout: time.Minute}, want: "--time=3", not: "--gres"},
		"GPUs":                      {job: reconciler.Job{GPU: 2}, want: "--gres=gpu:2"},
		"a folder that we share":    {want: "--export-file=", not: "NIL"},
		"a login node has its own":  {prefix: []string{"ssh", "login"}, want: "--export=NIL", not: "--export-file"},
		"it is never started again": {want: "--no-requeue"},
	} {
		k, _ := still(t)
		k.config.Prefix, tt.job.Name, tt.job.ID = tt.prefix, "millrace-i-a", "run_1.a.0.1"
		told := strings.Join(k.options(tt.job, "/shared/run_1.a.0.1"), " ")
		if !strings.Contains(told, tt.want) || tt.not != "" && strings.Contains(told, tt.not) || !strings.Contains(told, "--job-name=millrace-i-a --comment=run_1.a.0.1") {
			t.Errorf("%s: %s", name, told)
		}
	}
	k, _ := still(t)
	k.config.Partition, k.config.Options = "cpu", []string{"--reservation=course"}
	want := "#!/bin/sh\n#SBATCH --partition=cpu\n#SBATCH --reservation=course\nexec '/shim' '-run' '/shared/run_1.a.0.1'\n"
	if got := k.script("/shared/run_1.a.0.1"); got != want {
		t.Errorf("%s", got)
	}
}

func TestATeamsJobsAreAccountedForUnderItsNames(t *testing.T) {
	t.Parallel()
	k, _ := still(t)
	j := reconciler.Job{Name: "millrace-i-a", ID: "run_1.a.0.1", Owner: executor.Owner{
		Team: "team_1", TeamName: "Genomics & Söhne\n--wrap=id", Person: "user_1", PersonName: "Ada $(id) `id` 'x' " + strings.Repeat("a", 200), Account: "lab", QOS: "low.1", WCKey: "grant_7",
	}}
	told := k.options(j, "/shared/run_1.a.0.1")
	for _, want := range []string{
		"--account=lab", "--qos=low.1", "--wckey=grant_7",
		"--comment=run_1.a.0.1,team=Genomics___S_hne_--wrap_id:team_1,person=Ada___id___id___x__aaaaaaaaaaaaaaaaaaaaa:user_1",
	} {
		if !slices.Contains(told, want) {
			t.Errorf("%q is not among %q", want, told)
		}
	}
	j.Owner.Account, j.Owner.QOS, j.Owner.WCKey = "--wrap=id", "a b", "a\nb"
	for _, option := range k.options(j, "/shared/run_1.a.0.1") {
		for _, name := range []string{"--account", "--qos", "--wckey"} {
			if strings.HasPrefix(option, name) {
				t.Errorf("sbatch is told %q", option)
			}
		}
	}
}
