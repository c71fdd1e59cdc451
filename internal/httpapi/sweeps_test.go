package httpapi_test

import (
	"encoding/csv"
	"fmt"
	"strings"
	"testing"
)

const sweepable = `{"parameters":{"q":{"type":"integer","default":1},"mode":{"type":"string","default":"x"}},
	"nodes":[{"id":"a","command":"# dummy: output:score.txt==1+1 $PARAM_q $PARAM_mode","outputs":{"score":{"path":"score.txt"}}}]}`

func TestASweepRunsEveryCombination(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, bob := h.signUp("Ada"), h.signUp("Bob")
		as := bearer(ada.token)
		wf := h.workflow(ada, sweepable)
		body := `{"workflowId":"` + wf + `","vary":{"q":[1,2,3],"mode":["fast","=cmd"]},"name":"How strict","tags":["s"]}`
		started := h.call("POST", "/api/sweeps", body, as, header("Idempotency-Key", "k")).want(202)
		again := h.call("POST", "/api/sweeps", body, as, header("Idempotency-Key", "k")).want(202)
		if again.body != started.body {
			t.Errorf("repeated: %s, then %s", started.body, again.body)
		}
		if got := started.header.Get("RateLimit"); got != `"runs";r=29;t=60` {
			t.Errorf("a sweep of six runs does not count as one: %s", got)
		}
		runIDs := started.at("data", "runIds").([]any)
		if len(runIDs) != 6 {
			t.Fatalf("%s", started.body)
		}
		for _, id := range runIDs {
			h.await(ada, id.(string))
		}
		id := started.text("data", "sweepId")
		table := h.call("GET", "/api/sweeps/"+id+"?outputs=a.score,a.none", "", as).want(200)
		if fmt.Sprint(table.at("data", "varied")) != "[mode q]" || table.text("data", "name") != "How strict" || fmt.Sprint(table.at("data", "ports")) != "[a.score]" {
			t.Errorf("%s", table.body)
		}
		names := ""
		for i, row := range table.at("data", "runs").([]any) {
			r := row.(map[string]any)
			run := r["run"].(map[string]any)
			names += run["name"].(string) + "; "
			out := r["outputs"].([]any)
			if run["number"] != float64(i+1) || run["sweepId"] != id || len(out) != 1 || out[0].(map[string]any)["value"] != "=1+1" || fmt.Sprint(run["tags"]) != "[s]" {
				t.Errorf("%v", r)
			}
		}
		if want := "mode=fast, q=1; mode=fast, q=2; mode=fast, q=3; mode==cmd, q=1; mode==cmd, q=2; mode==cmd, q=3; "; names != want {
			t.Errorf("%s", names)
		}
		text := h.call("GET", "/api/sweeps/"+id+"/table.csv?outputs=a.score", "", as).want(200)
		rows, err := csv.NewReader(strings.NewReader(text.body)).ReadAll()
		if err != nil || len(rows) != 7 || strings.Join(rows[0], ",") != "run,number,name,status,mode,q,seconds,credits,created,a.score" {
			t.Fatalf("%s %v", text.body, err)
		}
		if last := rows[6]; last[4] != "'=cmd" || last[5] != "3" || last[9] != "'=1+1" || last[3] != "completed" {
			t.Errorf("%q", last) // no cell is a formula
		}
		if !strings.HasPrefix(text.header.Get("Content-Disposition"), "attachment") {
			t.Errorf("%v", text.header)
		}
		if list := h.call("GET", "/api/sweeps", "", as).want(200).at("data").([]any); len(list) != 1 || list[0].(map[string]any)["runCount"] != 6.0 {
			t.Errorf("%v", list)
		}
		for _, path := range []string{"/api/sweeps/" + id, "/api/sweeps/" + id + "/table.csv"} {
			h.call("GET", path, "", bearer(bob.token)).want(404)
		}
		h.call("GET", "/api/sweeps/"+id+"?outputs=a,b,c,d,e,f", "", as).want(400)
		h.call("GET", "/api/sweeps/"+id+"?outputs=%00", "", as).want(400)
	})
}

