package remote_test

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/drivertest"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/remote"
	"github.com/millrace/millrace/internal/engine/executor/shim/processes"
	shimremote "github.com/millrace/millrace/internal/engine/executor/shim/remote"
	attemptshttp "github.com/millrace/millrace/internal/httpapi/attempts"
	"github.com/millrace/millrace/internal/objects"
	"github.com/millrace/millrace/internal/objects/disk"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
)

// The test program serves as the shim, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == shimremote.Arguments()[0] || os.Args[1] == "-limit") {
		os.Exit(shimremote.Main(os.Args))
	}
	waittest.Main(m)
}

// site is a server with everything that shims speak to.
type site struct {
	db      *store.DB
	objects objects.Kept
	hints   chan struct{}
	handler http.Handler
	server  *httptest.Server
	folder  string

	giveUpAfter time.Duration

	mu      sync.Mutex
	jobs    map[string]*process
	hold    *reconciler.JobStatus // what is said of jobs in place of starting them
	held    map[string]reconciler.JobStatus
	evicted bool // all of them
	panics  int  // that its next calls end in
}

var testKey = []byte("a key that all servers have")

func newSite(t testing.TB, db *store.DB, folder string) *site {
	t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	keep, err := disk.Open(t.Context(), filepath.Join(t.TempDir(), "objects"), disk.NewSigner([]byte("0123456789abcdef")), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{db: db, objects: objects.Kept{Store: keep, Presigner: keep}, hints: make(chan struct{}, 1), folder: folder, jobs: map[string]*process{}, held: map[string]reconciler.JobStatus{}}
	service := attempts.NewService(db, s.objects, testKey, func(string) {
		select {
		case s.hints <- struct{}{}:
		default:
		}
	}, time.Now)
	s.handler = attemptshttp.Handler(service, slog.New(slog.DiscardHandler))
	s.server = httptest.NewServer(s.handler)
	t.Cleanup(s.server.Close)
	t.Cleanup(s.endAll)
	return s
}

// open makes a driver on the site.
func (s *site) open(t testing.TB) *reconciler.Driver {
	t.Helper()
	d, err := remote.Open(context.Background(), remote.Config{
		Name: "processes", Cluster: "the site", Scope: "test", Store: s.db, Pieces: s.db, Objects: s.objects, Key: testKey, Hints: s.hints,
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), Now: time.Now, Lag: 2 * time.Second, ImageWait: time.Minute, GiveUpAfter: s.giveUpAfter,
	}, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// process is a job: a shim on this machine.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	dir  string
}

func (s *site) Capabilities(context.Context) executor.Capabilities {
	return executor.Capabilities{Ready: true, VCPU: 8, MemoryBytes: 8 << 30, GPU: 1, NoEnvironments: "none", NotEnforced: []string{"cpu", "network"}}
}

func (s *site) Changed() <-chan struct{} { return nil }

// mayPanic panics if it is to. The lock is held.
func (s *site) mayPanic() {
	if s.panics > 0 {
		s.panics--
		panic("out of order")
	}
}

func (s *site) Start(_ context.Context, j reconciler.Job) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mayPanic()
	if s.jobs[j.Name] != nil {
		return j.Name, nil
	}
	if s.hold != nil {
		status := *s.hold
		status.Number = j.Name
		s.held[j.Name] = status
		return j.Name, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	p := &process{cmd: exec.Command(self, shimremote.Arguments()...), done: make(chan struct{}), dir: filepath.Join(s.folder, j.ID)}
	p.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), shimremote.URLVariable + "=" + s.server.URL, shimremote.IDVariable + "=" + j.ID, shimremote.FenceVariable + "=" + j.Fence,
		shimremote.TicketVariable + "=" + j.Ticket, shimremote.NodeVariable + "=here",
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return "", err
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	s.jobs[j.Name] = p
	return j.Name, nil
}

func (s *site) Jobs(context.Context) (reconciler.Listing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mayPanic()
	all := maps.Clone(s.held)
	for name, p := range s.jobs {
		seen := reconciler.JobStatus{Number: name, Node: "here", Evicted: s.evicted}
		select {
		case <-p.done:
			seen.Ended, seen.Reason = true, executor.Lost
		default:
		}
		all[name] = seen
	}
	return reconciler.Listing{Jobs: all}, nil
}

func (s *site) Forget(ctx context.Context, name string) error { return s.End(ctx, name) }

func (s *site) End(_ context.Context, name string) error {
	s.mu.Lock()
	p := s.jobs[name]
	delete(s.jobs, name)
	delete(s.held, name)
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	p.kill()
	return os.RemoveAll(p.dir)
}

// kill ends a shim and its command, as a machine that loses power would.
func (p *process) kill() {
	for _, pid := range processes.Tree(p.cmd.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-p.done
}

func (s *site) endAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.jobs {
		p.kill()
	}
}

// sites makes drivers on folders: those on the same folder are of one site.
func sites() drivertest.Maker {
	var mu sync.Mutex
	known := map[string]*site{}
	return func(t testing.TB, folder string) drivertest.Subject {
		t.Helper()
		mu.Lock()
		s := known[folder]
		if s == nil {
			s = newSite(t, storetest.Open(t, storetest.SQLite(t)), folder)
			known[folder] = s
		}
		mu.Unlock()
		d := s.open(t)
		return drivertest.Subject{
			Driver: d, NoRuns: true, Leave: func() { _ = d.Close() }, Stage: drivertest.StageIn(s.objects),
			Lose: func(t *testing.T, spec executor.Spec) {
				s.mu.Lock()
				defer s.mu.Unlock()
				for _, p := range s.jobs {
					if strings.HasSuffix(p.dir, spec.Key.Folder()) {
						p.kill()
					}
				}
			},
		}
	}
}
