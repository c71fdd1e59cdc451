package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/store/storetest"
)

// Without a worker, and while the controller of a cluster cannot be reached, runs are
// accepted and wait, also those that start by themselves.
func TestRunsWaitForAnExecutorThatIsAway(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]func(t *testing.T) []string{
		"no worker": func(t *testing.T) []string {
			return []string{"--executor", "none", "--database-url", storetest.Postgres(t), "--secret-key", "shared by all replicas", "--sign-up", "open"}
		},
		"a controller that cannot be reached": func(t *testing.T) []string {
			return []string{"--executor", "slurm", "--slurm-folder", t.TempDir(), "--slurm-command-prefix", unreachable(t)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, append([]string{"--data", t.TempDir()}, args(t)...)...)
			token, _, _ := s.signUp("ada")
			w := s.workflow(token, `{"nodes":[{"id":"a","command":"true"}]}`)
			id := s.run(token, fmt.Sprintf(`{"workflowId":%q}`, w))
			r := s.want(200, "GET", "/api/runs/"+id, "", "Authorization", bearer(token))
			waiting, _ := r["waiting"].(map[string]any)
			if r["status"] != "queued" || waiting["reason"] != "executor_unavailable" {
				t.Errorf("%v, %v", r["status"], waiting)
			}
			if e := s.want(200, "POST", "/api/billing/estimate", `{}`, "Authorization", bearer(token)); e["allowed"] != true {
				t.Errorf("%v", e)
			}
			trigger := s.want(201, "POST", "/api/workflows/"+w+"/triggers", `{}`, "Authorization", bearer(token))
			s.want(202, "POST", "/hooks/"+trigger["token"].(string), `{}`)
		})
	}
}

// unreachable is a program that fails as those of Slurm do without their controller.
func unreachable(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "without-controller")
	text := strings.Join([]string{"#!/bin/sh", `echo "slurm_load_partitions: Unable to contact slurm controller (connect failure)" >&2`, "exit 1", ""}, "\n")
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}
