package capabilities

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A server that may open the port 443, as the unit allows, starts sandboxes that may not: no
// program that it starts has a capability.
func TestProgramsInheritNoCapability(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root hands capabilities to others")
	}
	if testing.Short() {
		t.Skip("it builds a program")
	}
	folder, err := os.MkdirTemp("/tmp", "millrace-capabilities-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(folder, "listens")
	build := exec.Command("go", "build", "-o", program, "./testdata/listens")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	unit, err := os.ReadFile("../../../deploy/systemd/millrace.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"CapabilityBoundingSet=CAP_NET_BIND_SERVICE", "AmbientCapabilities=CAP_NET_BIND_SERVICE", "NoNewPrivileges=yes"} {
		if !strings.Contains(string(unit), "\n"+line+"\n") {
			t.Errorf("the unit has no line %s", line)
		}
	}
	asTheUnit := func(args ...string) (string, error) {
		args = append([]string{
			"--net", "setpriv", "--reuid", "4242", "--regid", "4242", "--clear-groups", "--no-new-privs",
			"--bounding-set", "-all,+net_bind_service", "--inh-caps", "-all,+net_bind_service", "--ambient-caps", "-all,+net_bind_service",
		}, args...)
		c := exec.Command("unshare", args...) // whose network has no programs on this port
		c.Dir = "/"
		out, err := c.CombinedOutput()
		return string(out), err
	}
	const listen = "0.0.0.0:443"
	out, err := asTheUnit(program, listen, "grep", "^Cap[IPEA]", "/proc/self/status")
	if err != nil || strings.Count(out, "CapAmb:\t0000000000000000") != 20 || strings.Count(out, "CapPrm:\t0000000000000000") != 20 || strings.Count(out, "CapEff:\t0000000000000000") != 20 {
		t.Errorf("%v %s", err, out)
	}
	const box = "bwrap --ro-bind / / --unshare-user --unshare-net --cap-drop ALL true"
	if out, err := asTheUnit(strings.Fields(box)...); err == nil || !strings.Contains(out, "Unexpected capabilities") {
		t.Skipf("bubblewrap does without: %v %s", err, out)
	}
	if out, err := asTheUnit(append([]string{program, listen}, strings.Fields(box)...)...); err != nil || strings.Count(out, "<nil>") != 20 {
		t.Errorf("%v %s", err, out)
	}
}
