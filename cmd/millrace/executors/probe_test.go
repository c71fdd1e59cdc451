package executors

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/dummy"
	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
)

// The test program is its own shim where none is embedded.
func TestMain(m *testing.M) {
	if job.IsCall(os.Args) {
		syscall.Exit(job.Run(os.Args))
	}
	os.Exit(m.Run())
}

// folders makes the folder of an attempt, or says why not.
type folders struct {
	dir string
	err error
}

func (f folders) Prepare(_ context.Context, k executor.Key) error {
	return errors.Join(f.err, os.MkdirAll(filepath.Join(f.dir, k.Folder(), shim.WorkFolder), 0o700))
}

// unready is a driver that says that it is not.
type unready struct{ executor.Driver }

func (unready) Capabilities(context.Context) (executor.Capabilities, error) {
	return executor.Capabilities{Problem: "install bubblewrap"}, nil
}

func TestAProbeSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*Driver)
		says   string
	}{
		"it ends as another": {func(*Driver) {}, "ended as exited_zero"}, // the dummy reads no shell
		"it is not ready":    {func(d *Driver) { d.Driver = unready{d.Driver} }, "install bubblewrap"},
		"there is no room":   {func(d *Driver) { d.Preparer = folders{dir: t.TempDir(), err: errors.New("no room")} }, "no room"},
	} {
		folder := t.TempDir()
		driver, err := dummy.New(folder, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		d := Driver{Driver: driver, Watcher: driver, Preparer: folders{dir: folder}}
		tt.change(&d)
		if err := Probe(t.Context(), d, folder); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
		if err := driver.Close(); err != nil {
			t.Error(err)
		}
	}
}

// While the probe's task waits, what it waits for is known, and is said when nobody wants
// to wait any more: also where the driver hangs up at the same moment.
func TestAProbeSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	waits := executor.Status{Phase: executor.Pending, Reason: executor.Unschedulable, Detail: "no node"}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := awaitProbe(gone, nil); err == nil || !strings.Contains(err.Error(), "nothing was heard of it") {
		t.Error(err)
	}
	for range 100 { // either may be noticed first
		ctx, cancel := context.WithCancel(t.Context())
		updates := make(chan executor.Status)
		said := make(chan error)
		go func() { said <- awaitProbe(ctx, updates) }()
		updates <- waits
		close(updates)
		cancel()
		if err := <-said; err == nil || !strings.HasSuffix(err.Error(), "it is unschedulable, no node") {
			t.Fatal(err)
		}
	}
}

func TestARealProbe(t *testing.T) {
	t.Parallel()
	before, err := filepath.Glob(filepath.Join(os.TempDir(), "millrace-doctor-*"))
	if err != nil {
		t.Fatal(err)
	}
	here := Named{Name: "here", Kind: "local"}
	slurm := Named{Name: "there", Kind: "slurm", Slurm: Slurm{SlurmFolder: filepath.Join(t.TempDir(), "shared"), SlurmCommandPrefix: "/no/such/ssh"}}
	errs := TryAll(t.Context(), []Named{here, slurm, {Kind: "slurm"}, {Kind: "kubernetes"}}, string(local.None))
	for i, want := range []string{"", "Slurm does not answer", "--slurm-folder", "--attempts-url"} {
		if said := errs[i]; (said == nil) != (want == "") || said != nil && !strings.Contains(said.Error(), want) {
			t.Errorf("%d: %v, want %q", i, said, want)
		}
	}
	after, err := filepath.Glob(filepath.Join(os.TempDir(), "millrace-doctor-*"))
	if err != nil || len(after) > len(before) {
		t.Errorf("left: %q, %v", after, err)
	}
	if left, err := os.ReadDir(slurm.Slurm.SlurmFolder); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A cluster is told an image by its digest alone: a tag could be another one tomorrow.
func TestAnImageIsNamedByItsDigest(t *testing.T) {
	t.Parallel()
	const digest = "sha256:abc"
	for ref, want := range map[string]string{
		"alpine": "alpine", "alpine:3.20": "alpine", "quay.io/bio/samtools:1.20--h1": "quay.io/bio/samtools", "host:5000/a": "host:5000/a", "host:5000/a:1": "host:5000/a",
		"a@sha256:old": "a", "host:5000/a:1@sha256:old": "host:5000/a",
	} {
		root, roots, done, err := References{}.Root(t.Context(), ref, digest)
		if err != nil || root != want+"@"+digest || len(roots) != 0 {
			t.Errorf("%s: %q, %v", ref, root, err)
		}
		done()
	}
}

func TestCapacities(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "{0 0}", "vcpu=4": "{4 0}", "ramGb=16": "{0 16}", "vcpu=4, ramGb=16": "{4 16}", " vcpu=1048576": "{1048576 0}",
		"vcpu=0": "", "vcpu=-1": "", "vcpu=1048577": "", "vcpu=1.5": "", "vcpu": "", "vcpu=": "", "vcpu=4,": "", "cpu=4": "", "vcpu= 4": "", "VCPU=4": "", "ramGb=99999999999999999999": "",
	} {
		size, err := ParseCapacity(text)
		got := fmt.Sprintf("{%d %d}", size.VCPU, size.RAMGB)
		if err != nil && (want != "" || got != "{0 0}") || err == nil && got != want {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}
