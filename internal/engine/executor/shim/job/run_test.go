package job

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/waittest"
)

// claimed is a job that has begun on its machine.
func claimed(t *testing.T, j Job, c Control) *runner {
	t.Helper()
	f := Folder(t.TempDir())
	j.Launch.Fence, j.Launch.Folder = "fence", string(f)
	if err := f.Create(j, c); err != nil {
		t.Fatal(err)
	}
	return &runner{folder: f, job: j, signals: make(chan os.Signal, 1), done: make(chan struct{})}
}

func TestWhatAJobFindsWhenItBegins(t *testing.T) {
	t.Parallel()
	path := []string{"PATH=/nowhere:/bin"}
	for name, tt := range map[string]struct {
		job     Job
		control Control
		want    error
	}{
		"all is well":              {Job{Launch: shim.Launch{Argv: []string{"sh"}, Env: path}}, Control{}, nil},
		"it was stopped":           {Job{Launch: shim.Launch{Argv: []string{"sh"}, Env: path}}, Control{Stop: true}, errStopped},
		"it comes too late":        {Job{Launch: shim.Launch{Argv: []string{"sh"}, Env: path}}, Control{Until: time.Now().Add(-time.Second)}, errLate},
		"no such program":          {Job{Launch: shim.Launch{Argv: []string{"no-such-program"}, Env: path}}, Control{}, exec.ErrNotFound},
		"no path":                  {Job{Launch: shim.Launch{Argv: []string{"sh"}, Env: []string{"XPATH=/bin"}}}, Control{}, exec.ErrNotFound},
		"stopped before secrets":   {Job{Launch: shim.Launch{Argv: []string{"sh"}}, Sealed: []byte("x")}, Control{Stop: true}, errStopped},
		"too late for its secrets": {Job{Launch: shim.Launch{Argv: []string{"sh"}}, Sealed: []byte("x")}, Control{Until: time.Now().Add(100 * time.Millisecond)}, errLate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := claimed(t, tt.job, tt.control)
			launch := r.job.Launch
			if err := r.prepare(&launch, shim.Small("/shim")); !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if tt.want == nil && (len(launch.Argv) != 1 || launch.Argv[0] != "/bin/sh") {
				t.Errorf("%v", launch.Argv)
			}
		})
	}
	r := claimed(t, Job{Launch: shim.Launch{Argv: []string{"sh"}}}, Control{})
	if err := os.WriteFile(filepath.Join(string(r.folder), controlFile), []byte("{torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.prepare(&r.job.Launch, shim.Small("/shim")); err == nil {
		t.Error("a control file that cannot be read is obeyed")
	}
}

// The clock of the machine says that a job comes too late, or sooner than it can: then
// only a renewal tells whether a server wants it still.
func TestAJobBeginsWhileAServerRenewsIt(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"the machine is ahead": -time.Hour, "the machine is behind": time.Hour} {
		for renewed, want := range map[bool]error{true: nil, false: errLate} {
			t.Run(fmt.Sprintf("%s, renewed %t", name, renewed), func(t *testing.T) {
				t.Parallel()
				c := Control{Renewals: 7, Until: time.Now().Add(off)}
				j := Job{Launch: shim.Launch{Argv: []string{"sh"}, Env: []string{"PATH=/bin"}, AbandonAfter: time.Millisecond}}
				if renewed {
					j.Launch.AbandonAfter = 10 * time.Minute
				}
				r := claimed(t, j, c)
				began := make(chan error, 1)
				go func() {
					launch := r.job.Launch
					began <- r.prepare(&launch, shim.Small("/shim"))
				}()
				if !waittest.Until(func() bool {
					if c.Renewals++; renewed {
						if err := r.folder.WriteControl(c); err != nil {
							t.Error(err)
						}
					}
					return len(began) > 0
				}) {
					t.Fatal("it waits for ever")
				}
				if err := <-began; !errors.Is(err, want) {
					t.Errorf("%v, want %v", err, want)
				}
			})
		}
	}
}

func TestAJobCallsItsMachineWhatTheClusterDoes(t *testing.T) {
	t.Setenv("CLUSTERS_NAME", "n1")
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for variable, want := range map[string]string{"CLUSTERS_NAME": "n1", "NO_SUCH_VARIABLE": own, "": own} {
		r := claimed(t, Job{HostVariable: variable}, Control{Stop: true})
		r.carryOut(shim.Small("/shim"))
		if r.state.Host != want {
			t.Errorf("by %q it is called %q, want %q", variable, r.state.Host, want)
		}
	}
}

