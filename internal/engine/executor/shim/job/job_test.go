package job

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/engine/executor/shim"
)

func TestSecretsAreForOneJobAndOneAttempt(t *testing.T) {
	t.Parallel()
	mine, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	other, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	want := Secrets{Env: []string{"SECRET_A=correct-horse"}, Values: []string{"correct-horse"}}
	sealed, err := Seal(mine.PublicKey().Bytes(), "fence", want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := mine.open("fence", sealed)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := mine.open("another", sealed); err == nil {
		t.Error("another attempt's secrets are opened")
	}
	if _, err := other.open("fence", sealed); err == nil {
		t.Error("another job's secrets are opened")
	}
	if _, err := Seal([]byte("no key"), "fence", want); err == nil {
		t.Error("secrets are sealed for nobody")
	}
}

func TestAnAttemptIsClaimedOnce(t *testing.T) {
	t.Parallel()
	f := Folder(t.TempDir())
	if f.Begun() {
		t.Error("nobody has claimed it")
	}
	if err := f.Claim("fence"); err != nil {
		t.Fatal(err)
	}
	if err := f.Claim("fence"); !errors.Is(err, fs.ErrExist) || !f.Begun() {
		t.Errorf("a second claim: %v", err)
	}
}

func TestWhatOneSideWritesTheOtherReads(t *testing.T) {
	t.Parallel()
	f := Folder(t.TempDir())
	if _, err := f.Job(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a job before there is one: %v", err)
	}
	job := Job{Launch: shim.Launch{ID: "run_1.a.0.1", Fence: "fence", Argv: []string{"bash"}}, Inherit: []string{"CUDA_VISIBLE_DEVICES"}}
	if err := f.Create(job, Control{Renewals: 1}); err != nil {
		t.Fatal(err)
	}
	got, err := f.Job()
	if diff := cmp.Diff(job, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if s, err := f.State(); err != nil || s.Fence != "" || s.Exit != nil {
		t.Errorf("the state of a job that has not begun: %+v %v", s, err)
	}
	state := State{Fence: "fence", Host: "n1", Beats: 3, Exit: &shim.Exit{Fence: "fence", Code: 4}}
	if err := f.WriteState(state); err != nil {
		t.Fatal(err)
	}
	if got, err := f.State(); err != nil || got.Exit.Code != 4 || got.Beats != 3 {
		t.Errorf("%+v %v", got, err)
	}
}

// Whoever claims an attempt first has it: the server that withdraws it, or a job.
func TestAWithdrawnAttemptCannotBegin(t *testing.T) {
	t.Parallel()
	f := Folder(t.TempDir())
	for range 2 {
		if ours, err := f.Withdraw(); err != nil || !ours {
			t.Fatalf("%t, %v", ours, err)
		}
	}
	if err := f.Claim("1-x"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a job begins: %v", err)
	}
	begun := Folder(t.TempDir())
	if err := begun.Claim("1-x"); err != nil {
		t.Fatal(err)
	}
	if ours, err := begun.Withdraw(); err != nil || ours {
		t.Errorf("one that has begun is withdrawn: %t, %v", ours, err)
	}
}
