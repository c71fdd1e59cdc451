package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/waittest"
)

// processesOf are those that were started with a folder in their command line, or that
// work in it.
func processesOf(t *testing.T, folder string) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range all {
		command, _ := os.ReadFile(process + "/cmdline")
		work, _ := os.Readlink(process + "/cwd")
		if strings.Contains(string(command), folder) || strings.HasPrefix(work, folder) {
			pid, _ := strconv.Atoi(filepath.Base(process))
			pids = append(pids, pid)
		}
	}
	return pids
}

// stopped reports whether a process stands still, or has ended.
func stopped(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err != nil || strings.Contains(string(status), "State:\tT") || strings.Contains(string(status), "State:\tZ")
}

// TestFrozenWorkerIsNotBilled freezes a server with everything that runs for it, as a
// paused container is.
func TestFrozenWorkerIsNotBilled(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := start(t, "--data", data, "--sandbox", "none")
	_, cookie, _ := s.signUp("ada")
	w := s.want(201, "POST", "/api/workflows", `{"name":"w","definition":{"nodes":[{"id":"a","command":"touch on; while [ ! -e go ]; do sleep 0.05; done"}]}}`, "Cookie", cookie)["id"].(string)
	began := time.Now()
	id := s.beginRun(cookie, fmt.Sprintf(`{"workflowId":%q}`, w))
	var work string
	await(t, "the task", func() bool {
		on, _ := filepath.Glob(filepath.Join(data, "attempts", id+".*", "work", "on"))
		if len(on) == 1 {
			work = filepath.Dir(on[0])
		}
		return len(on) == 1
	})
	pids := processesOf(t, data)
	signal := func(which syscall.Signal) {
		for _, pid := range pids {
			_ = syscall.Kill(pid, which) // the task's last sleep may be over
		}
	}
	t.Cleanup(func() { signal(syscall.SIGCONT) })
	signal(syscall.SIGSTOP)
	allStopped := func() bool {
		for _, pid := range pids {
			if !stopped(pid) {
				return false
			}
		}
		return true
	}
	await(t, "a standstill of all processes", allStopped)
	frozenAt := time.Now()
	if !waittest.While(8*time.Second, allStopped) {
		t.Fatal("somebody has woken a process")
	}
	frozen := time.Since(frozenAt)
	signal(syscall.SIGCONT)
	if err := os.WriteFile(filepath.Join(work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := s.endedFor(cookie, id)
	billed := time.Duration(r["durationMs"].(float64)) * time.Millisecond
	// What watches the task learns some time after a standstill that there was one.
	if most := time.Since(began) - frozen/2; r["status"] != "completed" || billed > most {
		t.Errorf("%v, billed for %s; without half of the time in which nothing ran it took %s", r["status"], billed, most)
	}
}
