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
	if os.Getuid() != 0 {
		t.Skip("only root installs packages")
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

// Each sorts after the one before, as dpkg would install them.
func TestVersionsOfPackagesAreInOrder(t *testing.T) {
	t.Parallel()
	before := ""
	for _, v := range [][2]string{
		{"949a12c8", "0~1700000000.949a12c8"},
		{"949a12c8-dirty", "0~1700000000.949a12c8+dirty"},
		{"v1.2.3-rc.1", "1.2.3~rc.1"},
		{"v1.2.3-rc.1-5-gabc1234", "1.2.3~rc.1+5.gabc1234"},
		{"v1.2.3-rc.2", "1.2.3~rc.2"},
		{"v1.2.3", "1.2.3"},
		{"v1.2.3-5-gabc1234", "1.2.3+5.gabc1234"},
		{"v1.2.4-rc-x", "1.2.4~rc.x"},
	} {
		out, err := exec.Command("../scripts/debian-version", v[0], "1700000000").CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != v[1] {
			t.Errorf("%s is %s, not %s (%v)", v[0], got, v[1], err)
		}
		if dpkg, err := exec.LookPath("dpkg"); err == nil && before != "" {
			if err := exec.Command(dpkg, "--compare-versions", before, "lt", v[1]).Run(); err != nil {
				t.Errorf("%s is not before %s: %v", before, v[1], err)
			}
		}
		before = v[1]
	}
}
