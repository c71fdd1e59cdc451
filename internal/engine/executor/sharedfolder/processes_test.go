package sharedfolder_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/sharedfolder"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	"github.com/millrace/millrace/internal/engine/executor/shim/job"
	"github.com/millrace/millrace/internal/engine/executor/shim/processes"
	"github.com/millrace/millrace/internal/waittest"
)

// The test program serves as the shim, too.
func TestMain(m *testing.M) {
	if job.IsCall(os.Args) {
		os.Exit(job.Run(os.Args))
	}
	waittest.Main(m)
}

// A driver whose jobs are shims on this machine, which know nothing of it but a folder,
// keeps every promise that a driver makes.
func TestADriverWithASharedFolder(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, machines())
}

func TestADriverWithASharedFolderOfRealProcesses(t *testing.T) {
	t.Parallel()
	drivertest.RunReal(t, machines())
}

// machine is a cluster of one machine: this one.
type machine struct {
	folder string

	mu   sync.Mutex
	jobs map[string]*process
}

// process is a job.
type process struct {
	cmd  *exec.Cmd
	id   string
	done chan struct{}
}

// machines makes drivers on folders: those on the same folder are of one machine.
func machines() drivertest.Maker {
	var mu sync.Mutex
	known := map[string]*machine{}
	return func(t testing.TB, folder string) drivertest.Subject {
		t.Helper()
		mu.Lock()
		m := known[folder]
		if m == nil {
			m = &machine{folder: folder, jobs: map[string]*process{}}
			known[folder] = m
			t.Cleanup(m.endAll)
		}
		mu.Unlock()
		d := m.open(t)
		return drivertest.Subject{Driver: d, Leave: func() { _ = d.Close() }, Lose: func(t *testing.T, s executor.Spec) {
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, p := range m.jobs {
				if p.id == s.Key.Folder() {
					p.kill()
				}
			}
		}}
	}
}

func (m *machine) open(t testing.TB) *reconciler.Driver {
	t.Helper()
	if err := os.MkdirAll(m.folder, 0o700); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	name := func(id, fence string) string { return "job-" + id + "-" + fence }
	records, err := sharedfolder.New(sharedfolder.Config{Folder: m.folder, Key: make([]byte, 32), JobName: name, HostVariable: "TEST_HOST", Log: log, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	d, err := reconciler.Open(context.Background(), reconciler.Config{
		Name: "processes", Records: records, JobName: name, Log: log, Now: time.Now, LookEvery: 50 * time.Millisecond, MaxAge: time.Second, Lag: 2 * time.Second, RefusalWait: time.Minute,
	}, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func (m *machine) Capabilities(context.Context) executor.Capabilities {
	return executor.Capabilities{Ready: true, VCPU: 8, MemoryBytes: 8 << 30, GPU: 1, NoImages: "none", NoEnvironments: "none", NotEnforced: []string{"cpu", "network"}}
}

func (m *machine) Changed() <-chan struct{} { return nil }

func (m *machine) Start(_ context.Context, j reconciler.Job) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	argv := job.Command(shim.Self(self), job.Folder(filepath.Join(m.folder, j.ID)))
	p := &process{cmd: exec.Command(argv[0], argv[1:]...), id: j.ID, done: make(chan struct{})}
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TEST_HOST=here"}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := p.cmd.Start(); err != nil {
		return "", err
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	m.jobs[j.Name] = p
	return j.Name, nil
}

func (m *machine) Jobs(context.Context) (reconciler.Listing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := reconciler.Listing{Jobs: map[string]reconciler.JobStatus{}}
	for name, p := range m.jobs {
		s := reconciler.JobStatus{Number: name, Node: "here"}
		select {
		case <-p.done:
			s.Ended, s.Leaving, s.Reason = true, true, executor.Lost
		default:
		}
		l.Jobs[name] = s
	}
	return l, nil
}

func (m *machine) End(_ context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.jobs[name]; p != nil {
		delete(m.jobs, name)
		p.kill()
	}
	return nil
}

func (m *machine) Forget(context.Context, string) error { return nil }

// kill ends a shim and its command, as a machine that loses power would.
func (p *process) kill() {
	for _, pid := range processes.Tree(p.cmd.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-p.done
}

func (m *machine) endAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.jobs {
		p.kill()
	}
}
