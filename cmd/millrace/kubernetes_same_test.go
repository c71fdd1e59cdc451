package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheExamplesMakeTheSameOnKubernetes(t *testing.T) {
	t.Parallel()
	there, _ := onKubernetes(t, "", t.TempDir())
	here := start(t, "--data", t.TempDir(), "--runs-per-minute", "1000")
	_, thereCookie, _ := there.signUp("ada")
	_, hereCookie, _ := here.signUp("ada")
	there.verify("ada")
	folders, err := filepath.Glob("../../examples/*/workflow.json")
	if err != nil || len(folders) < 8 {
		t.Fatalf("%d examples, %v", len(folders), err)
	}
	for _, path := range folders {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			there, here := *there, *here
			there.t, here.t = t, t
			got, want := there.made(thereCookie, there.example(thereCookie, dir)), here.made(hereCookie, here.example(hereCookie, dir))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// mixed are runs of many kinds; %d is what makes each its own.
var mixed = []string{
	`{"nodes":[{"id":"a","command":"seq %d > o","outputs":{"o":{"path":"o"}}},{"id":"b","command":"sort -r $INPUT_in | tee p","outputs":{"p":{"path":"p"}}}],
	  "edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}`,
	`{"nodes":[{"id":"a","command":"echo %d $ITEM > o","scatter":{"over":"[1,2,3]"},"outputs":{"o":{"path":"o"}}},{"id":"b","command":"cat $INPUT_in > p","outputs":{"p":{"path":"p"}}}],
	  "edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}`,
	`{"nodes":[{"id":"a","retries":{"max":2,"backoffSeconds":0.1,"on":["error"]},"command":"echo %d $ATTEMPT > o; [ $ATTEMPT = 2 ]","outputs":{"o":{"path":"o"}}}]}`,
	`{"nodes":[{"id":"a","cache":true,"command":"echo %d > o","outputs":{"o":{"path":"o"}}},{"id":"b","cache":true,"command":"cat $INPUT_in > p","outputs":{"p":{"path":"p"}}}],
	  "edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}`,
	`{"nodes":[{"id":"a","command":"mkdir -p d/e; echo %d > d/e/f; ln -s e/f d/g","outputs":{"d":{"path":"d","directory":true}}},{"id":"b","command":"cat $INPUT_in/g > p","outputs":{"p":{"path":"p"}}}],
	  "edges":[{"id":"e","source":"a","sourceHandle":"d","target":"b","targetHandle":"in"}]}`,
	`{"nodes":[{"id":"a","command":"echo %d > o; exit 3","outputs":{"o":{"path":"o"}}},{"id":"b","command":"true"}],"edges":[{"id":"e","source":"a","target":"b"}]}`,
	`{"nodes":[{"id":"a","command":"echo %d; sleep 600"}]}`, // cancelled
}

// Runs of many kinds end on Kubernetes as they do here, and make the same.
// MILLRACE_TEST_MIXED says how many there are.
func TestMixedRunsMakeTheSameOnKubernetes(t *testing.T) {
	t.Parallel()
	n := 3 * len(mixed)
	if text := os.Getenv("MILLRACE_TEST_MIXED"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	there, _ := onKubernetes(t, "", t.TempDir())
	here := start(t, "--data", t.TempDir(), "--runs-per-minute", "1000", "--sandbox", "none")
	ends := map[*server][]string{}
	for _, s := range []*server{here, there} {
		_, cookie, _ := s.signUp("ada")
		if s == there {
			s.verify("ada")
		}
		ends[s] = s.mixedRuns(cookie, n)
	}
	if diff := cmp.Diff(ends[here], ends[there]); diff != "" {
		t.Error(diff)
	}
}

// mixedRuns are how runs ended, with what they made.
func (s *server) mixedRuns(cookie string, n int) (ends []string) {
	s.t.Helper()
	as := []string{"Cookie", cookie}
	var list []string
	for i := range n {
		// What is cached is run twice with the same text.
		definition := fmt.Sprintf(mixed[i%len(mixed)], i/len(mixed)/2)
		w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":"w%d","definition":%s}`, i, definition), as...)["id"]
		list = append(list, s.want(202, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q,"compute":{"vcpu":1,"ramGb":4}}`, w), as...)["runId"].(string))
	}
	for i := len(mixed) - 1; i < n; i += len(mixed) {
		await(s.t, "a run to be cancelled", func() bool {
			return s.want(200, "GET", "/api/runs/"+list[i], "", as...)["status"] == "running"
		})
		s.want(200, "POST", "/api/runs/"+list[i]+"/cancel", "", as...)
	}
	var billed []string
	for i, id := range list {
		r := s.endedFor(cookie, id)
		if r["status"] != "cancelled" && !strings.Contains(mixed[i%len(mixed)], "cache") { // of those nothing may have run
			billed = append(billed, id)
		}
		ends = append(ends, fmt.Sprint(r["status"], " ", r["errorCode"], " ", r["errorMessage"], " ", s.made(cookie, id)))
	}
	s.billedOnce(cookie, billed)
	return ends
}
