package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/llm/llmtest"
)

func TestTheModelExplainsAFailure(t *testing.T) {
	t.Parallel()
	says := `{"text":"pandas is missing.","edit":{"field":"environment.pip","value":["pandas"]}}`
	model := llmtest.New(t, func(llmtest.Request) llmtest.Answer { return llmtest.Answer{Text: says} })
	h := newHarness(t, withModel(model))
	ada := h.signUp("Ada")
	as := bearer(ada.token)
	definition := `{"nodes":[{"id":"boom","command":"# dummy: exit=3","env":{"KEY":"hidden-value"}},{"id":"other","command":"echo not-shown"}],"edges":[{"id":"e","source":"boom","target":"other"}]}`
	id := h.start(ada, `{"workflowId":"`+h.workflow(ada, definition)+`"}`)
	h.await(ada, id)
	explain := func() reply { return h.call("POST", "/api/runs/"+id+"/explain", "", as) }

	got := explain().want(200)
	edit, _ := got.at("data", "edit").(map[string]any)
	if got.text("data", "text") != "pandas is missing." || edit["node"] != "boom" || edit["field"] != "environment.pip" {
		t.Errorf("it answers %s", got.body)
	}
	shown := string(model.Asked()[0].Raw)
	if !strings.Contains(shown, "# dummy: exit=3") || strings.Contains(shown, "hidden-value") || strings.Contains(shown, "not-shown") {
		t.Errorf("the model is shown %s", shown)
	}
	if requests, _, _ := h.chatted(ada); requests != 1 {
		t.Errorf("%v requests are counted", requests)
	}

	// What a model says is text of a stranger, and its edit is only believed where the
	// definition stays as right as it was.
	for name, tt := range map[string]struct {
		says, text, edit string
	}{
		"in a fence":           {"```json\n" + `{"text":"a","edit":null}` + "\n```", "a", "null"},
		"plain text":           {"The step failed\u001b[2J because.", "The step failed[2J because.", "null"},
		"another field":        {`{"text":"a","edit":{"field":"secrets","value":["TOKEN"]}}`, "a", "null"},
		"a wrong value":        {`{"text":"a","edit":{"field":"resources.ramGb","value":"much"}}`, "a", "null"},
		"an option as package": {`{"text":"a","edit":{"field":"environment.pip","value":["--index-url=x"]}}`, "a", "null"},
		"a command":            {`{"text":"a","edit":{"field":"command","value":"true"}}`, "a", `{"node":"boom","field":"command","value":"true"}`},
		"nothing of a value":   {`{"text":"a","edit":{"field":"command","value":null}}`, "a", "null"},
	} {
		says = tt.says
		got := explain().want(200)
		edit, err := json.Marshal(got.at("data", "edit"))
		if err != nil {
			t.Fatal(err)
		}
		var want, is any
		_ = json.Unmarshal([]byte(tt.edit), &want)
		_ = json.Unmarshal(edit, &is)
		wanted, _ := json.Marshal(want)
		if again, _ := json.Marshal(is); got.text("data", "text") != tt.text || string(again) != string(wanted) {
			t.Errorf("%s: it answers %s", name, got.body)
		}
	}
	says = "  "
	if got := explain().want(503); got.text("code") != "model_unavailable" {
		t.Errorf("without a word of the model: %s", got.body)
	}

	fine := h.start(ada, `{"workflowId":"`+h.workflow(ada, `{"nodes":[{"id":"a","command":"true"}]}`)+`"}`)
	h.await(ada, fine)
	h.call("POST", "/api/runs/"+fine+"/explain", "", as).want(409)
}
