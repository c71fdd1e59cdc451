package main

import (
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/domain/retention"
)

// The page names each metric that a server has, and no other.
func TestThePageOfMetricsIsTheRegistry(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir(), "--admin-listen", "127.0.0.1:0", "--sandbox", "none")
	_, cookie, _ := s.signUp("ada")
	workflow := s.want(201, "POST", "/api/workflows", `{"name":"w","definition":{"nodes":[{"id":"a","command":"true"},{"id":"b","command":"exit 1"}]}}`, "Cookie", cookie)["id"].(string)
	run := s.want(202, "POST", "/api/runs", `{"workflowId":"`+workflow+`"}`, "Cookie", cookie)["runId"].(string)
	s.endedFor(cookie, run)
	text := s.scraped()
	await(t, "the chores", func() bool {
		text = s.scraped()
		return regexp.MustCompile(`millrace_chore_last_success_timestamp_seconds\{chore="old-revisions"\} [1-9]`).MatchString(text)
	})
	for _, want := range []string{
		`millrace_tasks_total\{outcome="succeeded"\} 1`, `millrace_tasks_total\{outcome="failed"\} 1`, `millrace_runs_ended_total\{status="failed"\} 1`,
		`millrace_run_wait_seconds_count 1`, `millrace_run_start_seconds_count 1`, `millrace_upkeep_leader 1`, `millrace_disk_free_bytes [1-9]`,
	} {
		if !regexp.MustCompile(`(?m)^` + want).MatchString(text) {
			t.Errorf("there is no %s", want)
		}
	}
	page, err := os.ReadFile("../../docs/operating/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(names(text, `(?m)^# HELP (millrace_\w+)`), names(string(page), "(?m)^\\| `(millrace_\\w+)` \\|")); diff != "" {
		t.Errorf("registered (-) and described (+) differ:\n%s", diff)
	}
}

// Every chore is in the table of the page on retention.
func TestEveryChoreIsDescribed(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	for _, file := range []string{"chores.go", "executors/kubernetes.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	page, err := os.ReadFile("../../docs/operating/retention.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Background jobs")
	chores := names(source.String(), `Name: "([a-z-]+)"`)
	for _, kind := range retention.Kinds {
		chores = append(chores, "old-"+string(kind))
	}
	slices.Sort(chores)
	var described []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(table, -1) {
		described = append(described, names(row[1], "`([a-z-]+)`")...)
	}
	slices.Sort(described)
	if diff := cmp.Diff(chores, described); diff != "" {
		t.Errorf("done (-) and described (+) differ:\n%s", diff)
	}
}

func names(text, pattern string) []string {
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// scraped is what the admin listener says.
func (s *server) scraped() string {
	s.t.Helper()
	r, err := http.Get(s.metrics)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}
