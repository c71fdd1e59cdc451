package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// kind is a kind of run. In its definition %d makes each run its own.
type kind struct {
	definition string
	ends       string // completed, unless it says otherwise; somebody cancels what is to be cancelled
	cached     bool   // nothing of it may have run
}

// mixed are runs of many kinds, which end well and badly.
var mixed = []kind{
	{definition: `{"nodes":[{"id":"a","command":"seq %d > o","outputs":{"o":{"path":"o"}}},{"id":"b","command":"sort -r $INPUT_in | tee p","outputs":{"p":{"path":"p"}}}],
	  "edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}`},
	{definition: `{"nodes":[{"id":"a","command":"echo %d $ITEM > o","scatter":{"over":"[1,2,3]"},"outputs":{"o":{"path":"o"}}},{"id":"b","command":"cat $INPUT_in > p","outputs":{"p":{"path":"p"}}}],
	  "edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}`},
	{definition: `{"nodes":[{"id":"a","retries":{"max":2,"backoffSeconds":0.1,"on":["error"]},"command":"echo %d $ATTEMPT > o; [ $ATTEMPT = 2 ]","outputs":{"o":{"path":"o"}}}]}`},
	{cached: true, definition: `{"nodes":[{"id":"a","cache":true,"command":"echo %d > o","outputs":{"o":{"path":"o"}}},{"id":"b","cache":true,"command":"cat $INPUT_in > p","outputs":{"p":{"path":"p"}}}],
	  "edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}`},
	{definition: `{"nodes":[{"id":"a","command":"mkdir -p d/e; echo %d > d/e/f; ln -s e/f d/g","outputs":{"d":{"path":"d","directory":true}}},{"id":"b","command":"cat $INPUT_in/g > p","outputs":{"p":{"path":"p"}}}],
	  "edges":[{"id":"e","source":"a","sourceHandle":"d","target":"b","targetHandle":"in"}]}`},
	{ends: "failed", definition: `{"nodes":[{"id":"a","command":"echo %d > o; exit 3","outputs":{"o":{"path":"o"}}},{"id":"b","command":"true"}],"edges":[{"id":"e","source":"a","target":"b"}]}`},
	{ends: "cancelled", definition: `{"nodes":[{"id":"a","command":"echo %d; sleep 600"}]}`},
	{definition: `{"nodes":[{"id":"a","command":"for i in 1 2 3; do echo %d $i > $i.txt; done; echo other > x","outputs":{"all":{"path":"*.txt","many":true},"none":{"path":"y","optional":true}}},
	  {"id":"b","command":"(echo $ITEM_INDEX; cat $ITEM) > p","scatter":{"over":"nodes.a.outputs.all"},"outputs":{"p":{"path":"p"}}}],"edges":[{"id":"e","source":"a","sourceHandle":"all","target":"b","targetHandle":"in"}]}`},
	{definition: `{"nodes":[{"id":"a","allowFailure":true,"command":"echo %d > o; [ $ITEM != 2 ]","scatter":{"over":"[1,2,3]"},"outputs":{"o":{"path":"o"}}},{"id":"b","command":"cat $INPUT_in > p","outputs":{"p":{"path":"p"}}}],
	  "edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}`},
	{ends: "failed", definition: `{"nodes":[{"id":"a","command":"echo %d > o","outputs":{"o":{"path":"o"},"p":{"path":"never"}}}]}`},
	{ends: "failed", definition: `{"nodes":[{"id":"a","timeoutSeconds":0.5,"command":"echo %d; sleep 600"}]}`},
	{definition: `{"parameters":{"n":{"type":"integer","default":%d}},"nodes":[{"id":"a","when":"params.n %% 2 == 0","command":"echo $PARAM_n > o","outputs":{"o":{"path":"o"}}},
	  {"id":"b","allowFailure":true,"when":"params.n %% 2 != 0","command":"kill -9 $$"}]}`},
}

func TestTheExamplesMakeTheSameOnSlurm(t *testing.T) {
	t.Parallel()
	there := onSlurm(t, t.TempDir(), "--data", t.TempDir())
	_, cookie, _ := there.signUp("ada")
	there.makesTheExamples(cookie)
}

