package local

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
)

// A slot is used by one task at a time, whichever server has started that.
func TestASlotIsOneTasks(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	ours, err := newSlots(folder, &groups{})
	if err != nil {
		t.Fatal(err)
	}
	by := share{Key: executor.Key{Run: "run_1", Node: "n", Attempt: 1}, VCPU: 1, Memory: 2, Devices: []int{3}}
	first, err := ours.take()
	if err == nil {
		err = first.write(by)
	}
	if err != nil {
		t.Fatal(err)
	}
	next, err := newSlots(folder, &groups{}) // as the next server has them
	if err != nil {
		t.Fatal(err)
	}
	taken, err := next.taken()
	if diff := cmp.Diff(map[int]share{first.number: by}, taken); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	second, err := next.take()
	if err != nil || second.number == first.number {
		t.Errorf("another task has slot %d, %v", second.number, err)
	}
	first.Close()
	second.Close()
	if taken, err := next.taken(); err != nil || len(taken) > 0 {
		t.Errorf("%v are taken, %v", taken, err)
	}
	says := func(n int) string {
		text, err := os.ReadFile(filepath.Join(next.folder, strconv.Itoa(n)))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if text := says(first.number); text != "" {
		t.Errorf("the file of a slot that is free says %s", text)
	}
	again, err := next.take()
	if err != nil || again.number != first.number {
		t.Errorf("a slot that is free is not used: %d, %v", again.number, err)
	}
	if err := again.write(by); err != nil {
		t.Fatal(err)
	}
	again.Close()
	next.free(again.number)
	if text := says(again.number); text != "" {
		t.Errorf("the file of a slot that was given back says %s", text)
	}
}

// In a slot of which there is something left in the group, no task starts: that is ended.
func TestASlotWithSomethingInItsGroupIsNotUsed(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	left, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	group := filepath.Join(base, slotName(0))
	if err := errors.Join(os.Mkdir(group, 0o700), os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(left.Pid)), 0o600)); err != nil {
		t.Fatal(err)
	}
	s, err := newSlots(t.TempDir(), &groups{v2: base})
	if err != nil {
		t.Fatal(err)
	}
	taken, err := s.take()
	if err != nil || taken.number != 1 {
		t.Errorf("slot %d, %v", taken.number, err)
	}
	taken.Close()
	if state, err := left.Wait(); err != nil || state.String() != "signal: killed" {
		t.Errorf("what was left: %v, %v", state, err)
	}
}

// What was prepared or submitted and has never begun is removed by the next server, and
// cannot begin any more.
func TestWhatHasNotBegunIsUseless(t *testing.T) {
	t.Parallel()
	made := func(create, claim bool) job.Folder {
		f := job.Folder(t.TempDir())
		if create {
			if err := f.Create(job.Job{Local: true}, job.Control{}); err != nil {
				t.Fatal(err)
			}
		}
		if claim {
			if err := f.Claim("fence"); err != nil {
				t.Fatal(err)
			}
		}
		return f
	}
	for name, tt := range map[string]struct {
		f    job.Folder
		want bool
	}{"prepared": {made(false, false), true}, "submitted": {made(true, false), true}, "begun": {made(true, true), false}} {
		if useless(tt.f) != tt.want {
			t.Errorf("what was %s is useless: %t", name, !tt.want)
		}
	}
	f := made(true, false)
	if !useless(f) || f.Begun() || f.Claim("fence") == nil {
		t.Error("it can begin")
	}
	withdrawn := made(true, false)
	if _, err := withdrawn.Withdraw(); err != nil {
		t.Fatal(err)
	}
	if useless(withdrawn) {
		t.Error("what a server has withdrawn, of which there is an outcome, is useless")
	}
}
