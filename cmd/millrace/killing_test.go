package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/sizetest"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
)

// alone writes in a shared folder that a task runs, and whether a copy of it
// runs at the same time. The lock goes with the task's last process.
const alone = `me=%[1]s/$RUN_ID.$NODE_ID.${ITEM_INDEX:-0}; exec 9>>$me.lock; if flock -n 9; then echo $$ >> $me; else echo doubled >> $me; fi; `

// The server is killed again and again while runs go: each accepted run
// completes, no task runs twice, events have no gap, and each is billed once.
func TestRunsSurviveAServerThatIsKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	rounds := sizetest.Pick(10, 50)
	data, shared := t.TempDir(), t.TempDir()
	args := []string{"--data", data, "--sandbox", "none", "--runs-per-minute", "1000"}
	s := start(t, args...)
	args = append(args, "--public-urls", s.base)
	_, cookie, _ := s.signUp("ada")
	mark := fmt.Sprintf(alone, shared)
	w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":"w","definition":{"nodes":[
		{"id":"a","command":%q,"outputs":{"o":{"path":"o"}}},
		{"id":"b","command":%q,"scatter":{"over":"[1,2,3]"}},
		{"id":"c","command":%q}],
		"edges":[{"id":"e1","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"},{"id":"e2","source":"b","target":"c"}]}}`,
		mark+"sleep 0.2; echo a > o", mark+"sleep 0.2; cat $INPUT_in", mark+"echo done"), "Cookie", cookie)["id"].(string)
	var ids []string
	for range rounds {
		ids = append(ids, s.want(202, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, w), "Cookie", cookie)["runId"].(string))
		<-time.After(rand.N(200 * time.Millisecond)) // any moment
		s.kill()
		s = start(t, args...)
	}
	for _, id := range ids {
		if r := s.endedFor(cookie, id); r["status"] != "completed" {
			t.Errorf("%s is %v: %v", id, r["status"], r["errorMessage"])
		}
		s.gapless(cookie, id, map[string]int{"node.succeeded": 3, "run.completed": 1})
		for _, task := range []string{"a.0", "b.0", "b.1", "b.2", "c.0"} {
			if text, err := os.ReadFile(filepath.Join(shared, id+"."+task)); err != nil || strings.Count(string(text), "\n") != 1 {
				t.Errorf("%s of %s ran as %q, %v", task, id, text, err)
			}
		}
	}
	s.billedOnce(cookie, ids)
}

// endedFor follows a run until it has ended, for longer than a token lives.
func (s *server) endedFor(cookie, id string) map[string]any {
	s.t.Helper()
	return s.endedAs(id, "Cookie", cookie)
}

func (s *server) endedAs(id string, who ...string) (r map[string]any) {
	s.t.Helper()
	if !waittest.Until(func() bool {
		r = s.want(200, "GET", "/api/runs/"+id, "", who...)
		return r["status"] != "queued" && r["status"] != "running"
	}) {
		s.t.Fatalf("%s has not ended: %v\n%s", id, s.want(200, "GET", "/api/runs/"+id+"/events?limit=500", "", who...), s.log)
	}
	return r
}

func (s *server) events(cookie, id string) []any {
	s.t.Helper()
	return s.want(200, "GET", "/api/runs/"+id+"/events?limit=500", "", "Cookie", cookie)["events"].([]any)
}

// gapless checks the numbers of a run's events, and how often some come.
func (s *server) gapless(cookie, id string, want map[string]int) {
	s.t.Helper()
	got := map[string]int{}
	for i, raw := range s.events(cookie, id) {
		e := raw.(map[string]any)
		if e["seq"] != float64(i+1) {
			s.t.Fatalf("%s: event %d has number %v", id, i+1, e["seq"])
		}
		got[e["type"].(string)]++
	}
	for kind, n := range want {
		if got[kind] != n {
			s.t.Errorf("%s: %d × %s, want %d", id, got[kind], kind, n)
		}
	}
}

func (s *server) billedOnce(cookie string, ids []string) {
	s.t.Helper()
	billed := map[string]int{}
	for _, raw := range s.want(200, "GET", "/api/billing/usage?limit=500", "", "Cookie", cookie)["data"].([]any) {
		if e := raw.(map[string]any); e["type"] == "run" {
			billed[e["runId"].(string)]++
		}
	}
	for _, id := range ids {
		if billed[id] != 1 {
			s.t.Errorf("%s is billed %d times", id, billed[id])
		}
	}
}

// A worker is paused past its lease and goes on later: another one has taken
// its run over, its late writes change nothing, and its task has ended before
// the copy began.
func TestAPausedWorkerChangesNothing(t *testing.T) {
	t.Parallel()
	db, shared := storetest.Postgres(t), t.TempDir()
	args := []string{"--database-url", db, "--secret-key", "shared by all replicas", "--public-urls", "http://localhost", "--sign-up", "open", "--sandbox", "none"}
	a := start(t, append(args, "--data", t.TempDir())...)
	_, cookie, _ := a.signUp("ada")
	w := a.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":"w","definition":{"nodes":[{"id":"long","command":%q}]}}`,
		fmt.Sprintf(alone, shared)+fmt.Sprintf("while [ ! -e %s/go ]; do sleep 0.05; done", shared)), "Cookie", cookie)["id"].(string)
	id := a.want(202, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, w), "Cookie", cookie)["runId"].(string)
	copies := func() []string {
		text, _ := os.ReadFile(filepath.Join(shared, id+".long.0"))
		return strings.Fields(string(text))
	}
	await(t, "the task", func() bool { return len(copies()) == 1 })
	b := start(t, append(args, "--data", t.TempDir())...)
	a.pause()
	await(t, "the other worker's copy", func() bool { return len(copies()) > 1 })
	a.signal(syscall.SIGCONT)
	first, err := strconv.Atoi(copies()[0])
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the end of the first copy", func() bool { return errors.Is(syscall.Kill(first, 0), syscall.ESRCH) })
	a.want(200, "GET", "/api/health/ready", "") // it is awake, and has looked
	if err := os.WriteFile(filepath.Join(shared, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := b.endedFor(cookie, id); r["status"] != "completed" {
		t.Errorf("%v: %v", r["status"], r["errorMessage"])
	}
	if got := copies(); len(got) != 2 || strings.Contains(strings.Join(got, " "), "doubled") {
		t.Errorf("%v", got)
	}
	b.gapless(cookie, id, map[string]int{"run.completed": 1, "run.requeued": 1, "node.succeeded": 1})
	b.billedOnce(cookie, []string{id})
}

// await looks until something has happened.
func await(t *testing.T, what string, happened func() bool) {
	t.Helper()
	if !waittest.Until(happened) {
		t.Fatalf("%s does not come", what)
	}
}