// A sweep is accepted as a whole or not at all.
func TestASweepIsAllOrNothing(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		wf := h.workflow(ada, sweepable)
		if err := h.db.Hold(t.Context(), ada.team, "something else", 490_000_000, h.clock()); err != nil { // leaves 10 credits
			t.Fatal(err)
		}
		hundred := strings.TrimSuffix(strings.Repeat("1,", 100), ",")
		for name, tt := range map[string]struct {
			body string
			want int
		}{
			"nothing varies":       {`"vary":{}`, 400},
			"no values":            {`"vary":{"q":[]}`, 400},
			"an unknown parameter": {`"vary":{"speed":[1]}`, 400},
			"a value that is none": {`"vary":{"q":[1,2,"three"]}`, 400},
			"too many":             {`"vary":{"q":[` + hundred + `],"mode":["a","b"]}`, 400},
			"both common and not":  {`"parameters":{"q":1},"vary":{"q":[1]}`, 400},
			"too little money":     {`"compute":{"vcpu":4,"ramGb":16},"vary":{"q":[` + hundred + `],"mode":["a"]}`, 402},
		} {
			got := h.call("POST", "/api/sweeps", `{"workflowId":"`+wf+`",`+tt.body+`}`, as)
			if got.status != tt.want {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
		}
		if list := h.call("GET", "/api/runs", "", as).want(200).at("data").([]any); len(list) != 0 {
			t.Errorf("%d runs were started", len(list))
		}
		if list := h.call("GET", "/api/sweeps", "", as).want(200).at("data").([]any); len(list) != 0 {
			t.Errorf("%v", list)
		}
		if held := h.call("GET", "/api/billing/credits", "", as).want(200).at("heldCredits"); held != 490.0 {
			t.Errorf("%v credits are held", held)
		}
	})
}

func TestAnyTwoRunsAreCompared(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, bob := h.signUp("Ada"), h.signUp("Bob")
		as := bearer(ada.token)
		first := h.finished(ada)
		wf := h.workflow(ada, `{"parameters":{"p":{"type":"integer","default":1}},"nodes":[
			{"id":"a","command":"# dummy: output:a.txt=one output:b.txt=two $PARAM_p","env":{"X":"1"},"outputs":{"o":{"path":"a.txt"},"p":{"path":"b.txt"}}},
			{"id":"b","command":"# dummy: print=x"}]}`)
		second := h.start(ada, `{"workflowId":"`+wf+`","parameters":{"p":7}}`)
		h.await(ada, second)
		c := h.call("GET", "/api/runs/compare?a="+first+"&b="+second, "", as).want(200)
		if got := fmt.Sprint(c.at("data", "definitionChanges")); got != "[changed a: command, env, outputs added b changed parameters]" || c.at("data", "sameDefinition") != false {
			t.Errorf("%s", got)
		}
		p := c.at("data", "parameters").([]any)[0].(map[string]any)
		if _, there := p["a"]; there || p["b"] != 7.0 || p["same"] != false {
			t.Errorf("%v", p)
		}
		nodes := c.at("data", "nodes").([]any)
		if len(nodes) != 2 || nodes[1].(map[string]any)["a"] != nil || nodes[1].(map[string]any)["b"] == nil {
			t.Errorf("%v", nodes)
		}
		if got := fmt.Sprint(c.at("data", "outputCounts")); got != "map[different:0 onlyA:0 onlyB:1 same:1]" {
			t.Errorf("%s", got)
		}
		if o := c.at("data", "outputs").([]any); len(o) != 2 || o[0].(map[string]any)["same"] != false || o[1].(map[string]any)["same"] != true {
			t.Errorf("%v", o)
		}
		same := h.call("GET", "/api/runs/compare?a="+second+"&b="+second, "", as).want(200)
		if same.at("data", "sameDefinition") != true || fmt.Sprint(same.at("data", "outputCounts")) != "map[different:0 onlyA:0 onlyB:0 same:2]" {
			t.Errorf("%s", same.body)
		}
		h.call("GET", "/api/runs/compare?a="+first, "", as).want(400)
		h.call("GET", "/api/runs/compare?a="+first+"&b=%00", "", as).want(404)
		h.call("GET", "/api/runs/compare?a="+first+"&b="+second, "", bearer(bob.token)).want(404)
		h.call("POST", "/api/runs/compare", "{}", as).want(405)
	})
}
