package httpapi_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// nextflowFrames are the frames of a run of two processes with an operator between
// them: a task that is tried again, one that was cached, and the end.
var nextflowFrames = []struct{ verb, body string }{
	{"begin", `{"workflow":{"id":"x","runName":"clever_euler","commandLine":"nextflow run main.nf","params":{"reads":"*.fq"},"workDir":"/scratch","nextflow":{"version":"24.10.0","build":5928},"start":"2026-11-16T06:00:00Z","stats":null,"future":[{}]},
		"processNames":["ALIGN:STAR","COUNT"],"dag":{"vertices":[{"id":0,"type":"ORIGIN","label":"Channel.of"},{"id":1,"type":"PROCESS","label":"ALIGN:STAR"},{"id":2,"type":"OPERATOR","label":"collect"},{"id":3,"type":"OPERATOR","label":"map"},{"id":4,"type":"PROCESS","label":"COUNT"}],
		"edges":[{"source":0,"target":1},{"source":1,"target":2},{"source":2,"target":3},{"source":3,"target":4}]},"instant":1794000000000}`},
	{"progress", `{"tasks":[{"taskId":1,"status":"SUBMITTED","hash":"ab/12","process":"ALIGN:STAR","name":"ALIGN:STAR (a)","tag":"a","attempt":1,"submit":"2026-11-16T06:00:01Z","script":"STAR a","exit":2147483647},{"taskId":2,"status":"CACHED","process":"ALIGN:STAR","name":"ALIGN:STAR (b)","attempt":1,"exit":0,"script":"STAR b"}],"progress":{"processes":[{"index":0,"name":"ALIGN:STAR","terminated":false},{"index":1,"name":"COUNT","terminated":false}]},"instant":1794000001000}`},
	{"progress", `{"tasks":[{"taskId":1,"status":"FAILED","process":"ALIGN:STAR","name":"ALIGN:STAR (a)","attempt":1,"exit":137,"errorAction":"RETRY","submit":"2026-11-16T06:00:01Z","start":"2026-11-16T06:00:02Z","complete":"2026-11-16T06:00:05Z","realtime":3000,"pcpu":150.5,"peakRss":1048576,"memory":2097152,"cpus":2,"workdir":"/scratch/ab/12","script":"STAR a"}],"instant":1794000002000}`},
	{"progress", `{"tasks":[{"taskId":3,"status":"RUNNING","process":"ALIGN:STAR","name":"ALIGN:STAR (a)","attempt":2,"submit":"2026-11-16T06:00:06Z","start":"2026-11-16T06:00:07Z","script":"STAR a"}],"instant":1794000003000}`},
	{"heartbeat", `{"progress":{},"instant":1794000063000}`},
	{"progress", `{"tasks":[{"taskId":3,"status":"COMPLETED","process":"ALIGN:STAR","name":"ALIGN:STAR (a)","attempt":2,"exit":0,"submit":"2026-11-16T06:00:06Z","start":"2026-11-16T06:00:07Z","complete":"2026-11-16T06:00:09Z","script":"STAR a"},{"taskId":4,"status":"COMPLETED","process":"COUNT","name":"COUNT","attempt":1,"exit":0,"start":"2026-11-16T06:00:10Z","complete":"2026-11-16T06:00:11Z","script":"count"}],"progress":{"processes":[{"index":0,"name":"ALIGN:STAR","terminated":true},{"index":1,"name":"COUNT","terminated":true}]},"instant":1794000064000}`},
	{"complete", `{"workflow":{"commandLine":"nextflow run main.nf","workDir":"/scratch","params":{"reads":"*.fq"},"nextflow":{"version":"24.10.0"},"success":true,"exitStatus":0,"errorReport":null,"complete":"2026-11-16T06:00:12Z"},"metrics":[{"process":"COUNT","mem":{"mean":5,"min":1,"q1":2,"q2":3,"q3":4,"max":9,"minLabel":"COUNT"},"cpu":null}],"instant":1794000065000}`},
}

