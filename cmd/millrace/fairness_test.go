package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/store/storetest"
)

// Teams with runs of very different sizes wait for more than there is: while
// all have work, each gets the same share, of one server and of three.
func TestTeamsGetEqualSharesOfRealMachines(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		shareOut(t, []*server{start(t, "--data", t.TempDir(), "--sandbox", "none", "--capacity", "vcpu=12,ramGb=64", "--runs-per-minute", "10000")})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		database := storetest.Postgres(t)
		var servers []*server
		for range 3 {
			servers = append(servers, start(t, "--data", t.TempDir(), "--database-url", database, "--secret-key", strings.Repeat("ab", 32),
				"--public-urls", "http://localhost", "--sign-up", "open", "--sandbox", "none", "--capacity", "vcpu=4,ramGb=32", "--runs-per-minute", "10000"))
		}
		shareOut(t, servers)
	})
}

// span is a run that has ended.
type span struct {
	vcpu     float64
	from, to time.Time
}

func shareOut(t *testing.T, servers []*server) {
	t.Helper()
	teams, each := pick(5, 10), pick(10, 20)
	cookies := make([]string, teams)
	runs := make([][]string, teams)
	flows := make([]string, teams)
	for i := range teams {
		_, cookies[i], _ = servers[0].signUp(fmt.Sprintf("team%d", i))
		flows[i] = servers[0].want(201, "POST", "/api/workflows", `{"name":"w","definition":{"nodes":[{"id":"a","command":"sleep 2"}]}}`, "Cookie", cookies[i])["id"].(string)
	}
	begin := fillMachines(t, servers[0])
	for range each {
		for i := range teams {
			body := fmt.Sprintf(`{"workflowId":%q,"compute":{"vcpu":%d,"ramGb":%d}}`, flows[i], 1<<(i%3), 4<<(i%3))
			runs[i] = append(runs[i], servers[i%len(servers)].want(202, "POST", "/api/runs", body, "Cookie", cookies[i])["runId"].(string))
		}
	}
	begin()
	begun, over := time.Now(), time.Time{}
	spans := make([][]span, teams)
	for i := range teams {
		var started time.Time // when the team's last run did
		for _, id := range runs[i] {
			r := servers[0].endedFor(cookies[i], id)
			if r["status"] != "completed" {
				t.Errorf("%s is %v: %v", id, r["status"], r["errorMessage"])
			}
			s := span{vcpu: r["compute"].(map[string]any)["vcpu"].(float64), from: at(t, r["startedAt"]), to: at(t, r["finishedAt"])}
			spans[i] = append(spans[i], s)
			if s.from.After(started) {
				started = s.from
			}
		}
		if over.IsZero() || started.Before(over) {
			over = started
		}
	}
	var sum, squares float64
	var got []float64
	for i := range teams {
		var used float64
		for _, s := range spans[i] {
			from, to := s.from, s.to
			if from.Before(begun) {
				from = begun
			}
			if to.After(over) {
				to = over
			}
			if to.After(from) {
				used += s.vcpu * to.Sub(from).Seconds()
			}
		}
		got = append(got, used)
		sum, squares = sum+used, squares+used*used
	}
	index := sum * sum / (float64(teams) * squares)
	t.Logf("Jain's index %.3f, vCPU-seconds %.0f in %s", index, got, over.Sub(begun))
	if least := map[bool]float64{true: 0.9, false: 0.7}[long()]; index < least { // a short while shares out less evenly
		t.Errorf("the teams got %.0f vCPU-seconds: Jain's index is %.3f", got, index)
	}
}

// fillMachines has other teams use all twelve vCPUs until everything waits: however
// long it takes to submit, all teams have work when sharing begins.
func fillMachines(t *testing.T, s *server) (begin func()) {
	t.Helper()
	mark := filepath.Join(t.TempDir(), "begin")
	for i := range 3 {
		_, cookie, _ := s.signUp(fmt.Sprintf("before%d", i))
		flow := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":"w","definition":{"nodes":[{"id":"a","command":"while [ ! -e %s ]; do sleep 0.1; done"}]}}`, mark), "Cookie", cookie)["id"].(string)
		id := s.want(202, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q,"compute":{"vcpu":4,"ramGb":16}}`, flow), "Cookie", cookie)["runId"].(string)
		await(t, "a run that fills a machine", func() bool {
			return s.want(200, "GET", "/api/runs/"+id, "", "Cookie", cookie)["status"] == "running"
		})
	}
	return func() {
		if err := os.WriteFile(mark, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func at(t *testing.T, text any) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339Nano, fmt.Sprint(text))
	if err != nil {
		t.Fatal(err)
	}
	return when
}
