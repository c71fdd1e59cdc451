package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/graph/graphtest"
	"github.com/millrace/millrace/internal/sizetest"
)

// Strangers submit what was made to take the server down, in little memory: it
// stays up and answers others, and a restart goes on where it was.
func TestHostileDefinitionsLeaveTheServerAlive(t *testing.T) {
	t.Parallel()
	group := memoryGroup(t, 1_536<<20)
	args := []string{"--data", t.TempDir(), "--sandbox", "none", "--runs-per-minute", "1000"}
	s := launch(t, within(t, group, args...))
	args = append(args, "--public-urls", s.base)
	_, stranger, _ := s.signUp("eve")
	_, honest, _ := s.signUp("ada")
	var started []string
	var slowest time.Duration // of what others ask
	for seed := range uint64(sizetest.Pick(30, 100)) {
		definition, parameters := graphtest.Hostile(rand.New(rand.NewPCG(seed, 34)))
		if id := s.submitHostile(stranger, definition, parameters); id != "" {
			started = append(started, id)
		}
		began := time.Now()
		s.want(200, "GET", "/api/me", "", "Cookie", honest)
		slowest = max(slowest, time.Since(began))
		if err := s.cmd.Process.Signal(syscall.Signal(0)); err != nil {
			t.Fatalf("after seed %d the server is gone: %v\n%s", seed, err, s.log)
		}
	}
	if len(started) < 5 {
		t.Errorf("only %d of them could be run", len(started))
	}
	s.kill()
	if usage, ok := s.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		t.Logf("%d runs were accepted; the server took up to %d MB; others waited up to %s", len(started), usage.Maxrss>>10, slowest)
	}
	s = launch(t, within(t, group, args...))
	for _, id := range started {
		s.call("POST", "/api/runs/"+id+"/cancel", "{}", "Cookie", stranger)
	}
	w := s.want(201, "POST", "/api/workflows", `{"name":"honest","definition":{"nodes":[{"id":"a","command":"echo done"}]}}`, "Cookie", honest)["id"].(string)
	id := s.want(202, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, w), "Cookie", honest)["runId"].(string)
	if r := s.endedFor(honest, id); r["status"] != "completed" {
		t.Errorf("the honest run is %v: %v", r["status"], r["errorMessage"])
	}
	for _, id := range started {
		s.endedFor(stranger, id)
	}
}

// submitHostile saves a definition and starts a run of it. What is refused is
// refused with a sentence.
func (s *server) submitHostile(cookie, definition, parameters string) string {
	s.t.Helper()
	status, saved, _ := s.call("POST", "/api/workflows", `{"name":"hostile","definition":`+definition+`}`, "Cookie", cookie)
	if status == 201 {
		var run map[string]any
		status, run, _ = s.call("POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q,"parameters":%s}`, saved["id"], parameters), "Cookie", cookie)
		if status == 202 {
			return run["runId"].(string)
		}
		saved = run
	}
	said, _ := saved["error"].(string)
	if said == "" || status != 400 && status != 413 && status != 503 {
		text, _ := json.Marshal(saved)
		s.t.Errorf("%d %.300s", status, text)
	}
	return ""
}

// memoryGroup makes a cgroup with so much memory, of whichever version can be
// written here; empty: none.
func memoryGroup(t *testing.T, limit int) string {
	t.Helper()
	for _, g := range []struct{ top, file string }{{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"}} {
		group := filepath.Join(g.top, fmt.Sprintf("millrace-test-%d", rand.Uint32()))
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(group) })
		if os.WriteFile(filepath.Join(group, g.file), fmt.Append(nil, limit), 0o644) == nil {
			return group
		}
	}
	return ""
}

// within is a server that starts inside the cgroup, or keeps to its limit by
// itself where there is none.
func within(t *testing.T, group string, args ...string) *exec.Cmd {
	c := millrace(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	if group == "" {
		t.Log("no cgroup can be written here: the server has GOMEMLIMIT only")
		c.Env = append(c.Env, "GOMEMLIMIT=1GiB")
		return c
	}
	inside := exec.Command("sh", append([]string{"-c", `echo $$ > "$0"/cgroup.procs && exec "$@"`, group}, c.Args...)...)
	inside.Env, inside.Dir = c.Env, c.Dir
	return inside
}
