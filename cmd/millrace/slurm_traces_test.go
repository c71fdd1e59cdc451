package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// onCluster are premises whose tasks run on a real Slurm, with all that it keeps
// of jobs: scripts, environments, accounts and logs.
func onCluster(t *testing.T) *premises {
	t.Helper()
	p := &premises{t: t, cluster: t.TempDir()}
	p.folders = []string{p.cluster, os.Getenv("MILLRACE_TEST_SLURM")}
	t.Cleanup(func() {
		if p.shims == 0 && !t.Skipped() {
			t.Error("no process of a job was ever looked at")
		}
		if !p.shown && !t.Skipped() {
			t.Error("Slurm never showed a job of ours")
		}
	})
	return p
}

// pause is how a task waits until it may go on: for a moment, or on a cluster,
// whose tasks see our folders or we theirs, until goOn.
func (p *premises) pause() string {
	if p.pods != "" {
		return "touch waits." + p.port + "; while [ ! -e go ]; do sleep 0.05; done"
	}
	if p.cluster == "" {
		return "sleep 3"
	}
	return "while [ ! -e " + p.gate() + " ]; do sleep 0.05; done"
}

func (p *premises) goOn() {
	p.t.Helper()
	if p.pods != "" {
		p.goOnInPods()
	}
	if p.cluster == "" {
		return
	}
	if err := os.WriteFile(p.gate(), nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *premises) gate() string { return filepath.Join(p.cluster, "go") }

// jobs gives what Slurm tells of all jobs, and the environments of the processes
// that it started for ours.
func (p *premises) jobs(look func(where string, text []byte)) {
	p.t.Helper()
	slurm := func(args ...string) []byte {
		out, _ := exec.Command(args[0], args[1:]...).CombinedOutput() // a job may end while we look
		look(strings.Join(args, " "), out)
		return out
	}
	shown := slurm("scontrol", "--details", "--details", "show", "job") // for a while after their end
	p.shown = p.shown || bytes.Contains(shown, []byte("millrace-"))
	slurm("squeue", "--all", "--format=%all")
	for _, id := range strings.Fields(string(slurm("squeue", "--all", "--noheader", "--format=%A"))) {
		slurm("scontrol", "write", "batch_script", id, "-")
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		command, _ := os.ReadFile(process + "/cmdline")
		ours := bytes.Contains(command, []byte("-run\x00"+p.cluster+"/"))
		if ours {
			p.shims++
		}
		if ours || bytes.HasPrefix(command, []byte("slurmstepd")) {
			environment, _ := os.ReadFile(process + "/environ")
			look("the environment of "+string(command), environment)
			look("the command line of "+string(command), command)
		}
	}
}
