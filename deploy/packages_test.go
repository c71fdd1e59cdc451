package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestPackagesComeAndGo installs, upgrades, removes and purges what `make packages`
// wrote, on a copy of this system that is gone afterwards.
func TestPackagesComeAndGo(t *testing.T) {
	for _, kind := range []string{"deb", "rpm"} {
		t.Run(kind, func(t *testing.T) {
			onACopy(t, "packages_test.sh", pack(t, kind))
		})
	}
}

// TestPackagesUpgradeAndGoBack puts the program of the release before and this one in
// each other's place, with data of the first.
func TestPackagesUpgradeAndGoBack(t *testing.T) {
	program := os.Getenv("MILLRACE_TEST_EARLIER")
	if program == "" {
		t.Skip("MILLRACE_TEST_EARLIER names no earlier program: make test-deploy does")
	}
	for _, kind := range []string{"deb", "rpm"} {
		t.Run(kind, func(t *testing.T) {
			onACopy(t, "upgrade_test.sh", pack(t, kind), earlierPack(t, program, kind))
		})
	}
}

// pack is the package of a kind that `make packages` wrote.
func pack(t *testing.T, kind string) string {
	t.Helper()
	folder := os.Getenv("MILLRACE_TEST_PACKAGES")
	if folder == "" {
		t.Skip("MILLRACE_TEST_PACKAGES names no folder: make test-deploy does")
	}
	return only(t, filepath.Join(folder, "*."+kind))
}

func only(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatal(pattern, found, err)
	}
	return found[0]
}

// earlierPack packs an earlier program as this one is packed.
func earlierPack(t *testing.T, program, kind string) string {
	t.Helper()
	folder := t.TempDir()
	uv := filepath.Join(t.TempDir(), "uv")
	for _, file := range []string{uv, uv + ".LICENSE"} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("../scripts/make-packages", program, uv, runtime.GOARCH, folder)
	c.Env = append(os.Environ(), "VERSION=v0.0.0", "PRINTS=/bin/true")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	return only(t, filepath.Join(folder, "*."+kind))
}

// onACopy runs a script on a copy of this system, with copies of packages.
func onACopy(t *testing.T, script string, packages ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root installs packages")
	}
	args := append([]string{"--mount", "--pid", "--fork", "--kill-child", "./on_a_copy_test.sh", script}, packages...)
	out, err := exec.Command("unshare", args...).CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "\nall is well\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Each sorts after the one before, as dpkg and rpm would install them.
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
		out, err := exec.Command("../scripts/package-version", v[0], "1700000000").CombinedOutput()
		got := strings.TrimSpace(string(out))
		if err != nil || got != v[1] {
			t.Errorf("%s is %s, not %s (%v)", v[0], got, v[1], err)
		}
		if before != "" {
			isBefore(t, before, got)
		}
		before = got
	}
}

func isBefore(t *testing.T, a, b string) {
	t.Helper()
	if dpkg, err := exec.LookPath("dpkg"); err == nil {
		if err := exec.Command(dpkg, "--compare-versions", a, "lt", b).Run(); err != nil {
			t.Errorf("dpkg: %s is not before %s: %v", a, b, err)
		}
	}
	if rpm, err := exec.LookPath("rpm"); err == nil {
		out, err := exec.Command(rpm, "--eval", `%{lua:print(rpm.vercmp("`+a+`", "`+b+`"))}`).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "-1" {
			t.Errorf("rpm: %s is not before %s: %s %v", a, b, out, err)
		}
	}
}

// The commands of the page write profiles of AppArmor for another path, and for bubblewrap.
func TestTheProfilesOfThePageAreWritten(t *testing.T) {
	t.Parallel()
	bin, profiles := t.TempDir(), t.TempDir()
	parser := "#!/bin/sh\n[ \"$1\" = --replace ] && grep -q '^  userns,$' \"$2\"\n"
	if err := os.WriteFile(filepath.Join(bin, "apparmor_parser"), []byte(parser), 0o700); err != nil {
		t.Fatal(err)
	}
	for commands, want := range map[string]string{
		"/usr/local/bin/millrace": "\nprofile millrace /usr/local/bin/millrace flags=(unconfined) {\n",
		"bwrap /usr/bin/bwrap":    "\nprofile bwrap /usr/bin/bwrap flags=(unconfined) {\n",
	} {
		text := strings.ReplaceAll(page(t, "../docs/operating/installing.md", commands+"|"), "/etc/apparmor.d", profiles)
		c := exec.Command("bash", "-euc", text)
		c.Dir, c.Env = "..", []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", text, err, out)
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(want, "\nprofile "), " ")
		if got := read(t, filepath.Join(profiles, name)); !strings.Contains(got, want) {
			t.Errorf("%s writes %s", text, got)
		}
	}
}
