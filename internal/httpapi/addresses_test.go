package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// dataHost is a host with a file, a closed one and none.
func dataHost(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/genome.fa":
			w.Header().Set("ETag", `"e1"`)
			http.ServeContent(w, r, "genome.fa", time.Time{}, strings.NewReader("genome"))
		case "/closed":
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, r.Header.Get("Authorization"))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const readsOne = `{"inputs":{"ref":{"type":"file"},"more":{"type":"files","required":false}},"nodes":[{"id":"a","command":"true","inputs":{"in":{"from":"inputs.ref"}}}]}`

func TestARunTakesAddresses(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, eve := h.signUp("Ada"), h.signUp("Eve")
		as, data := bearer(ada.token), dataHost(t)
		w := h.workflow(ada, readsOne)
		body := func(input string) string { return `{"workflowId":"` + w + `","inputs":{"ref":` + input + `}}` }
		for _, input := range []string{`"` + data + `/genome.fa?sig=s"`, `{"url":"` + data + `/genome.fa"}`, `[{"url":"` + data + `/genome.fa"}]`} {
			id := h.start(ada, body(input))
			h.await(ada, id)
			r := h.call("GET", "/api/runs/"+id, "", as).want(200)
			taken, _ := r.at("addresses").([]any)
			if r.text("status") != "completed" || len(taken) != 1 {
				t.Fatalf("%s: %s", input, r.body)
			}
			if one := taken[0].(map[string]any); one["sha256"] == nil || one["size"] != 6.0 || one["connection"] != nil {
				t.Errorf("%s: %v", input, one)
			}
			// A crate may be published: it names the address without what may be a key in it.
			named := h.crate(ada, id)[data+"/genome.fa"]
			if named == nil || named["sha256"] != taken[0].(map[string]any)["sha256"] || strings.Contains(fmt.Sprint(named), "sig=s") {
				t.Errorf("%s in a crate: %v", input, named)
			}
			// The same again: it is looked at anew.
			again := h.call("POST", "/api/runs/"+id+"/retry", "", as).want(202).text("data", "runId")
			h.await(ada, again)
		}
		for name, tt := range map[string]struct {
			input  string
			status int
			code   string
		}{
			"absent":             {`"` + data + `/none"`, 404, "not_found"},
			"closed":             {`"` + data + `/closed?sig=hidden"`, 400, "input_unreachable"},
			"nobody there":       {`"http://127.0.0.1:1/a"`, 400, "input_unreachable"},
			"no scheme of ours":  {`"ftp://example.org/a"`, 404, "not_found"},
			"a folder":           {`"s3://lab/reads/"`, 400, "invalid"},
			"a password":         {`"https://u:p@example.org/a"`, 400, "invalid"},
			"no such connection": {`{"url":"s3://lab/a","connection":"conn_none"}`, 404, "not_found"},
			"unknown fields":     {`{"url":"s3://lab/a","secretKey":"x"}`, 400, "invalid"},
			"not the sha256":     {`{"url":"` + data + `/genome.fa","sha256":"` + strings.Repeat("0", 64) + `"}`, 400, "input_changed"},
			"half a sha256":      {`{"url":"` + data + `/genome.fa","sha256":"00"}`, 400, "invalid"},
		} {
			r := h.call("POST", "/api/runs", body(tt.input), as).wantCode(tt.status, tt.code)
			if strings.Contains(r.body, "hidden") {
				t.Errorf("%s: %s", name, r.body)
			}
			if tt.code == "input_unreachable" && !strings.Contains(r.body, `"path":"inputs.ref"`) {
				t.Errorf("%s: %s", name, r.body)
			}
		}
		twice := `{"workflowId":"` + w + `","inputs":{"ref":{"url":"` + data + `/genome.fa"},"more":[{"url":"` + data + `/genome.fa","sha256":"` + strings.Repeat("0", 64) + `"}]}}`
		h.call("POST", "/api/runs", twice, as).want(400)

		made := h.call("POST", "/api/connections", `{"name":"lab","type":"s3","endpoint":"`+data+`","bucket":"lab","prefix":"reads","accessKey":"`+theirKey+`","secretKey":"`+theirSecret+`"}`, as).want(201).text("data", "id")
		h.call("POST", "/api/runs", body(`{"url":"s3://lab/other/a","connection":"`+made+`"}`), as).wantCode(403, "outside_prefix")
		noneOf(t, "a refusal", h.call("POST", "/api/runs", body(`{"url":"s3://lab/reads/a","connection":"`+made+`"}`), as).body, theirKey, theirSecret)
		theirs := h.workflow(eve, readsOne)
		h.call("POST", "/api/runs", `{"workflowId":"`+theirs+`","inputs":{"ref":{"url":"s3://lab/reads/a","connection":"`+made+`"}}}`, bearer(eve.token)).want(404)

		guest := h.enter(h.shareOf(ada, w, "editor").text("data", "token")).text("data", "runToken")
		h.call("POST", "/api/runs", body(`"`+data+`/genome.fa"`), bearer(guest)).wantCode(403, "addresses_not_allowed")
	})
}

// What a team has read is of no use to another, nor is it for another endpoint that
// claims the same address and etag.
func TestHashesAreLearntPerTeamAndEndpoint(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, eve := h.signUp("Ada"), h.signUp("Eve")
		data := dataHost(t)
		w := h.workflow(ada, readsOne)
		id := h.start(ada, `{"workflowId":"`+w+`","inputs":{"ref":"`+data+`/genome.fa"}}`)
		h.await(ada, id)
		for name, tt := range map[string]struct {
			team     ids.Team
			endpoint string
			etag     string
			size     int64
			known    bool
		}{
			"the same":         {ada.team, data, "e1", 6, true},
			"another team":     {eve.team, data, "e1", 6, false},
			"another endpoint": {ada.team, "https://evil.example.org", "e1", 6, false},
			"another etag":     {ada.team, data, "e2", 6, false},
			"another size":     {ada.team, data, "e1", 7, false},
			"no etag":          {ada.team, data, "", 6, false},
		} {
			list := []addresses.Object{{Address: addresses.Address{URL: data + "/genome.fa"}, Endpoint: tt.endpoint, ETag: tt.etag, Size: tt.size}}
			if err := h.db.LearntHashes(t.Context(), tt.team, list); err != nil || (list[0].Learnt != "") != tt.known {
				t.Errorf("%s: %+v, %v", name, list, err)
			}
		}
	})
}
