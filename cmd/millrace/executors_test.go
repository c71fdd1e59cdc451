package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/store/storetest"
)

// A server without an executor leaves the work to others, who need a database
// that they can reach.
func TestAServerWithoutAnExecutorNeedsWorkers(t *testing.T) {
	t.Parallel()
	if err := (&settings{Executor: "none"}).executorProblems(); err == nil || !strings.Contains(err.Error(), "--database-url") {
		t.Errorf("%v", err)
	}
	s := settings{Executor: "none"}
	s.DatabaseURL = "postgres://db/millrace"
	if list, err := s.executors(); err != nil || len(list) != 0 || s.executorProblems() != nil {
		t.Errorf("%+v, %v", list, err)
	}
}

const hello = `{"name":"w","definition":{"nodes":[{"id":"a","command":"echo hello"}]}}`

// A server that has no executor accepts runs for workers that have one. Those that
// it accepts before there is a worker wait for it.
func TestAServerLeavesTheWorkToWorkers(t *testing.T) {
	t.Parallel()
	args := []string{
		"--database-url", storetest.Postgres(t), "--secret-key", "shared by all replicas", "--data", t.TempDir(),
		"--public-urls", "http://localhost", "--sign-up", "open", "--sandbox", "none", "--runs-per-minute", "1000",
	}
	s := start(t, append(args, "--executor", "none")...)
	_, cookie, _ := s.signUp("ada")
	w := s.want(201, "POST", "/api/workflows", hello, "Cookie", cookie)["id"].(string)
	body := fmt.Sprintf(`{"workflowId":%q,"executor":"local"}`, w)
	s.want(400, "POST", "/api/runs", body, "Cookie", cookie)
	early := s.want(202, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, w), "Cookie", cookie)["runId"].(string)
	args[5] = t.TempDir()
	m := &member{worker: true, args: args}
	m.start(t)
	var id string
	await(t, "the worker to be known", func() bool {
		status, data, _ := s.call("POST", "/api/runs", body, "Cookie", cookie)
		id, _ = data["runId"].(string)
		return status == 202
	})
	for _, id := range []string{early, id} {
		if r := s.endedFor(cookie, id); r["status"] != "completed" || r["executor"] != "local" {
			t.Errorf("%v on %v: %v", r["status"], r["executor"], r["errorMessage"])
		}
	}
}

// Only a server that tasks out of our reach may come to has addresses for them.
func TestWhoServesAttempts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		executor, url string
		want          bool
	}{{"local", "", false}, {"none", "", false}, {"slurm", "", false}, {"kubernetes", "https://lab.example", true}, {"none", "https://lab.example", true}} {
		s := &settings{}
		s.Executor, s.AttemptsURL = c.executor, c.url
		if got := s.servesAttempts(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
