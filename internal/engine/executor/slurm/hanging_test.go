package slurm_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
)

// sharedFileSystem is a file system of its own that we and the machines of the cluster
// see, as one that comes over the network.
func sharedFileSystem(t *testing.T, cluster string) string {
	t.Helper()
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skipf("a file system of its own needs loop devices: %v", err)
	}
	image, at := filepath.Join(t.TempDir(), "image"), t.TempDir()
	command(t, "truncate", "--size=64M", image)
	command(t, "mkfs.ext4", "-q", image)
	device := strings.TrimSpace(command(t, "losetup", "--find", "--show", image))
	t.Cleanup(func() { command(t, "losetup", "--detach", device) })
	inside := strings.TrimSpace(command(t, "pgrep", "-P", strings.TrimSpace(command(t, "cat", filepath.Join(cluster, "world")))))
	for _, where := range [][]string{nil, {"nsenter", "--target", inside, "--mount", "--pid"}} {
		do := func(args ...string) {
			all := append(append([]string{}, where...), args...)
			command(t, all[0], all[1:]...)
		}
		do("mount", device, at)
		t.Cleanup(func() { do("umount", "--lazy", at) })
	}
	return at
}

// hangingFolder is what becomes of a network file system whose server does not answer
// for a minute: whoever writes hangs. The command goes on; what it says and makes
// meanwhile is there afterwards, once.
func hangingFolder(t *testing.T) {
	shared := sharedFileSystem(t, cluster(t))
	folder := filepath.Join(shared, "attempts")
	b := &drivertest.Fixture{Subject: maker(t, folder), Folder: folder}
	s := b.Spec(t, `echo ran; i=0; while [ ! -e go ]; do i=$((i+1)); echo $i; sleep 0.1; done; printf %s "$i" > made`)
	s.Outputs = []executor.OutputPattern{{Port: "made", Path: "made"}}
	h := b.Submit(t, s)
	drivertest.Eventually(t, func() bool { return strings.HasPrefix(b.Log(t, h, 0), "ran\n1\n") }, func() string { return b.Log(t, h, 0) })
	before := b.Log(t, h, 0)
	// One process does both, so that it also ends when the test does not get that far.
	if out, err := exec.Command("sh", "-c", `fsfreeze --freeze "$1" && sleep 60; fsfreeze --unfreeze "$1"`, "sh", shared).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	unblock(t, s)
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
	if made := seen.Exit.Outputs[0].Size; made != int64(len(fmt.Sprint(len(lines)-1))) || len(lines) < strings.Count(before, "\n")+100 {
		t.Errorf("of %d lines, %d of them from before, it made %d bytes", len(lines), strings.Count(before, "\n"), made)
	}
}
