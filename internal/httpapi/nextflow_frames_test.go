package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/runs/reported"
)

// recorded is a frame of Nextflow itself; testdata/nextflow/README.md says how they
// were made.
type recorded struct {
	Verb string
	Body json.RawMessage
	at   int64
}

func recording(t *testing.T, name string) (create string, frames []recorded) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "nextflow", "frames", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for l := range bytes.Lines(text) {
		var f recorded
		var when struct{ Instant int64 }
		if err := json.Unmarshal(l, &f); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(f.Body, &when); err != nil {
			t.Fatal(err)
		}
		f.at = when.Instant
		frames = append(frames, f)
	}
	return string(frames[0].Body), frames[1:]
}

// replayer sends recorded frames as Nextflow does, each time as another run.
type replayer struct {
	*harness
	token  change
	reads  change
	owner  change // by a session, which lasts for a day
	create string
	number int
}

func (r *replayer) begin(create string) string {
	r.t.Helper()
	r.number++
	r.create = strings.Replace(create, `"sessionId":"`, fmt.Sprintf(`"sessionId":"%d-`, r.number), 1)
	return r.call("POST", "/api/nextflow/trace/create", r.create, r.token).want(200).text("workflowId")
}

func (r *replayer) send(run string, frames []recorded) {
	r.t.Helper()
	for _, f := range frames {
		r.call("PUT", "/api/nextflow/trace/"+run+"/"+f.Verb, string(f.Body), r.token).want(200)
	}
}

func (r *replayer) replay(create string, frames []recorded) string {
	r.t.Helper()
	run := r.begin(create)
	r.send(run, frames)
	return r.everything(run)
}

// everything is the picture of a run with each task in full.
func (r *replayer) everything(run string) string {
	r.t.Helper()
	out := []string{r.picture(run, r.reads)}
	for number := range 20 {
		if task := r.call("GET", fmt.Sprintf("/api/reported-runs/%s/tasks/%d", run, number), "", r.reads); task.status == 200 {
			text, _ := json.Marshal(task.at("data"))
			out = append(out, string(text))
		}
	}
	return strings.Join(out, "\n")
}

// steps are the steps of a run in a line each, and what follows what.
func (r *replayer) steps(run string) (lines []string) {
	r.t.Helper()
	got := r.call("GET", "/api/runs/"+run, "", r.reads).want(200)
	names := map[any]string{}
	for _, n := range got.at("nodes").([]any) {
		node := n.(map[string]any)
		shards := node["shards"].(map[string]any)
		names[node["id"]] = node["name"].(string)
		lines = append(lines, fmt.Sprintf("%s %s %v/%v, %v failed", node["name"], node["status"], shards["done"], shards["total"], shards["failed"]))
	}
	var edges []string
	for _, e := range got.at("definition", "edges").([]any) {
		edge := e.(map[string]any)
		edges = append(edges, names[edge["source"]]+" -> "+names[edge["target"]])
	}
	slices.Sort(edges)
	return append(append(lines, edges...), got.text("status"))
}

func newReplayer(h *harness) *replayer {
	ada := h.signUp("Ada")
	token := h.call("POST", "/auth/api-tokens", `{"name":"nf","scopes":["report"]}`, cookie(ada.secret)).want(201).text("data", "token")
	all := h.call("POST", "/auth/api-tokens", `{"name":"all"}`, cookie(ada.secret)).want(201).text("data", "token")
	return &replayer{harness: h, token: basic(token), reads: bearer(all), owner: bearer(ada.token)}
}

// asArrived is the order in which frames come that were each under way for up to
// two seconds.
func asArrived(frames []recorded, seed uint64) []recorded {
	mixed := slices.Clone(frames)
	random := rand.New(rand.NewPCG(seed, 3))
	for i := range mixed {
		mixed[i].at += random.Int64N(2000)
	}
	slices.SortStableFunc(mixed, func(a, b recorded) int { return int(a.at - b.at) })
	return mixed
}

// recordedSteps are the steps, what follows what, and how the run ended.
var recordedSteps = map[string][]string{
	"completed": { // a failure that is ignored is no failure
		"TRIM succeeded 3/3, 0 failed", "QC:CHECK succeeded 3/3, 0 failed", "QC:COUNT succeeded 3/3, 0 failed", "REPORT succeeded 1/1, 0 failed",
		"QC:COUNT -> REPORT", "TRIM -> QC:CHECK", "TRIM -> QC:COUNT", "completed",
	},
	"resumed": {
		"TRIM succeeded 3/3, 0 failed", "QC:CHECK succeeded 3/3, 0 failed", "QC:COUNT succeeded 3/3, 0 failed", "REPORT succeeded 1/1, 0 failed",
		"QC:COUNT -> REPORT", "TRIM -> QC:CHECK", "TRIM -> QC:COUNT", "completed",
	},
	"failed": {
		"TRIM succeeded 3/3, 0 failed", "QC:CHECK succeeded 3/3, 0 failed", "QC:COUNT succeeded 3/3, 0 failed", "REPORT failed 1/1, 1 failed", "SLOW cancelled 0/1, 0 failed",
		"QC:COUNT -> REPORT", "QC:COUNT -> SLOW", "TRIM -> QC:CHECK", "TRIM -> QC:COUNT", "failed",
	},
	"stopped": {
		"TRIM succeeded 3/3, 0 failed", "QC:CHECK succeeded 3/3, 0 failed", "QC:COUNT succeeded 3/3, 0 failed", "REPORT cancelled 0/1, 0 failed", "SLOW cancelled 0/1, 0 failed",
		"QC:COUNT -> REPORT", "QC:COUNT -> SLOW", "TRIM -> QC:CHECK", "TRIM -> QC:COUNT", "cancelled",
	},
}

