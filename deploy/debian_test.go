package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestThePackageComesAndGoes installs, upgrades, removes and purges what `make deb`
// wrote, on a copy of this system that is gone afterwards.
func TestThePackageComesAndGoes(t *testing.T) {
	pattern := os.Getenv("MILLRACE_TEST_DEB")
	if pattern == "" {
		t.Skip("MILLRACE_TEST_DEB names no package: make test-deploy does")
	}
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatal(pattern, found, err)
	}
	steps, err := filepath.Abs("debian_test.sh")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", steps, found[0]).CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "\nall is well\n") {
		t.Errorf("%v\n%s", err, out)
	}
}
