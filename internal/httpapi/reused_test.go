package httpapi_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A run that has ended says how many steps and items it took from earlier ones.
func TestARunSaysWhatItReused(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		definition := func(items string) string {
			return `{"nodes":[
				{"id":"one","cache":true,"command":"# dummy: output:o=one","outputs":{"o":{"path":"o"}}},
				{"id":"each","cache":true,"command":"# dummy: output:o=each","scatter":{"over":"` + items + `"},"outputs":{"o":{"path":"o"}}},
				{"id":"new","command":"# dummy: print=new"}]}`
		}
		w := h.workflow(ada, definition("['x','y']"))
		run := func() any {
			id := h.start(ada, `{"workflowId":"`+w+`"}`)
			h.await(ada, id)
			return h.call("GET", "/api/runs/"+id, "", bearer(ada.token)).want(200).at("reused")
		}
		if got := run(); got != nil {
			t.Errorf("the first run reused %v", got)
		}
		if diff := cmp.Diff(any(map[string]any{"steps": 2.0, "items": 2.0}), run()); diff != "" {
			t.Error(diff)
		}
		h.call("PUT", "/api/workflows/"+w, `{"definition":`+definition("['x','y','z']")+`}`, bearer(ada.token)).want(200)
		if diff := cmp.Diff(any(map[string]any{"steps": 1.0, "items": 2.0}), run()); diff != "" {
			t.Error(diff)
		}
	})
}
