package httpapi_test

import (
	"slices"
	"strings"
	"testing"
)

func TestNullIsAsGoodAsNothing(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	id := h.call("POST", "/api/workflows", `{"name":"a","description":null}`, bearer(ada.token)).want(201).text("data", "id")
	w := h.call("PUT", "/api/workflows/"+id, `{"name":null,"description":"b"}`, bearer(ada.token)).want(200)
	if w.text("data", "name") != "a" || w.text("data", "description") != "b" {
		t.Errorf("%s", w.body)
	}
	h.call("PUT", "/api/workflows/"+id, `{"definition":{"nodes":[{"id":"a","command":"# dummy: print=a"}]}}`, bearer(ada.token)).want(200)
	run := h.call("POST", "/api/runs", `{"workflowId":"`+id+`","compute":null,"resourceProfile":null,"parameters":null,"inputs":null}`, bearer(ada.token)).want(202).text("data", "runId")
	h.await(ada, run)
	h.call("POST", "/api/runs/"+run+"/retry", `{"parameters":null,"compute":null}`, bearer(ada.token)).want(202)
	h.call("POST", "/api/billing/estimate", `{"compute":null,"resourceProfile":null,"workflowId":null}`, bearer(ada.token)).want(200)
	h.call("POST", "/api/collab/invites", `{"workflowId":"`+id+`","role":"viewer","expiresInHours":null,"maxUses":null,"maxCredits":null}`, bearer(ada.token)).want(201)
	h.call("POST", "/auth/api-tokens", `{"name":"t","role":null,"expiresInDays":null}`, bearer(ada.token)).want(201)
	h.call("POST", "/auth/sign-in", `{"email":"`+ada.email+`","password":"correct horse","code":null}`).want(200)
	h.call("POST", "/auth/sign-up", `{"email":"n@example.org","password":"correct horse","name":"N","invitation":null}`).want(201)

	for path, body := range map[string]string{
		"/auth/verify":            ` null `,
		"/api/workflows":          `{"name":null}`,
		"/api/workflows/validate": `{}`,
		"/api/runs":               `{"workflowId":null}`,
		"/api/billing/topup":      `{"packageIndex":null}`,
		"/api/billing/estimate":   `{"compute":{"vcpu":null,"ramGb":8}}`,
		"/api/collab/invites":     `{"workflowId":"` + id + `","role":null}`,
		"/api/files/presign":      `{"filename":"a","contentType":"text/plain","size":null}`,
		"/auth/teams":             `{"name":null}`,
	} {
		if got := h.call("POST", path, body, bearer(ada.token)); got.status != 400 {
			t.Errorf("%s %s: %d %s", path, body, got.status, got.body)
		}
	}
}

func TestAWholeNumberMayBeWrittenWithAFraction(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	for size, want := range map[string]int{
		`{"vcpu":2.0,"ramGb":8}`:     200,
		`{"vcpu":2,"ramGb":0.8e1}`:   200,
		`{"vcpu":2.5,"ramGb":16}`:    400,
		`{"vcpu":1e400,"ramGb":16}`:  400,
		`{"vcpu":1e300,"ramGb":16}`:  400,
		`{"vcpu":"2.0","ramGb":8.0}`: 400,
	} {
		got := h.call("POST", "/api/billing/estimate", `{"compute":`+size+`}`, bearer(ada.token)).want(want)
		if want == 400 && !strings.Contains(got.text("error"), "compute.vcpu must be a whole number in range") {
			t.Errorf("%s: %s", size, got.body)
		}
	}
}

func TestQueriesAreTakenAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	run := h.finished(ada)
	for path, want := range map[string]int{
		"/api/workflows?cursor=":                                  400,
		"/api/runs?cursor=":                                       400,
		"/api/files?cursor=":                                      400,
		"/api/billing/usage?cursor=":                              400,
		"/api/ai/analyses?cursor=":                                400,
		"/api/runs/" + run + "/events?after_seq=9007199254740991": 200,
		"/api/runs/" + run + "/events?after_seq=9007199254740992": 400,
		"/api/runs/" + run + "/logs?offset=9007199254740991":      200,
		"/api/runs/" + run + "/logs?offset=9007199254740992":      400,
		"/api/runs/" + run + "/logs?shard=2147483648":             400,
	} {
		if got := h.call("GET", path, "", bearer(ada.token)); got.status != want {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

// An address of our own is not the name of something that is kept beside it.
func TestAnAddressIsNotTakenForAName(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	for request, allowed := range map[string]string{
		"GET /api/workflows/validate":    "POST",
		"HEAD /api/workflows/validate":   "POST",
		"PUT /api/workflows/validate":    "POST",
		"DELETE /api/workflows/validate": "POST",
		"PATCH /api/workflows/validate":  "POST",
		"POST /checkout/sandbox.css":     "GET, HEAD",
		"POST /api/workflows/wf_1":       "DELETE, GET, HEAD, PUT",
	} {
		method, path, _ := strings.Cut(request, " ")
		got := h.call(method, path, "", bearer(ada.token))
		if got.status != 405 || got.header.Get("Allow") != allowed {
			t.Errorf("%s: %d, Allow: %q", request, got.status, got.header.Get("Allow"))
		}
	}
	h.call("GET", "/api/workflows/validated", "", bearer(ada.token)).want(404)
}

func TestAnIDThatNobodyGaveNamesNothing(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	for path, want := range map[string]int{
		"/auth/api-tokens?id=a%00b":    404,
		"/auth/api-tokens?id=":         400,
		"/auth/api-tokens":             400,
		"/api/collab/invites?id=a%00b": 404,
		"/api/collab/invites":          400,
	} {
		if got := h.call("DELETE", path, "", bearer(ada.token)); got.status != want {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

func TestEverythingThatIsWrongIsSaidWithItsPlace(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	run := h.finished(ada)
	for request, want := range map[string]string{
		`POST /api/files/presign {}`:                                      "contentType filename size",
		`POST /api/files/delete {}`:                                       "key source",
		`POST /api/billing/estimate {"compute":{"vcpu":"a","ramGb":1.5}}`: "compute.ramGb compute.vcpu",
		`POST /api/runs/` + run + `/retry {"definition":"newer"}`:         "definition",
		`POST /api/runs/` + run + `/retry {"only":[]}`:                    "only",
		`GET /api/runs/` + run + `/outputs?all=perhaps`:                   "all",
		`GET /api/dashboard/usage?days=365`:                               "days",
		`PUT /api/notifications {"ids":["a\u0000"]}`:                      "ids[0]",
	} {
		method, rest, _ := strings.Cut(request, " ")
		path, body, _ := strings.Cut(rest, " ")
		var places []string
		for _, d := range h.call(method, path, body, bearer(ada.token)).want(400).at("details").([]any) {
			places = append(places, d.(map[string]any)["path"].(string))
		}
		slices.Sort(places)
		if got := strings.Join(places, " "); got != want {
			t.Errorf("%s: %q, want %q", request, got, want)
		}
	}
}
