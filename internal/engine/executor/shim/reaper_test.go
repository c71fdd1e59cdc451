package shim

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// reaped runs a command in a reaper of this program, and returns its status and what was
// printed once nobody holds its output any more.
func reaped(t *testing.T, disk, memory int64, argv ...string) (int, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := Launch{Argv: argv, Disk: disk, Memory: memory}
	Self(self).Reap(&l)
	if !l.Reaped || l.wrappers() != 1 {
		t.Errorf("%+v", l)
	}
	c := exec.Command(l.Argv[0], l.Argv[1:]...)
	out, err := c.Output()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(out)
}

func TestAReaperEndsAsItsCommand(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{"exit 0": 0, "exit 3": 3, "kill -KILL $$": 137, "kill -TERM $$": 143, "exit 255": 255} {
		if status, _ := reaped(t, 0, 0, "/bin/sh", "-c", script); status != want {
			t.Errorf("%s: %d, want %d", script, status, want)
		}
	}
	if status, _ := reaped(t, 0, 0, "/no/such/program"); status != 127 {
		t.Errorf("no such program: %d", status)
	}
}

// Whatever forks away from a command ends with it, and before the reaper does.
func TestAReaperLeavesNothing(t *testing.T) {
	t.Parallel()
	const sleeps = `sleep 1000 > /dev/null & echo $!`
	for name, script := range map[string]string{
		"a child":                sleeps,
		"another session":        `setsid sh -c '` + sleeps + `'`,
		"a grandchild":           `(` + sleeps + `)`,
		"one that is deaf":       `(trap '' TERM HUP INT; ` + sleeps + `)`,
		"one that stopped":       sleeps + `; kill -STOP $!`,
		"many, in a row":         `for i in 1 2 3 4 5 6 7 8; do (` + sleeps + `); done`,
		"and fails all the same": sleeps + `; exit 4`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, out := reaped(t, 0, 0, "/bin/sh", "-c", script)
			if want := map[bool]int{true: 4}[strings.HasSuffix(script, "exit 4")]; status != want {
				t.Errorf("status %d", status)
			}
			for _, pid := range strings.Fields(out) {
				if _, err := os.Stat("/proc/" + pid); err == nil {
					t.Errorf("%s is left", pid)
				}
			}
			if len(out) == 0 {
				t.Error("nothing was started")
			}
		})
	}
}

// A command and all that it starts are held to twice its memory and to files of its disk.
func TestAReaperBoundsItsCommand(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	_, out := reaped(t, 10*mb, 100*mb, "/bin/sh", "-c", "sh -c 'ulimit -f; ulimit -d'")
	bounds := strings.Fields(out)
	blocks, err := strconv.Atoi(bounds[0])
	if err != nil || blocks*512 != 10*mb && blocks*1024 != 10*mb || bounds[1] != strconv.Itoa((2*100*mb+64*mb)>>10) {
		t.Errorf("%q", out)
	}
}