// However the frames of a real Nextflow arrive, the picture at the end is the same.
func TestRecordedNextflowRunsGiveOnePicture(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		r := newReplayer(h)
		for name, steps := range recordedSteps {
			create, frames := recording(t, name)
			run := r.begin(create)
			r.send(run, frames)
			if diff := cmp.Diff(steps, r.steps(run)); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			want := r.everything(run)
			events := h.call("GET", "/api/runs/"+run+"/events", "", r.reads).want(200).body
			if n := strings.Count(events, `"TRIM has started"`); n > 1 {
				t.Errorf("%s: TRIM has started %d times", name, n)
			}
			var doubled []recorded
			for _, f := range frames {
				doubled = append(doubled, f, f)
			}
			if diff := cmp.Diff(want, r.replay(create, doubled)); diff != "" {
				t.Errorf("%s, doubled: %s", name, diff)
			}
			for seed := range uint64(2) {
				if diff := cmp.Diff(want, r.replay(create, asArrived(frames, seed))); diff != "" {
					t.Errorf("%s, shuffled by seed %d: %s", name, seed, diff)
				}
			}
			half := len(frames) / 2
			run = r.begin(create)
			r.send(run, frames[:half])
			again := &replayer{harness: houseOn(t, h.url), token: r.token, reads: r.reads}
			again.send(run, frames[half-1:]) // the last one was not answered
			if diff := cmp.Diff(want, again.everything(run)); diff != "" {
				t.Errorf("%s, after a restart: %s", name, diff)
			}
		}
	})
}

// A pipeline that is cut off goes on where it was within a day, and is over after.
func TestARecordedRunThatIsCutOff(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	r := newReplayer(h)
	create, frames := recording(t, "completed")
	want := r.replay(create, frames)
	late, never := r.begin(create), r.begin(create)
	r.send(late, frames[:4])
	r.send(never, frames[:4])
	h.pass(23 * time.Hour)
	if got := h.call("GET", "/api/runs/"+late, "", r.reads).want(200); got.text("status") != "running" || got.text("waiting", "reason") != "silent" {
		t.Error(got.body)
	}
	r.send(late, frames[3:])
	if diff := cmp.Diff(want, r.everything(late)); diff != "" {
		t.Error(diff)
	}
	h.pass(time.Hour)
	r.send(never, frames[3:])
	if got := h.call("GET", "/api/runs/"+never, "", r.reads).want(200); got.text("status") != "interrupted" || got.text("errorCode") != "silent" {
		t.Error(got.body)
	}
}

// An export has what was reported, each attempt with its script.
func TestAnExportHoldsReportedTasks(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		r := newReplayer(h)
		create, frames := recording(t, "completed")
		run := r.begin(create)
		r.send(run, frames)
		got := h.call("GET", "/api/account/data", "", r.owner).want(200)
		one := got.at("data", "runs").([]any)[0].(map[string]any)
		tasks, _ := one["tasks"].([]any)
		if text, _ := json.Marshal(one["reported"]); !strings.Contains(string(text), `"node":"QC:COUNT"`) {
			t.Error("metrics of no step:", string(text))
		}
		if len(tasks) != 11 || one["reported"].(map[string]any)["engineVersion"] != "24.10.0" {
			t.Fatal(len(tasks), one["reported"])
		}
		var scripts int
		for _, task := range tasks {
			if strings.Contains(fmt.Sprint(task.(map[string]any)["script"]), "trimmed") {
				scripts++
			}
		}
		if scripts == 0 {
			t.Error("no script in", tasks)
		}
	})
}

// What is wrong with a team's runs is said to Nextflow's user, whose pipeline goes on.
func TestNextflowGoesOnWhereItIsNotWatched(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		r := newReplayer(h)
		create, frames := recording(t, "completed")
		for range reported.MaxPerMinute {
			r.begin(create)
		}
		got := h.call("POST", "/api/nextflow/trace/create", `{"sessionId":"one too many"}`, r.token).want(200)
		if got.text("workflowId") != "not-watched" || !strings.Contains(got.text("message"), "within a minute") {
			t.Error(got.body)
		}
		if team := h.call("GET", "/auth/teams", "", r.owner).want(200).at("data").([]any)[0].(map[string]any)["id"].(string); !strings.HasSuffix(got.text("watchUrl"), "/runs?team="+team) {
			t.Errorf("%s is not the list of the team %s", got.text("watchUrl"), team)
		}
		r.send("not-watched", frames)
		h.pass(time.Minute)
		r.begin(create)
	})
}

// Bodies of a stranger: all that fits twenty megabytes is taken, the rest refused.
func TestLargeNextflowFrames(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		r := newReplayer(h)
		run := r.begin(`{"sessionId":"s"}`)
		large := func(size int) string {
			return `{"tasks":[{"taskId":1,"status":"RUNNING","process":"A","script":"` + strings.Repeat("x", size) + `"}],"workflow":{"params":{"a":"` + "\xff" + `oat_hfn2zuuiosey6auwvzumikob6o"}}}`
		}
		h.call("PUT", "/api/nextflow/trace/"+run+"/begin", large(20<<20-1000), r.token).want(200)
		h.call("PUT", "/api/nextflow/trace/"+run+"/begin", large(20<<20), r.token).want(413)
		if got := h.call("GET", "/api/runs/"+run, "", r.reads).want(200); !strings.Contains(got.body, `***`) || strings.Contains(got.body, "oat_hfn2") {
			t.Error(got.at("parameters"))
		}
	})
}
