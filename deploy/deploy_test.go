// Package deploy tests the files that operators install.
package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestTheUnitIsOneThatSystemdTakes(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Fatal("scripts/setup test brings it:", err)
	}
	folder := t.TempDir()
	for _, name := range []string{"millrace.service", "millrace.socket"} {
		text, err := os.ReadFile(filepath.Join("systemd", name))
		if err != nil {
			t.Fatal(err)
		}
		// It looks whether the program is there.
		text = []byte(strings.ReplaceAll(string(text), "ExecStart=/usr/bin/millrace", "ExecStart=/bin/true"))
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(analyze, "verify", "--man=no", filepath.Join(folder, "millrace.service"), filepath.Join(folder, "millrace.socket")).CombinedOutput()
	if err != nil || strings.Contains(string(out), folder) {
		t.Errorf("%v %s", err, out)
	}
}

// exposed is how open the unit may be, from 0 to 10, as systemd counts. Most of
// what is left are the namespaces that tasks are made of, and the network.
const exposed = 4.0

func TestTheUnitIsClosedAsFarAsTasksAllow(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("systemd-analyze", "security", "--offline=yes", "--no-pager", "systemd/millrace.service").CombinedOutput()
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	found := regexp.MustCompile(`Overall exposure level for millrace.service: ([0-9.]+)`).FindSubmatch(out)
	if found == nil {
		t.Fatalf("no level: %s", out)
	}
	if level, err := strconv.ParseFloat(string(found[1]), 64); err != nil || level > exposed {
		t.Errorf("the level is %s (%v), more than %v", found[1], err, exposed)
	}
}
