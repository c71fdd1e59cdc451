package suspects_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/internal/engine/suspects"
	"github.com/millrace/millrace/internal/waittest"
)

func TestARunIsMarkedWhileItTakesMuch(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if list, err := suspects.Runs(folder); err != nil || len(list) != 0 {
		t.Fatal(list, err)
	}
	marked := func() bool {
		marks, err := filepath.Glob(filepath.Join(folder, ".suspects", "run_a.*"))
		return err == nil && len(marks) == 1
	}
	var held [][]byte
	err := suspects.Watch(folder, "run_a", func() error {
		if !waittest.Until(func() bool {
			if held = append(held, make([]byte, 8<<20)); len(held) > 100 {
				held = held[:100]
			}
			return marked()
		}) {
			t.Fatal("it is never marked")
		}
		return os.ErrInvalid
	})
	if err != os.ErrInvalid || marked() {
		t.Errorf("afterwards: %v, marked %v", err, marked())
	}
	if err := suspects.Watch(folder, "run_a", func() error { return nil }); err != nil || marked() {
		t.Errorf("a short one: %v, marked %v", err, marked())
	}
	_ = held
}

// Two servers' worth of marks of one run, and of an earlier build, are one run.
func TestMarksAreReadAndCleared(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if _, err := suspects.Runs(folder); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"run_a.1", "run_a.2", "run_b"} {
		if err := os.WriteFile(filepath.Join(folder, ".suspects", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := suspects.Runs(folder)
	if err != nil || len(list) != 2 || list[0] != "run_a" || list[1] != "run_b" {
		t.Fatal(list, err)
	}
	if err := suspects.Clear(folder, "run_a"); err != nil {
		t.Fatal(err)
	}
	if list, err := suspects.Runs(folder); err != nil || len(list) != 1 || list[0] != "run_b" {
		t.Error(list, err)
	}
}
