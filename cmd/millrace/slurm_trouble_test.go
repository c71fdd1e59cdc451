package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/store/storetest"
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
	return startGatedIn(t, s, cookie, t.TempDir())
}

// startGatedIn starts one whose tasks leave their traces in a folder of the caller's.
func startGatedIn(t *testing.T, s *server, cookie, shared string) gated {
	t.Helper()
	g := gated{t: t, cookie: cookie, shared: shared}
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

// standStill stops the server for a time.
func (s *server) standStill(d time.Duration) {
	s.t.Helper()
	s.pause()
	lasts(s.t, d, func() bool { return stopped(s.cmd.Process.Pid) })
	s.signal(syscall.SIGCONT)
}

// pause stops the server until it gets SIGCONT. The signal takes effect later than it is
// sent.
func (s *server) pause() {
	s.t.Helper()
	s.signal(syscall.SIGSTOP)
	await(s.t, "the standstill of a server", func() bool { return stopped(s.cmd.Process.Pid) })
}

// The only server stands still for a minute, twice as long as it may without
// losing the run, while its tasks end on the cluster. The time in which nobody looked
// and nothing ran is not billed.
func TestAServerThatStoodStillLosesNothingOnSlurm(t *testing.T) {
	t.Parallel()
	s := onSlurm(t, t.TempDir(), "--data", t.TempDir())
	began := time.Now()
	g := startGated(t, s)
	s.pause()
	g.open()
	ended := time.Now()
	lasts(t, time.Minute, func() bool { return stopped(s.cmd.Process.Pid) })
	idle := time.Since(ended)
	s.signal(syscall.SIGCONT)
	g.lostNothing(s)
	// A server sees a task begin some time after it has begun.
	if billed, most := g.billed(s), time.Since(began)-idle/2; billed > most {
		t.Errorf("billed for %s; without half of the time in which nothing ran it took %s", billed, most)
	}
}

// billed is what the run is billed for.
func (g gated) billed(s *server) time.Duration {
	g.t.Helper()
	return time.Duration(s.endedFor(g.cookie, g.id)["durationMs"].(float64)) * time.Millisecond
}

// absences keep a server from its runs for longer than its lease.
var absences = map[string]func(*server, *cable){
	"stopped for 45 s":     func(s *server, _ *cable) { s.standStill(45 * time.Second) },
	"stopped for 75 s":     func(s *server, _ *cable) { s.standStill(75 * time.Second) },
	"no database for 60 s": func(s *server, database *cable) { database.away(s.t, time.Minute) },
}

// TestAClusterOnSlurmKeepsTheTasksOfAStoppedServer stops one of two servers that share a
// cluster, or cuts it off from the database, for longer than its lease. The other one
// adopts the tasks, which run on.
func TestAClusterOnSlurmKeepsTheTasksOfAStoppedServer(t *testing.T) {
	if !long() {
		t.Skip("for `make chaos`")
	}
	t.Parallel()
	for name, absence := range absences {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := storetest.Postgres(t)
			through, cable := cabled(t, database)
			first, second := twoOnSlurm(t, through, database)
			g := startGated(t, first)
			other := second()
			g.outlive(first, other, func() { absence(first, cable) })
		})
	}
}

// outlive keeps the server that has the run from it for a time, and checks that the tasks
// go on under another server.
func (g gated) outlive(first, other *server, absence func()) {
	g.t.Helper()
	absence()
	await(g.t, "the other server", func() bool { return other.eventsOf(g)["run.resumed"] == 1 })
	await(g.t, "the first server", func() bool { status, _, _ := first.call("GET", "/api/health/ready", ""); return status == 200 })
	// It learns by its next renewal that it has lost the run, and has time to act on that.
	lasts(g.t, 20*time.Second, func() bool {
		return other.want(200, "GET", "/api/runs/"+g.id, "", "Cookie", g.cookie)["status"] == "running"
	})
	g.open()
	g.lostNothing(other)
}

// TestAClusterOnSlurmBillsALostJobForItsWork kills a job with its shim, so that half a
// minute passes until it is known to be lost.
func TestAClusterOnSlurmBillsALostJobForItsWork(t *testing.T) {
	if !long() {
		t.Skip("for `make chaos`")
	}
	t.Parallel()
	folder, shared := t.TempDir(), t.TempDir()
	s := onSlurm(t, folder, "--data", t.TempDir())
	_, cookie, _ := s.signUp("ada")
	w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":"w","definition":{"nodes":[{"id":"a","command":"touch %s/$ATTEMPT; if [ $ATTEMPT = 1 ]; then sleep 600; fi"}]}}`, shared), "Cookie", cookie)["id"].(string)
	began := time.Now()
	id := s.beginRun(cookie, fmt.Sprintf(`{"workflowId":%q}`, w))
	await(t, "the task", func() bool { _, err := os.Stat(filepath.Join(shared, "1")); return err == nil })
	for _, pid := range processesOf(t, folder) {
		if pid != s.cmd.Process.Pid {
			_ = syscall.Kill(pid, syscall.SIGKILL) // one may have gone with another
		}
	}
	killed := time.Now()
	await(t, "the second attempt", func() bool { _, err := os.Stat(filepath.Join(shared, "2")); return err == nil })
	unnoticed := time.Since(killed)
	r := s.endedFor(cookie, id)
	billed := time.Duration(r["durationMs"].(float64)) * time.Millisecond
	if most := time.Since(began) - unnoticed/2; r["status"] != "completed" || billed > most {
		t.Errorf("%v, billed for %s; without half of the time in which nothing ran it took %s", r["status"], billed, most)
	}
}

// eventsOf counts the events of a run by their type.
func (s *server) eventsOf(g gated) map[string]int {
	s.t.Helper()
	events := map[string]int{}
	for _, e := range s.events(g.cookie, g.id) {
		events[e.(map[string]any)["type"].(string)]++
	}
	return events
}

// cabled is the address of a database behind a cable.
func cabled(t *testing.T, database string) (string, *cable) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	c := newCable(t, u.Host)
	u.Host = c.listener.Addr().String()
	return u.String(), c
}

// twoOnSlurm starts a server on a cluster, and returns how to start another one beside it.
// The first one reaches the database as it is told.
func twoOnSlurm(t *testing.T, firstDatabase, database string) (first *server, second func() *server) {
	t.Helper()
	folder := t.TempDir()
	next := func(url string) *server {
		return onSlurm(t, folder, "--database-url", url, "--secret-key", "shared by all replicas", "--public-urls", "http://localhost", "--sign-up", "open", "--data", t.TempDir())
	}
	return next(firstDatabase), func() *server { return next(database) }
}

// Of two servers that share a cluster one stands still. The other takes the
// tasks over as they are, and when the first goes on it changes nothing.
func TestTheOtherServerTakesTasksOnSlurmOver(t *testing.T) {
	t.Parallel()
	database := storetest.Postgres(t)
	first, next := twoOnSlurm(t, database, database)
	g := startGated(t, first)
	second := next()
	first.pause()
	g.open()
	g.lostNothing(second)
	first.signal(syscall.SIGCONT)
	first.want(200, "GET", "/api/health/ready", "") // it is awake
	g.lostNothing(first)
}
