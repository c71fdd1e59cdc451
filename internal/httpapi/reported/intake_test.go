package reported

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs/reported"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// read reads events as a request with them is read.
func read(t *testing.T, events ...string) (reported.Report, []fault.Detail) {
	t.Helper()
	in, err := kernel.Decode[api.ReportedEvents](&kernel.Exchange{Body: []byte(`{"events":[` + strings.Join(events, ",") + `]}`)})
	if err != nil {
		t.Fatal(events, err)
	}
	return reportOf(in.Events, noon)
}

// What is wrong with an event is said with its place, at the limits and one beyond.
func TestAnEventIsRefusedWithItsPlace(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("é", maxNameChars)
	task := func(fields string) string {
		return `{"seq":1,"task":{"node":"a","status":"running","task":0` + fields + `}}`
	}
	graph := func(nodes, edges int) string {
		return `{"seq":1,"graph":{"nodes":[` + strings.TrimSuffix(strings.Repeat(`{"name":"a"},`, nodes), ",") + `],"edges":[` + strings.TrimSuffix(strings.Repeat(`{"from":"a","to":"b"},`, edges), ",") + `]}}`
	}
	for event, want := range map[string]string{
		`{"seq":1}`:                    "",
		`{"seq":9007199254740991}`:     "",
		`{"seq":9007199254740992}`:     "events[0].seq must be a whole number from 1 on",
		`{"seq":0}`:                    "events[0].seq must be a whole number from 1 on",
		`{"seq":-1,"log":{"text":""}}`: "events[0].seq must be a whole number from 1 on",
		`{"seq":1,"log":{"text":"x"},"progress":{"done":1,"total":2}}`:                   "events[0] says more than one thing",
		`{"seq":1,"progress":{"done":0,"total":0}}`:                                      "",
		`{"seq":1,"progress":{"done":-1,"total":2}}`:                                     "events[0].progress cannot be negative",
		`{"seq":1,"progress":{"done":1,"total":-2}}`:                                     "events[0].progress cannot be negative",
		`{"seq":1,"finish":{"status":"failed"}}`:                                         "",
		`{"seq":1,"finish":{"status":"running"}}`:                                        "events[0].finish.status must be completed, failed or cancelled",
		`{"seq":1,"finish":{"status":""}}`:                                               "events[0].finish.status must be completed, failed or cancelled",
		graph(maxGraphNodes, maxGraphEdges):                                              "",
		graph(maxGraphNodes+1, 0):                                                        "events[0].graph takes at most 2000 steps and 10000 lines between them",
		graph(0, maxGraphEdges+1):                                                        "events[0].graph takes at most 2000 steps and 10000 lines between them",
		`{"seq":1,"graph":{"nodes":[{"name":"` + name + `"}],"edges":[]}}`:               "",
		`{"seq":1,"graph":{"nodes":[{"name":"a"},{"name":"` + name + `x"}],"edges":[]}}`: "events[0].graph.nodes[1].name needs 1 to 500 characters",
		`{"seq":1,"graph":{"nodes":[{"name":""}],"edges":[]}}`:                           "events[0].graph.nodes[0].name needs 1 to 500 characters",
		`{"seq":1,"graph":{"nodes":[],"edges":[{"from":"a","to":""}]}}`:                  "events[0].graph.edges[0] needs names of 1 to 500 characters",
		`{"seq":1,"graph":{"nodes":[{"name":"a","expected":2147483647}],"edges":[]}}`:    "",
		`{"seq":1,"graph":{"nodes":[{"name":"a","expected":2147483648}],"edges":[]}}`:    "events[0].graph.nodes[0].expected must be a whole number from 0 to 2147483647",
		`{"seq":1,"graph":{"nodes":[{"name":"a","expected":-1}],"edges":[]}}`:            "events[0].graph.nodes[0].expected must be a whole number from 0 to 2147483647",
		task(``):                        "",
		task(`,"attempt":1`):            "",
		task(`,"attempt":0`):            "events[0].task.attempt must be a whole number from 1 to 2147483647",
		task(`,"attempt":2147483648`):   "events[0].task.attempt must be a whole number from 1 to 2147483647",
		task(`,"name":"` + name + `"`):  "",
		task(`,"name":"` + name + `x"`): "events[0].task.name needs at most 500 characters",
		task(`,"memoryBytes":0,"cpus":0.5,"cpuSeconds":9007199254740991,"exitCode":-2147483648`): "",
		task(`,"writtenBytes":-1,"memoryBytes":-1,"diskBytes":-1`):                               "events[0].task.diskBytes cannot be negative; events[0].task.memoryBytes cannot be negative; events[0].task.writtenBytes cannot be negative",
		task(`,"cpus":-0.1,"cpuSeconds":1e300,"cpuPercent":-1`):                                  "events[0].task.cpuPercent is out of range; events[0].task.cpuSeconds is out of range; events[0].task.cpus is out of range",
		task(`,"exitCode":2147483648`):                                                           "events[0].task.exitCode is out of range",
		task(`,"exitCode":-2147483649`):                                                          "events[0].task.exitCode is out of range",
		`{"seq":1,"task":{"node":"a","status":"running"}}`:                                       "events[0].task.task must be a whole number from 0 to 2147483647",
		`{"seq":1,"task":{"node":"a","status":"running","task":2147483648}}`:                     "events[0].task.task must be a whole number from 0 to 2147483647",
		`{"seq":1,"task":{"node":"","status":"paused","task":1}}`:                                "events[0].task.node needs 1 to 500 characters; events[0].task.status must be queued, running, succeeded, failed, cached or cancelled",
	} {
		for range 5 { // the same words in the same order
			_, wrong := read(t, event)
			var words []string
			for _, d := range wrong {
				words = append(words, kernel.Sentence(d))
			}
			if got := strings.Join(words, "; "); got != want {
				t.Errorf("%.100s: %q, want %q", event, got, want)
			}
		}
	}
}

