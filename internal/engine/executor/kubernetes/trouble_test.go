package kubernetes

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/remote"
)

// For a minute no packet comes from the server to a pod. The command goes on; what it
// says and makes meanwhile is there afterwards, once.
func TestNothingIsLostWhileTheNetworkIsCut(t *testing.T) {
	t.Parallel()
	b, s := fixture(t)
	spec := b.Spec(t, `echo ran; i=0; while [ ! -e go ]; do i=$((i+1)); echo $i; sleep 0.1; done; printf %s "$i" > made`)
	spec.Outputs = []executor.OutputPattern{{Port: "made", Path: "made"}}
	h := b.Submit(t, spec)
	drivertest.Eventually(t, func() bool { return strings.HasPrefix(b.Log(t, h, 0), "ran\n1\n") }, func() string { return b.Log(t, h, 0) })
	work := b.WorkOf(t, spec)
	address := ""
	drivertest.Eventually(t, func() bool { // the kubelet reports it after the task has spoken
		address = s.pod(t, spec.Key).Status.PodIP
		return address != ""
	}, func() string { return "the pod has no address" })
	route := func(what string) {
		t.Helper()
		if out, err := exec.Command("ip", "route", what, "blackhole", address+"/32").CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	route("add")
	cut := time.NewTimer(time.Minute)
	before := b.Log(t, h, 0)
	<-cut.C
	if seen, _ := b.Find(t, h); seen.Phase != executor.Running {
		t.Errorf("without its network it is %s %s: %s", seen.Phase, seen.Reason, seen.Detail)
	}
	during := b.Log(t, h, 0)
	touch(t, work)
	route("del")
	seen := b.End(t, h)
	if seen.Reason != executor.ExitedZero || len(seen.Exit.Outputs) != 1 {
		t.Fatalf("%s: %s, %+v", seen.Reason, seen.Detail, seen.Exit)
	}
	lines := strings.Split(strings.TrimSpace(b.Log(t, h, 0)), "\n")
	for i, line := range lines[1:] {
		if line != fmt.Sprint(i+1) {
			t.Fatalf("line %d is %q", i+1, line)
		}
	}
	if last := int64(len(lines) - 1); seen.Exit.Outputs[0].Size != int64(len(fmt.Sprint(last))) || len(during)-len(before) > 1000 || len(lines) < strings.Count(during, "\n")+100 {
		t.Errorf("it wrote %d lines, of which %d were known while it was cut off", len(lines), strings.Count(during, "\n"))
	}
}

// A node goes down with one task, while another goes on that nobody but itself can
// speak for. Somebody says that the node is out of service: where it is the only one,
// Kubernetes does not conclude that by itself.
func TestATaskIsLostWithItsNode(t *testing.T) {
	b, _ := fixture(t)
	dead, alive := b.Spec(t, "echo ran; sleep 600"), b.Spec(t, waits)
	deadHandle, aliveHandle := b.Submit(t, dead), b.Submit(t, alive)
	b.AwaitLog(t, deadHandle, "ran\n")
	b.AwaitLog(t, aliveHandle, "ran\n")
	work := b.WorkOf(t, alive)
	control(t, "kill", "kubelet")
	taint := func(taints string) {
		patchNode(t, "", "application/merge-patch+json", `{"spec":{"taints":`+taints+`}}`)
	}
	t.Cleanup(func() {
		taint("null")
		control(t, "start", "kubelet")
	})
	for _, pid := range shims(remote.ID(dead.Key)) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	taint(`[{"key":"node.kubernetes.io/out-of-service","value":"nodeshutdown","effect":"NoExecute"}]`)
	seen := b.End(t, deadHandle)
	if seen.Phase != executor.Gone || seen.Reason != executor.NodeLost || !strings.Contains(seen.Detail, "millrace-node") {
		t.Errorf("%s %s: %s", seen.Phase, seen.Reason, seen.Detail)
	}
	touch(t, work)
	ranOnce(t, b, aliveHandle)
}

// A job that no attempt belongs to is deleted with its pod; that of another
// installation in the same namespace is not.
func TestOnlyOurOwnOrphansAreEnded(t *testing.T) {
	t.Parallel()
	b, s := fixture(t)
	config := s.config
	config.Installation += "-other"
	other, err := New(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	job := reconciler.Job{Name: "millrace-" + strings.ToLower(rand.Text()), ID: "run_1.orphan.0.1", Fence: "f", VCPU: 1, MemoryBytes: 64 << 20}
	theirs := job
	theirs.Name += "-theirs"
	for k, j := range map[*Cluster]reconciler.Job{s.cluster: job, other: theirs} {
		if _, err := k.Start(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = other.End(context.Background(), theirs.Name) })
	listed := func(k *Cluster, name string) bool {
		listing, err := k.Jobs(t.Context())
		status, there := listing.Jobs[name]
		return err == nil && there && !status.Leaving
	}
	drivertest.Eventually(t, func() bool { return listed(other, theirs.Name) }, func() string { return "the other installation does not see its own job" })
	b.Do(t, b.Spec(t, "true"))
	drivertest.Eventually(t, func() bool { return !listed(s.cluster, job.Name) }, func() string { return "the orphan is still there" })
	if !listed(other, theirs.Name) {
		t.Error("the job of another installation is gone")
	}
	config.Earlier, config.Installation = config.Installation, config.Installation+"-upgraded"
	upgraded, err := New(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	drivertest.Eventually(t, func() bool { return listed(upgraded, theirs.Name) }, func() string { return "the next release does not find the job" })
	if listing, err := upgraded.Jobs(t.Context()); err != nil || !listing.Jobs[theirs.Name].Unsure {
		t.Errorf("it is sure that the job is its own: %+v, %v", listing.Jobs[theirs.Name], err)
	}
}

// touch lets a task go on that waits in this folder.
func touch(t *testing.T, work string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(work, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}