func TestAJobThatWaitsForSecretsHeedsSignalsAndForgeries(t *testing.T) {
	t.Parallel()
	waiting := func(t *testing.T, c Control) *runner {
		t.Helper()
		return claimed(t, Job{Launch: shim.Launch{Argv: []string{"sh"}}, Sealed: []byte("x")}, c)
	}
	r := waiting(t, Control{})
	r.signals <- unix.SIGUSR1
	if err := r.askSecrets(&r.job.Launch); !errors.Is(err, errStopped) {
		t.Errorf("the server's signal: %v", err)
	}
	if s, err := r.folder.State(); err != nil || len(s.Key) == 0 {
		t.Errorf("it did not ask: %+v, %v", s, err)
	}
	r = waiting(t, Control{})
	r.signals <- unix.SIGTERM
	if err := r.askSecrets(&r.job.Launch); err == nil || errors.Is(err, errStopped) {
		t.Errorf("the machine's signal: %v", err)
	}
	other, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	forged, err := Seal(other.PublicKey().Bytes(), "fence", Secrets{Env: []string{"A=b"}})
	if err != nil {
		t.Fatal(err)
	}
	r = waiting(t, Control{Secrets: forged})
	if err := r.askSecrets(&r.job.Launch); err == nil || len(r.job.Launch.Env) > 0 {
		t.Errorf("what was sealed for another job: %v, %v", r.job.Launch.Env, err)
	}
}

func TestWhoEndedACommandIsFoundOut(t *testing.T) {
	t.Parallel()
	term := shim.Exit{Code: 143, Signal: int(unix.SIGTERM)}
	for name, tt := range map[string]struct {
		exit    shim.Exit
		ended   bool
		control Control
		want    shim.Exit
	}{
		"it succeeded":                   {shim.Exit{}, true, Control{}, shim.Exit{}},
		"it failed by itself":            {shim.Exit{Code: 1}, false, Control{}, shim.Exit{Code: 1}},
		"it ran out of memory meanwhile": {shim.Exit{Code: 137, OOM: true}, true, Control{}, shim.Exit{Code: 137, OOM: true}},
		"the cluster":                    {term, true, Control{}, shim.Exit{Code: 143, Signal: 15, Preempted: true}},
		"the server, by the cluster":     {term, true, Control{Stop: true}, shim.Exit{Code: 143, Signal: 15, Stopped: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := claimed(t, Job{}, tt.control)
			r.ended = tt.ended
			got := tt.exit
			r.attribute(&got)
			if got.Stopped != tt.want.Stopped || got.Preempted != tt.want.Preempted || got.Code != tt.want.Code || got.OOM != tt.want.OOM {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
	r := claimed(t, Job{}, Control{})
	r.signals <- unix.SIGTERM // heard of after the command has ended
	exit := term
	if r.attribute(&exit); !exit.Preempted {
		t.Errorf("%+v", exit)
	}
}

// TestAJobKeepsToTheLaterOwnerOfItsRun checks what a job takes for what the server wants,
// from file to file.
func TestAJobKeepsToTheLaterOwnerOfItsRun(t *testing.T) {
	t.Parallel()
	r := &runner{folder: Folder(t.TempDir())}
	for _, tt := range []struct {
		written  Control
		renewals int64
		stop     bool
	}{
		{Control{RunFence: 2, Renewals: 1}, 1, false},
		{Control{RunFence: 1, Renewals: 2, Stop: true}, 1, false},
		{Control{Renewals: 3}, 3, false}, // of an earlier release
		{Control{RunFence: 1, Renewals: 4, Stop: true}, 3, false},
		{Control{RunFence: 2, Renewals: 5, Stop: true}, 5, true},
	} {
		if err := r.folder.WriteControl(tt.written); err != nil {
			t.Fatal(err)
		}
		if c, err := r.readControl(); err != nil || c.Renewals != tt.renewals || c.Stop != tt.stop {
			t.Errorf("of %+v it takes %+v, %v", tt.written, c, err)
		}
	}
}