func TestABatchHasOneToAThousandEvents(t *testing.T) {
	t.Parallel()
	for n, ok := range map[int]bool{0: false, 1: true, maxEvents: true, maxEvents + 1: false} {
		events := make([]string, n)
		for i := range events {
			events[i] = fmt.Sprintf(`{"seq":%d}`, n-i) // in any order
		}
		r, wrong := read(t, events...)
		if (len(wrong) == 0) != ok || ok && r.Seq != int64(n) || !ok && kernel.Sentence(wrong[0]) != "events needs 1 to 1000 events" {
			t.Errorf("%d events: seq %d, %v", n, r.Seq, wrong)
		}
	}
}

// Attempts of a task have its number in common, and the time of their event where they
// come without one.
func TestATaskIsWhatItsEventSays(t *testing.T) {
	t.Parallel()
	r, wrong := read(t,
		`{"seq":3,"task":{"node":"a","status":"running","task":7}}`,
		`{"seq":4,"at":"2026-08-01T11:00:00Z","task":{"node":"a","status":"failed","task":7,"attempt":2,"exitCode":0,"willRetry":true,"cpuSeconds":1e12,"peakMemoryBytes":5}}`,
		`{"seq":5,"at":"2026-08-01T11:00:00Z","task":{"node":"a","status":"succeeded","task":8,"finishedAt":"2026-08-01T10:00:00Z","startedAt":"2026-08-01T09:00:00Z"}}`,
		`{"seq":6,"task":{"node":"a","status":"queued","task":9}}`)
	if len(wrong) > 0 || len(r.Tasks) != 4 || r.Seq != 6 {
		t.Fatal(wrong, r)
	}
	var got []string
	for _, k := range r.Tasks {
		got = append(got, fmt.Sprint(k.ID, " ", k.Chain, " ", k.Version, " ", k.StartedAt.Format("15"), "-", k.EndedAt.Format("15"), " ", k.WillRetry, k.ExitCode != nil, k.Peak, k.CPU))
	}
	want := []string{
		"7.1 7 3 12-00 false false 0 0s", "7.2 7 4 00-11 true true 5 277777h46m40s", "8.1 8 5 09-10 false false 0 0s", "9.1 9 6 00-00 false false 0 0s",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}
