package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
)

// gated is a run on a cluster of three tasks that wait for a gate, and of one
// after them.
type gated struct {
	t          *testing.T
	id, cookie string
	shared     string // a folder in which tasks leave traces
}

func startGated(t *testing.T, s *server) gated {
	t.Helper()
	_, cookie, _ := s.signUp("ada")
	g := gated{t: t, cookie: cookie, shared: t.TempDir()}
	mark := fmt.Sprintf(alone, g.shared)
	w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":"w","definition":{"nodes":[
		{"id":"a","command":%q,"scatter":{"over":"[1,2,3]"},"outputs":{"o":{"path":"o"}}},{"id":"b","command":%q}],
		"edges":[{"id":"e1","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}}`,
		mark+fmt.Sprintf("while [ ! -e %[1]s/go ]; do sleep 0.05; done; echo $ITEM | tee o; touch %[1]s/$ITEM.made", g.shared), mark+"cat $INPUT_in"), "Cookie", cookie)["id"].(string)
	g.id = s.beginRun(cookie, fmt.Sprintf(`{"workflowId":%q,"compute":{"vcpu":3,"ramGb":12}}`, w))
	await(t, "the tasks", func() bool { return g.ran("a.0")+g.ran("a.1")+g.ran("a.2") == 3 })
	return g
}

func (g gated) ran(task string) int {
	text, _ := os.ReadFile(filepath.Join(g.shared, g.id+"."+task))
	return strings.Count(string(text), "\n")
}

// open lets the tasks end, and returns when they have.
func (g gated) open() {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.shared, "go"), nil, 0o600); err != nil {
		g.t.Fatal(err)
	}
	await(g.t, "the end of the tasks", func() bool {
		made, err := filepath.Glob(filepath.Join(g.shared, "*.made"))
		return err == nil && len(made) == 3
	})
}

// lostNothing waits for the end of the run: all that its tasks have said and
// made is there, and each has run once.
func (g gated) lostNothing(s *server) {
	g.t.Helper()
	r := s.endedFor(g.cookie, g.id)
	if logs := r["logs"].(string); r["status"] != "completed" || !strings.Contains(logs, "1\n2\n3\n") || strings.Count(logs, "\n") != 6 {
		g.t.Errorf("%v: %v\n%s", r["status"], r["errorMessage"], logs)
	}
	for _, task := range []string{"a.0", "a.1", "a.2", "b.0"} {
		if n := g.ran(task); n != 1 {
			g.t.Errorf("%s ran %d times", task, n)
		}
	}
	s.gapless(g.cookie, g.id, map[string]int{"run.completed": 1, "node.succeeded": 2})
	s.billedOnce(g.cookie, []string{g.id})
}

func (s *server) signal(which syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(which); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) standsStill() bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	return err == nil && strings.Contains(string(status), "State:\tT")
}

// The only server stands still for a minute, twice as long as it may without
// losing the run, while its tasks end on the cluster.
func TestAServerThatStoodStillLosesNothingOnSlurm(t *testing.T) {
	t.Parallel()
	s := onSlurm(t, t.TempDir(), "--data", t.TempDir())
	g := startGated(t, s)
	s.signal(syscall.SIGSTOP)
	g.open()
	if !waittest.While(time.Minute, s.standsStill) {
		t.Fatal("somebody has woken the server")
	}
	s.signal(syscall.SIGCONT)
	g.lostNothing(s)
}

// Of two servers that share a cluster one stands still. The other takes the
// tasks over as they are, and when the first goes on it changes nothing.
func TestTheOtherServerTakesTasksOnSlurmOver(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	args := []string{"--database-url", storetest.Postgres(t), "--secret-key", "shared by all replicas", "--public-urls", "http://localhost", "--sign-up", "open", "--data"}
	first := onSlurm(t, folder, append(args, t.TempDir())...)
	g := startGated(t, first)
	second := onSlurm(t, folder, append(args, t.TempDir())...)
	first.signal(syscall.SIGSTOP)
	g.open()
	g.lostNothing(second)
	first.signal(syscall.SIGCONT)
	first.want(200, "GET", "/api/health/ready", "") // it is awake
	g.lostNothing(first)
}