func TestTheExamplesMakeTheSameOnKubernetes(t *testing.T) {
	t.Parallel()
	there, _ := onKubernetes(t, "", t.TempDir())
	_, cookie, _ := there.signUp("ada")
	there.verify("ada")
	there.makesTheExamples(cookie)
}

func TestMixedRunsMakeTheSameOnSlurm(t *testing.T) {
	t.Parallel()
	there := onSlurm(t, t.TempDir(), "--data", t.TempDir())
	_, cookie, _ := there.signUp("ada")
	there.makesTheMixture(cookie)
}

func TestMixedRunsMakeTheSameOnKubernetes(t *testing.T) {
	t.Parallel()
	there, _ := onKubernetes(t, "", t.TempDir())
	_, cookie, _ := there.signUp("ada")
	there.verify("ada")
	there.makesTheMixture(cookie)
}

// makesTheExamples holds what they make on a cluster against what they make here.
func (s *server) makesTheExamples(cookie string) {
	s.t.Helper()
	here := start(s.t, "--data", s.t.TempDir(), "--runs-per-minute", "1000")
	_, hereCookie, _ := here.signUp("ada")
	folders, err := filepath.Glob("../../examples/*/workflow.json")
	if err != nil || len(folders) < 8 {
		s.t.Fatalf("%d examples, %v", len(folders), err)
	}
	for _, path := range folders {
		dir := filepath.Dir(path)
		s.t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			there, here := *s, *here
			there.t, here.t = t, t
			got, want := there.made(cookie, there.example(cookie, dir)), here.made(hereCookie, here.example(hereCookie, dir))
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// makesTheMixture holds how runs of all kinds end on a cluster, and what they make,
// against the same here. MILLRACE_TEST_MIXED says how many they are.
func (s *server) makesTheMixture(cookie string) {
	s.t.Helper()
	n := 2 * len(mixed)
	if text := os.Getenv("MILLRACE_TEST_MIXED"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			s.t.Fatal(err)
		}
	}
	here := start(s.t, "--data", s.t.TempDir(), "--runs-per-minute", "1000")
	_, hereCookie, _ := here.signUp("ada")
	want, got := here.mixedRuns(hereCookie, n), s.mixedRuns(cookie, n)
	if diff := gocmp.Diff(want, got); diff != "" {
		s.t.Error(diff)
	}
}

// mixedRuns are how runs ended, with what they made.
func (s *server) mixedRuns(cookie string, n int) (ends []string) {
	s.t.Helper()
	var list []string
	for i := range n {
		// What is cached is run twice with the same text.
		definition := fmt.Sprintf(mixed[i%len(mixed)].definition, i/len(mixed)/2)
		w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":"w%d","definition":%s}`, i, definition), "Cookie", cookie)["id"]
		list = append(list, s.beginRun(cookie, fmt.Sprintf(`{"workflowId":%q,"compute":{"vcpu":1,"ramGb":4}}`, w)))
	}
	for i, id := range list {
		if mixed[i%len(mixed)].ends != "cancelled" {
			continue
		}
		await(s.t, "a run to be cancelled", func() bool {
			return s.want(200, "GET", "/api/runs/"+id, "", "Cookie", cookie)["status"] == "running"
		})
		s.want(200, "POST", "/api/runs/"+id+"/cancel", "", "Cookie", cookie)
	}
	var billed []string
	for i, id := range list {
		r := s.endedFor(cookie, id)
		of := mixed[i%len(mixed)]
		if want := cmp.Or(of.ends, "completed"); r["status"] != want {
			s.t.Errorf("run %d is %v, want %s: %v", i, r["status"], want, r["errorMessage"])
		}
		if of.ends != "cancelled" && !of.cached {
			billed = append(billed, id)
		}
		ends = append(ends, fmt.Sprint(i, " ", r["status"], " ", r["errorCode"], " ", r["errorMessage"], " ", states(r), " ", s.made(cookie, id)))
	}
	s.billedOnce(cookie, billed)
	return ends
}

// states are how the nodes of a run ended.
func states(run map[string]any) string {
	var list []string
	for _, raw := range run["nodes"].([]any) {
		n := raw.(map[string]any)
		list = append(list, fmt.Sprint(n["id"], ":", n["status"]))
	}
	return strings.Join(list, " ")
}
