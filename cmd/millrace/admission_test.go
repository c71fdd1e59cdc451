package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/lease"
)

// Five runs that each fill the machine: one runs, four say why they wait, and
// all pay the same for the same work.
func TestRunsThatFillTheMachineTakeTurnsAndPayTheSame(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir(), "--capacity", "vcpu=2,ramGb=8")
	_, cookie, _ := s.signUp("ada")
	w := s.want(201, "POST", "/api/workflows", `{"name":"w","definition":{"nodes":[{"id":"a","command":"sleep 2"},{"id":"b","command":"sleep 2"}]}}`, "Cookie", cookie)["id"].(string)
	var ids []string
	for range 5 {
		ids = append(ids, s.want(202, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, w), "Cookie", cookie)["runId"].(string))
	}
	waited := 0
	await(t, "the end of all runs", func() bool {
		_, all, _ := s.call("GET", "/api/runs", "", "Cookie", cookie)
		running, left := 0, 0
		for _, row := range all["data"].([]any) {
			r := row.(map[string]any)
			waiting, _ := r["waiting"].(map[string]any)
			switch r["status"] {
			case "running":
				running++
				left++
			case "queued":
				left++
				if reason := waiting["reason"]; reason != "turn" && reason != "no_room" {
					t.Fatalf("a queued run waits for %v", waiting)
				}
				waited++
			}
			if r["status"] != "queued" && waiting != nil {
				t.Errorf("a %v run waits for %v", r["status"], waiting)
			}
		}
		if running > 1 {
			t.Fatalf("%d run at once", running)
		}
		return left == 0
	})
	if waited == 0 {
		t.Error("none was ever seen waiting")
	}
	const second = 2*3.6/3600 + 8*0.36/3600 // credits, of 2 vCPUs and 8 GB
	var paid []float64
	for _, id := range ids {
		r := s.endedFor(cookie, id)
		used, ms := r["creditsUsed"].(float64), r["durationMs"].(float64)
		if r["status"] != "completed" || math.Abs(used-math.Ceil(ms/1000)*second) > 1e-9 {
			t.Errorf("%v: %v, %v credits for %v ms", r["status"], r["errorMessage"], used, ms)
		}
		if ran := s.ranFor(cookie, id); time.Duration(ms)*time.Millisecond > ran {
			t.Errorf("%s ran for %s and is billed for %v ms", id, ran, ms)
		}
		paid = append(paid, used)
	}
	if least, most := slices.Min(paid), slices.Max(paid); long() && most-least > second+1e-9 {
		t.Errorf("they pay between %v and %v credits", least, most)
	}
}

// ranFor is the time from a run's start to its end.
func (s *server) ranFor(cookie, id string) time.Duration {
	s.t.Helper()
	at := map[any]time.Time{}
	for _, raw := range s.events(cookie, id) {
		e := raw.(map[string]any)
		when, err := time.Parse(time.RFC3339, e["at"].(string))
		if err != nil {
			s.t.Fatal(err)
		}
		at[e["type"]] = when
	}
	return at["run.completed"].Sub(at["run.started"])
}

// Who watches a queued run on the command line is told why it waits.
func TestTheCommandLineSaysWhyARunWaits(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir(), "--sandbox", "none", "--capacity", "vcpu=2,ramGb=8")
	token, _, _ := s.signUp("ada")
	as := func(args ...string) *exec.Cmd {
		c := millrace(t, args...)
		c.Env = append(c.Env, "MILLRACE_SERVER="+s.base, "MILLRACE_TOKEN="+token)
		return c
	}
	gate := filepath.Join(t.TempDir(), "go")
	first := s.workflow(token, fmt.Sprintf(`{"nodes":[{"id":"a","command":"for i in $(seq 600); do [ -e %s ] && break; sleep 0.1; done"}]}`, gate))
	s.run(token, fmt.Sprintf(`{"workflowId":%q}`, first))
	second := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, s.workflow(token, `{"nodes":[{"id":"a","command":"true"}]}`)))
	watch := as("runs", "watch", second)
	out, err := watch.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	const why = "It starts when 2 vCPUs and 8 GB are free."
	said := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if !strings.HasSuffix(lines.Text(), "  Waiting: "+why) {
			continue
		}
		if said {
			t.Error("it was said twice")
		}
		said = true
		if text, err := as("runs", "view", second).CombinedOutput(); err != nil || !strings.Contains(string(text), why) {
			t.Errorf("runs view: %v\n%s", err, text)
		}
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := watch.Wait(); err != nil || !said {
		t.Errorf("said why: %v, ended with %v", said, err)
	}
}

// A server that was stopped for longer than its leases last goes on with its
// runs: nothing runs twice, nothing is lost.
func TestAServerThatWasStoppedGoesOn(t *testing.T) {
	t.Parallel()
	shared := t.TempDir()
	s := start(t, "--data", t.TempDir(), "--sandbox", "none", "--capacity", "vcpu=20,ramGb=80", "--runs-per-minute", "1000")
	_, cookie, _ := s.signUp("ada")
	w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":"w","definition":{"nodes":[
		{"id":"a","command":%q,"scatter":{"over":"[1,2,3,4]"}},{"id":"b","command":%q}],"edges":[{"id":"e","source":"a","target":"b"}]}}`,
		fmt.Sprintf(alone, shared)+"sleep 3", fmt.Sprintf(alone, shared)+"sleep 1"), "Cookie", cookie)["id"].(string)
	began := time.Now()
	var ids []string
	for range 5 {
		ids = append(ids, s.want(202, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, w), "Cookie", cookie)["runId"].(string))
	}
	await(t, "a task", func() bool {
		made, _ := filepath.Glob(filepath.Join(shared, "*.lock"))
		return len(made) > 0
	})
	stoppedAt := time.Now()
	s.standStill(lease.Length + 10*time.Second)
	stood := time.Since(stoppedAt)
	for _, id := range ids {
		r := s.endedFor(cookie, id)
		if r["status"] != "completed" {
			t.Errorf("%s is %v: %v", id, r["status"], r["errorMessage"])
		}
		billed := time.Duration(r["durationMs"].(float64)) * time.Millisecond
		if most := time.Since(began) - stood/2; billed > most {
			t.Errorf("%s is billed for %s, its server's stop too; without half of that it took %s", id, billed, most)
		}
		s.gapless(cookie, id, map[string]int{"node.succeeded": 2, "run.completed": 1, "run.requeued": 0})
		for _, task := range []string{"a.0", "a.1", "a.2", "a.3", "b.0"} {
			if text, err := os.ReadFile(filepath.Join(shared, id+"."+task)); err != nil || strings.Count(string(text), "\n") != 1 {
				t.Errorf("%s of %s ran as %q, %v", task, id, text, err)
			}
		}
	}
	s.billedOnce(cookie, ids)
}
