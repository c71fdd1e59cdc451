package httpapi_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
)

func TestWhereOutputsMayBeCopied(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, eve := h.signUp("Ada"), h.signUp("Eve")
		as := bearer(ada.token)
		prefix := "copies-" + rand.Text() + "/"
		bucket, connection := h.bucket(as, prefix)
		w := h.workflow(ada, `{"nodes":[{"id":"a","command":"true"}]}`)
		body := func(to string) string { return `{"workflowId":"` + w + `","outputTo":` + to + `}` }
		to := func(url, connection string) string {
			return body(fmt.Sprintf(`{"url":%q,"connection":%q}`, url, connection))
		}
		below := "s3://" + bucket + "/" + prefix
		id := h.start(ada, to(below+"{runId}/", connection))
		h.await(ada, id)
		r := h.call("GET", "/api/runs/"+id, "", as).want(200)
		if r.text("outputTo", "url") != below+id+"/" || r.text("outputTo", "connection") != connection || r.text("outputTo", "state") != "copying" {
			t.Error(r.body)
		}
		if export := h.call("GET", "/api/account/data", "", as).want(200).body; !strings.Contains(export, below+id+"/") {
			t.Error("the export says nothing of it")
		}
		again := h.call("POST", "/api/runs/"+id+"/retry", "", as).want(202).text("data", "runId")
		if r := h.call("GET", "/api/runs/"+again, "", as).want(200); r.text("outputTo", "url") != below+again+"/" {
			t.Error(r.body)
		}
		closed := h.call("POST", "/api/connections", `{"name":"closed","type":"s3","endpoint":"http://127.0.0.1:1","bucket":"lab","accessKey":"`+theirKey+`","secretKey":"`+theirSecret+`"}`, as).want(201).text("data", "id")
		for name, tt := range map[string]struct {
			body   string
			status int
			code   string
		}{
			"no connection":       {body(`{"url":"` + below + `"}`), 400, "invalid"},
			"an unknown one":      {to(below, "conn_none"), 404, "not_found"},
			"another bucket":      {to("s3://elsewhere/"+prefix, connection), 400, "invalid"},
			"outside of its own":  {to("s3://"+bucket+"/other/", connection), 403, "outside_prefix"},
			"nobody there":        {to("s3://lab/a/", closed), 400, "output_unreachable"},
			"no folder":           {to(below+"a", connection), 400, "invalid"},
			"a path that goes up": {to(below+"../../x/", connection), 400, "invalid"},
			"not a bucket":        {to("https://example.org/", connection), 400, "invalid"},
			"unknown fields":      {body(`{"url":"` + below + `","connection":"` + connection + `","secretKey":"x"}`), 400, "invalid"},
			"no object":           {body(`"` + below + `"`), 400, "invalid"},
		} {
			t.Log(name)
			noneOf(t, name, h.call("POST", "/api/runs", tt.body, as).wantCode(tt.status, tt.code).body, theirKey, theirSecret)
		}
		theirs := h.workflow(eve, `{"nodes":[{"id":"a","command":"true"}]}`)
		h.call("POST", "/api/runs", strings.Replace(to(below, connection), w, theirs, 1), bearer(eve.token)).want(404)
		guest := h.enter(h.shareOf(ada, w, "editor").text("data", "token")).text("data", "runToken")
		h.call("POST", "/api/runs", to(below, connection), bearer(guest)).wantCode(403, "output_to_not_allowed")

		schedules := "/api/workflows/" + w + "/schedules"
		made := h.call("POST", schedules, `{"cron":"0 6 * * *","outputTo":{"url":"`+below+`{runId}/","connection":"`+connection+`"}}`, as).want(201)
		if made.text("data", "outputTo", "url") != below+"{runId}/" {
			t.Error(made.body)
		}
		h.call("POST", schedules, `{"cron":"0 6 * * *","outputTo":{"url":"s3://`+bucket+`/other/","connection":"`+connection+`"}}`, as).wantCode(403, "outside_prefix")
		h.call("DELETE", "/api/connections/"+connection, "", as).wantCode(409, "connection_in_use")
	})
}
