package remote

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor/shim"
)

func TestAProgramThatCopiesItselfIsWholeBeforeItIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "attempt")
	attended := make(chan int, 1)
	go func() { attended <- Main(append([]string{"program"}, AttendArguments(file)...)) }()
	if status := Main(append([]string{"program"}, CopyArguments(file)...)); status != shim.Done {
		t.Fatal(status)
	}
	want, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if info, _ := os.Stat(file); err != nil || !bytes.Equal(got, want) || info.Mode().Perm() != 0o755 {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	long := time.Now().Add(-2 * linger)
	if err := os.Chtimes(file, long, long); err != nil {
		t.Fatal(err)
	}
	if status := <-attended; status != shim.Done {
		t.Errorf("who attended ended with %d", status)
	}
	if status := Main(append([]string{"program"}, CopyArguments(filepath.Join(dir, "no", "such"))...)); status == shim.Done {
		t.Error("a copy that cannot be made is taken for one")
	}
}
