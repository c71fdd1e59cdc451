package local

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLaterServersUseTheSameEtc(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, name := range []string{"of-another-boot", "half-made"} {
		if err := os.Mkdir(filepath.Join(folder, etcPrefix+name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	first, err := sharedEtc(folder, false)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(first, "hostname")); string(text) != "millrace\n" {
		t.Errorf("its name is %q, %v", text, err)
	}
	if left, err := filepath.Glob(filepath.Join(folder, etcPrefix+"*")); err != nil || len(left) != 3 {
		t.Errorf("while tasks run there are %v, %v", left, err)
	}
	mark := filepath.Join(first, "mark")
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := sharedEtc(folder, true)
	if err != nil || second != first {
		t.Errorf("the next server uses %s, %v", second, err)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Errorf("it was made again: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(folder, etcPrefix+"*")); err != nil || len(left) != 1 {
		t.Errorf("while no task runs there are %v, %v", left, err)
	}
}