// basic is how Nextflow sends a token.
func basic(token string) change {
	return header("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("@token:"+token)))
}

// picture is all that people see of a run at the end, but when and which it is.
func (h *harness) picture(run string, reads change) string {
	h.t.Helper()
	got := h.call("GET", "/api/runs/"+run, "", reads).want(200)
	var out []string
	for _, field := range []string{"status", "errorMessage", "progressPercent", "definition", "nodes", "parameters", "creditsUsed", "engine"} {
		text, _ := json.Marshal(got.at(field))
		out = append(out, string(text))
	}
	for _, node := range got.at("nodes").([]any) {
		list := h.call("GET", "/api/runs/"+run+"/nodes/"+node.(map[string]any)["id"].(string)+"/shards", "", reads).want(200)
		text, _ := json.Marshal(list.at("data"))
		out = append(out, string(text))
	}
	about := h.call("GET", "/api/reported-runs/"+run, "", reads).want(200)
	for _, field := range []string{"metrics", "details", "engineVersion", "tasks"} {
		text, _ := json.Marshal(about.at("data", field))
		out = append(out, string(text))
	}
	return strings.Join(out, "\n")
}

func TestNextflowFramesInAnyOrderGiveTheSamePicture(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		token := h.call("POST", "/auth/api-tokens", `{"name":"nf","scopes":["report"]}`, cookie(ada.secret)).want(201).text("data", "token")
		n := 0
		replay := func(order []int, cut int) string {
			n++
			create := fmt.Sprintf(`{"sessionId":"s%d","runName":"clever_euler","projectName":"lab/rna","workflowId":null,"instant":1}`, n)
			run := h.call("POST", "/api/nextflow/trace/create", create, basic(token)).want(200).text("workflowId")
			on := h
			for i, which := range order {
				if i == cut { // our server starts anew, and Nextflow's create may be sent again
					on = houseOn(t, h.url)
					on.call("POST", "/api/nextflow/trace/create?workspaceId=12345", create, basic(token)).want(200)
				}
				f := nextflowFrames[which]
				on.call("PUT", "/api/nextflow/trace/"+run+"/"+f.verb, f.body, basic(token)).want(200)
			}
			return on.picture(run, bearer(ada.token))
		}
		inOrder := []int{0, 1, 2, 3, 4, 5, 6}
		want := replay(inOrder, -1)
		for _, words := range []string{`"completed"`, `"24.10.0"`, `"median":3`, `"reads":"*.fq"`, `"source":"n_ALIGN_STAR_`} {
			if !strings.Contains(want, words) {
				t.Errorf("no %s in %s", words, want)
			}
		}
		if strings.Count(want, `"attempt":2`) != 2 { // of the step, and of its one task
			t.Error(want)
		}
		if diff := cmp.Diff(want, replay([]int{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 0, 3}, -1)); diff != "" {
			t.Error("doubled:", diff)
		}
		if diff := cmp.Diff(want, replay(inOrder, 3)); diff != "" {
			t.Error("after a restart:", diff)
		}
		for seed := range uint64(4) {
			mixed := slices.Clone(inOrder)
			rand.New(rand.NewPCG(seed, 7)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
			if diff := cmp.Diff(want, replay(mixed, -1)); diff != "" {
				t.Errorf("as %v: %s", mixed, diff)
			}
		}
	})
}

// Whatever Nextflow sends is taken; only a bad token ends somebody's pipeline.
func TestNextflowIsNeverRefusedButForItsToken(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	token := h.call("POST", "/auth/api-tokens", `{"name":"nf","scopes":["report"]}`, cookie(ada.secret)).want(201).text("data", "token")
	run := h.call("POST", "/api/nextflow/trace/create", `{}`, basic(token)).want(200).text("workflowId")
	for _, body := range []string{
		`{`, `[]`, `null`, `"x"`, `{"tasks":{}}`, `{"tasks":[1,null,{"taskId":"x"},{"taskId":-1,"status":"NEW"},{"taskId":1e30,"status":"NEW"},{"taskId":7,"status":"ODD"}]}`,
		`{"tasks":[{"taskId":"8","status":"COMPLETED","process":"\u0000","submit":-5,"exit":"abc","pcpu":"NaN","memory":"4 GB"}],"progress":7,"instant":"soon"}`,
		`{"workflow":[],"processNames":{},"dag":[]}`, `{"workflow":{"params":"x","nextflow":1,"start":99999999999999999999}}`,
	} {
		for _, verb := range []string{"begin", "progress", "heartbeat"} {
			h.call("PUT", "/api/nextflow/trace/"+run+"/"+verb, body, basic(token)).want(200)
		}
	}
	h.call("PUT", "/api/nextflow/trace/run_nobodys/progress", `{}`, basic(token)).want(200)
	h.call("PUT", "/api/nextflow/trace/"+run+"/complete", `{"workflow":{"success":false,"errorReport":"Process COUNT terminated"}}`, basic(token)).want(200)
	if got := h.call("GET", "/api/runs/"+run, "", bearer(ada.token)).want(200); got.text("status") != "failed" || got.text("errorMessage") != "Process COUNT terminated" {
		t.Error(got.body)
	}
	h.call("PUT", "/api/nextflow/trace/"+run+"/progress", `{}`, basic(token)).want(200)
	h.call("POST", "/api/nextflow/trace/create", `{}`, basic("oat_none")).want(401)
	h.call("POST", "/api/nextflow/trace/create?workspaceId=team_other", `{}`, basic(token)).want(403)
	h.call("GET", "/api/runs", "", basic(token)).want(401)
	h.call("GET", "/api/nextflow/user-info", "", basic(token)).want(200)
}

func TestAnotherTeamsFramesAreDropped(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada, eve := h.signUp("Ada"), h.signUp("Eve")
	run := h.call("POST", "/api/nextflow/trace/create", `{"sessionId":"s"}`, bearer(ada.token)).want(200).text("workflowId")
	h.call("PUT", "/api/nextflow/trace/"+run+"/progress", nextflowFrames[1].body, bearer(eve.token)).want(200)
	h.call("PUT", "/api/nextflow/trace/"+run+"/complete", nextflowFrames[6].body, bearer(eve.token)).want(200)
	if got := h.call("GET", "/api/runs/"+run, "", bearer(ada.token)).want(200); got.text("status") != "running" || len(got.at("nodes").([]any)) > 0 {
		t.Error(got.body)
	}
}
