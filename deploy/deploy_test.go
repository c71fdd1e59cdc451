// Package deploy tests the files that operators install.
package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var units = []string{"millrace.service", "millrace.socket", "millrace-backup.service", "millrace-backup.timer"}

func TestTheUnitIsOneThatSystemdTakes(t *testing.T) {
	t.Parallel()
	analyze := analyzer(t)
	folder := t.TempDir()
	for _, name := range units {
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
	args := []string{"verify", "--man=no"}
	for _, name := range units {
		args = append(args, filepath.Join(folder, name))
	}
	out, err := exec.Command(analyze, args...).CombinedOutput()
	if err != nil || strings.Contains(string(out), folder) {
		t.Errorf("%v %s", err, out)
	}
}

// analyzer finds systemd-analyze, which short tests do without.
func analyzer(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("systemd-analyze")
	if err != nil && testing.Short() {
		t.Skip("there is no systemd-analyze")
	}
	if err != nil {
		t.Fatal("scripts/setup test brings it:", err)
	}
	return path
}

// exposed is how open the unit may be, from 0 to 10, as systemd counts. Most of
// what is left are the namespaces that tasks are made of, and the network. systemd
// 252 counts 4.0; others weigh a little differently.
const exposed = 5.0

func TestTheUnitIsClosedAsFarAsTasksAllow(t *testing.T) {
	t.Parallel()
	analyze := analyzer(t)
	about, err := exec.Command(analyze, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	var version int
	if _, err := fmt.Sscanf(string(about), "systemd %d", &version); err != nil || version < 250 {
		t.Skipf("systemd %d does not weigh units that are not installed (%v)", version, err)
	}
	out, err := exec.Command(analyze, "security", "--offline=yes", "--no-pager", "systemd/millrace.service").CombinedOutput()
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

// The page of metrics is held against the registry by a test of its own.
func TestAlertsAndDashboardNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(millrace_\\w+)` \\|").FindAllStringSubmatch(read(t, "../docs/operating/metrics.md"), -1) {
		known[m[1]] = true
	}
	for _, file := range []string{"prometheus/alerts.yaml", "grafana/millrace.json"} {
		used := regexp.MustCompile(`millrace_\w+`).FindAllString(read(t, file), -1)
		if len(used) < 20 {
			t.Errorf("%s names %d metrics", file, len(used))
		}
		for _, name := range used {
			if !known[name] && !known[strings.TrimSuffix(name, "_bucket")] {
				t.Errorf("%s: there is no metric %s", file, name)
			}
		}
	}
}

func TestEveryAlertHasItsRunbook(t *testing.T) {
	t.Parallel()
	var alerts, runbooks []string
	for _, a := range regexp.MustCompile(`(?m)alert: (\w+)$`).FindAllStringSubmatch(read(t, "prometheus/alerts.yaml"), -1) {
		alerts = append(alerts, a[1])
	}
	for _, h := range regexp.MustCompile(`(?m)^## (Millrace\w+)$`).FindAllStringSubmatch(read(t, "../docs/operating/alerts.md"), -1) {
		runbooks = append(runbooks, h[1])
	}
	if len(alerts) == 0 || !slices.Equal(alerts, runbooks) {
		t.Errorf("alerts: %v\nrunbooks: %v", alerts, runbooks)
	}
	for _, link := range regexp.MustCompile(`runbook: docs/operating/alerts.md#(\w+)`).FindAllStringSubmatch(read(t, "prometheus/alerts.yaml"), -1) {
		if !slices.ContainsFunc(runbooks, func(r string) bool { return strings.ToLower(r) == link[1] }) {
			t.Errorf("there is no runbook %s", link[1])
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
