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
	mark := filepath.Join(folder, ".suspects", "run_a")
	marked := func() bool { _, err := os.Stat(mark); return err == nil }
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
