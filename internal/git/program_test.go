package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A copy of the program that could not be made, because the disk was full for a moment,
// is made the next time.
func TestTheProgramIsCopiedOnceItCanBe(t *testing.T) {
	trees := keptIn(t, t.TempDir(), 0)
	inTheWay := filepath.Join(trees.dir(programs), "x")
	if err := os.MkdirAll(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	if path, err := trees.copiedProgram(); err == nil {
		t.Fatalf("there is %s", path)
	}
	if left := strings.Join(names(t, trees.config.Folder), " "); left != ".locks .program" {
		t.Errorf("left are %s", left)
	}
	if err := os.RemoveAll(trees.dir(programs)); err != nil {
		t.Fatal(err)
	}
	path, err := trees.copiedProgram()
	if err != nil || path != trees.dir(programs) {
		t.Fatalf("%s, %v", path, err)
	}
	before, err := os.Stat(path)
	if err != nil || before.Mode().Perm() != 0o755 || before.Size() == 0 {
		t.Fatalf("%v, %v", before, err)
	}
	if _, err := trees.copiedProgram(); err != nil {
		t.Fatal(err)
	}
	if again, err := os.Stat(path); err != nil || !os.SameFile(before, again) {
		t.Errorf("it is copied each time: %v", err)
	}
}
