package shim

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// bare runs a script that no sandbox holds together, and returns how it ended and what it
// printed.
func bare(t *testing.T, text string, change func(*Launch)) (Exit, string) {
	t.Helper()
	l := script(t, "a", text)
	if change != nil {
		change(&l)
	}
	exit := begin(t, l).end(t)
	log, _ := os.ReadFile(Folder(l.Folder).Log())
	return exit, string(log)
}

func TestACommandWithoutASandboxEndsAsItDoes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]int{
		"exit 0": {}, "exit 3": {3}, "kill -KILL $$": {137, 9}, "kill -TERM $$": {143, 15}, "sh -c 'kill -KILL $$'; exit $?": {137, 9}, "exit 255": {255},
	} {
		if e, _ := bare(t, text, nil); e.Code != want[0] || e.Signal != want[1] || e.StartFailed != "" {
			t.Errorf("%s: %+v", text, e)
		}
	}
	if e, _ := bare(t, "", func(l *Launch) { l.Argv = []string{"/no/such/program"} }); e.Code != 127 || !e.NoProgram || e.StartFailed == "" {
		t.Errorf("no such program: %+v", e)
	}
}

// Whatever forks away from a command ends with it, before the attempt does.
func TestACommandLeavesNothing(t *testing.T) {
	t.Parallel()
	const sleeps = `sleep 1000 > /dev/null & echo $!`
	for name, text := range map[string]string{
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
			e, out := bare(t, text, nil)
			if want := map[bool]int{true: 4}[strings.HasSuffix(text, "exit 4")]; e.Code != want {
				t.Errorf("%+v", e)
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

// What has lost its parent is stopped and counted with its command.
func TestWhatForksAwayIsTheCommands(t *testing.T) {
	t.Parallel()
	const orphan = `(exec sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; %s' &); `
	e, log := bare(t, strings.ReplaceAll(orphan, "%s", ":")+`while ! grep -q done ../log; do sleep 0.01; done`, nil)
	if e.Code != 0 || e.CPUTime < 20*time.Millisecond {
		t.Errorf("%+v, %q", e, log)
	}
	l := script(t, "b", strings.ReplaceAll(orphan, "%s", `trap "echo heard; exit" TERM; echo $$; while :; do sleep 0.01; done`)+"exec sleep 1000")
	l.Grace = time.Hour
	a := begin(t, l)
	a.tell(t, freeze)
	a.tell(t, stop, thaw)
	if e := a.end(t); !e.Stopped {
		t.Errorf("%+v", e)
	}
}

// A command and all that it starts are held to twice its memory and to files of its disk
// from the first instruction on, and cannot have more. The process beside it is not held to
// less than it needs itself.
func TestACommandWithoutASandboxIsBounded(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	for name, tt := range map[string]struct{ disk, memory int64 }{
		"little":         {mb, 100 * mb},
		"a little disk":  {mb, 0},
		"much disk":      {2048 * mb, 0},
		"only memory":    {0, 100 * mb},
		"much of both":   {2048 * mb, 8192 * mb},
		"without bounds": {},
	} {
		e, out := bare(t, "ulimit -f; ulimit -Hf; ulimit -d; sh -c 'ulimit -Hd'; yes | head -c 2000000", func(l *Launch) { l.Disk, l.Memory, l.Log = tt.disk, tt.memory, 4*mb })
		file, data := "unlimited", "unlimited"
		if tt.disk > 0 {
			file = strconv.FormatInt(tt.disk/512, 10)
		}
		if tt.memory > 0 {
			data = strconv.FormatInt((2*tt.memory+64*mb)>>10, 10)
		}
		if want := strings.Join([]string{file, file, data, data, "y"}, "\n"); !strings.HasPrefix(out, want) {
			t.Errorf("%s: %.100q, want %q", name, out, want)
		}
		if e.Code != 0 || e.LogBytes < 2000000 || int64(len(out)) != e.LogBytes {
			t.Errorf("%s: %d bytes of the log are kept: %+v", name, len(out), e)
		}
	}
}
