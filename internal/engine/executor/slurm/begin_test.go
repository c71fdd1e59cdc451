package slurm

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// still is a cluster that asks Slurm for nothing by itself, and its clock.
func still(t *testing.T) (*cluster, *time.Time) {
	t.Helper()
	now := time.Unix(1_700_000_000, 0)
	c := Config{Folder: t.TempDir(), Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }}
	return newCluster(c, "i", shim.Small("/shim")), &now
}

// begin is a driver whose Slurm is a script. It ends with the test.
func begin(t *testing.T, script string, change ...func(*Config)) *Driver {
	t.Helper()
	c := Config{Folder: t.TempDir(), Key: make([]byte, 32), Log: slog.New(slog.DiscardHandler), Now: time.Now, Prefix: saying(t, script).prefix}
	for _, set := range change {
		set(&c)
	}
	d, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// A server begins, whatever Slurm does at the moment, and says what is wrong.
func TestWhatAClusterLacksIsSaid(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		script string
		change func(*Config)
		ready  bool
		says   string
	}{
		"no controller":     {"echo no route >&2; exit 1", func(*Config) {}, false, "Slurm does not answer: sinfo: no route"},
		"no machine":        {"true", func(*Config) {}, false, "is the partition right?"},
		"all that there is": {"printf 'n1,8,1024,gpu:2\\n'", func(*Config) {}, true, ""},
		"a part of it":      {"printf 'n1,8,1024,gpu:2\\n'", func(c *Config) { c.VCPU, c.MemoryBytes, c.GPUs = 4, 1<<20, 1 }, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := begin(t, tt.script, tt.change)
			c, err := d.Capabilities(t.Context())
			if err != nil || c.Ready != tt.ready || !strings.Contains(c.Problem, tt.says) || c.Images || c.NoImages == "" {
				t.Errorf("%+v, %v", c, err)
			}
			want := executor.Capabilities{VCPU: 8, MemoryBytes: 1 << 30, GPU: 2}
			if strings.HasPrefix(name, "a part") {
				want = executor.Capabilities{VCPU: 4, MemoryBytes: 1 << 20, GPU: 1}
			}
			if tt.ready && (c.VCPU != want.VCPU || c.MemoryBytes != want.MemoryBytes || c.GPU != want.GPU) {
				t.Errorf("%+v", c)
			}
		})
	}
}

func TestADriverThatCannotBegin(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Config){
		"a relative folder": func(c *Config) { c.Folder = "attempts" },
		"a file":            func(c *Config) { c.Folder = file },
		"a short key":       func(c *Config) { c.Key = c.Key[:31] },
		"no key":            func(c *Config) { c.Key = nil },
		"an option of ours": func(c *Config) { c.Options = []string{"--requeue"} },
	} {
		c := Config{Folder: t.TempDir(), Key: make([]byte, 32), Log: slog.New(slog.DiscardHandler), Now: time.Now, Prefix: []string{"false"}}
		change(&c)
		if d, err := New(t.Context(), c); err == nil {
			t.Errorf("%s: it begins", name)
			_ = d.Close()
		}
	}
}

// refusing is a Slurm that takes no job.
const refusing = `case "$1" in
sinfo) printf 'n1,8,1024,(null)\n' ;;
sbatch) cat > /dev/null; echo 'sbatch: error: invalid partition specified: nowhere' >&2; exit 1 ;;
esac`

// From the order to the word of refusal, and until nothing is left.
func TestAnAttemptThatSlurmRefuses(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	d := begin(t, refusing, func(c *Config) { c.Folder = folder })
	updates := d.Watch(t.Context())
	s := executor.Spec{Key: executor.Key{Run: "run_1", Node: "n", Attempt: 1}, Fence: "f", Interpreter: "sh", Command: "true"}
	s.Dir = filepath.Join(folder, s.Key.Folder())
	if err := d.Prepare(t.Context(), s.Key); err != nil {
		t.Fatal(err)
	}
	h, err := d.Submit(t.Context(), executor.NoRun, s)
	if err != nil {
		t.Fatal(err)
	}
	seen := <-updates
	for !seen.Phase.Final() {
		seen = <-updates
	}
	if seen.Handle != h || seen.Phase != executor.Ended || seen.Reason != executor.StartFailed || !strings.Contains(seen.Detail, "nowhere") || seen.Exit == nil || seen.Exit.StartFailed != seen.Detail {
		t.Errorf("%+v", seen)
	}
	for range 2 { // what has ended stays as it is
		if err := d.Stop(t.Context(), executor.NoRun, h, 0); err != nil {
			t.Error(err)
		}
		if err := d.Release(t.Context(), executor.NoRun, h); err != nil {
			t.Error(err)
		}
	}
	if all, err := d.Snapshot(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// A driver that is closed submits nothing more, and whoever watches it is told.
func TestAClosedDriver(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	d := begin(t, refusing, func(c *Config) { c.Folder = folder })
	before := d.Watch(t.Context())
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, updates := range map[string]<-chan executor.Status{"before": before, "after": d.Watch(t.Context())} {
		if seen, more := <-updates; more {
			t.Errorf("watched %s it was closed: %+v", name, seen)
		}
	}
	s := executor.Spec{Key: executor.Key{Run: "run_1", Node: "n", Attempt: 1}, Fence: "f", Interpreter: "sh"}
	s.Dir = filepath.Join(folder, s.Key.Folder())
	if _, err := d.Submit(t.Context(), executor.NoRun, s); !fault.Is(err, fault.KindUnavailable) {
		t.Error(err)
	}
}

// A controller that restarts refuses no run: they wait for it.
func TestWhatAClusterHasIsRememberedForAWhile(t *testing.T) {
	t.Parallel()
	k, clock := still(t)
	for i, step := range []struct {
		script string
		later  time.Duration
		ready  bool
		says   string
	}{
		{"echo no route >&2; exit 1", 0, false, "no route"}, // it was never there
		{"printf 'n1,8,1024,gpu:2\\n'", time.Minute, true, ""},
		{"echo no route >&2; exit 1", probeLasts - time.Second, true, ""},
		{"echo no route >&2; exit 1", time.Second, false, "Slurm does not answer: sinfo: no route"},
		{"echo no route >&2; exit 1", time.Second, false, "Slurm does not answer: sinfo: no route"},
		{"printf 'n1,8,1024,gpu:2\\n'", time.Minute, true, ""},
		{"true", time.Second, false, "is the partition right?"}, // that is an answer
	} {
		*clock = clock.Add(step.later)
		k.client = saying(t, step.script)
		k.probe(t.Context())
		if c := k.Capabilities(t.Context()); c.Ready != step.ready || !strings.Contains(c.Problem, step.says) || c.Ready && c.VCPU != 8 {
			t.Errorf("%d: %+v", i, c)
		}
	}
}
