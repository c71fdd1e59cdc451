package tracing

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	api "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// answers is a collector that gives one answer after the other, then the last again.
type answers struct {
	list []http.Response
	got  []*http.Request
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := a.list[min(len(a.got), len(a.list)-1)]
	resp.Body = io.NopCloser(strings.NewReader("why"))
	a.got = append(a.got, r)
	return &resp, nil
}

func answer(status int, retryAfter string) http.Response {
	return http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Retry-After": {retryAfter}}}
}

func TestABusyCollectorIsAskedAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answers []http.Response
		asked   int
		took    time.Duration
		failed  bool
	}{
		"takes them":            {[]http.Response{answer(200, "")}, 1, 0, false},
		"refuses them":          {[]http.Response{answer(400, "1")}, 1, 0, true},
		"is broken":             {[]http.Response{answer(500, "")}, 1, 0, true},
		"is busy":               {[]http.Response{answer(503, ""), answer(502, ""), answer(504, ""), answer(200, "")}, 4, 7 * time.Second, false},
		"says when":             {[]http.Response{answer(429, "7"), answer(200, "")}, 2, 7 * time.Second, false},
		"says no number":        {[]http.Response{answer(429, "soon"), answer(200, "")}, 2, time.Second, false},
		"is busy, then refuses": {[]http.Response{answer(503, ""), answer(413, "")}, 2, time.Second, true},
		"stays busy":            {[]http.Response{answer(503, "")}, 5, 30 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, err := newCollector("http://collector.example/v1/traces", func(string) string { return "" })
				if err != nil {
					t.Fatal(err)
				}
				a := &answers{list: tt.answers}
				c.http.Transport = a
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				began := time.Now()
				err = c.UploadTraces(ctx, []*wire.ResourceSpans{{SchemaUrl: "x"}})
				if (err != nil) != tt.failed || len(a.got) != tt.asked || time.Since(began) != tt.took {
					t.Errorf("%v after %d requests and %s", err, len(a.got), time.Since(began))
				}
			})
		})
	}
}

// What is sent is the request that collectors document, with the headers that
// OpenTelemetry's variables name.
func TestACollectorReadsWhatIsSent(t *testing.T) {
	t.Parallel()
	c, err := newCollector("http://collector.example/v1/traces", func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "x-team=all, x-key=a%20b%2Cc", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x-team=traces,"}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	a := &answers{list: []http.Response{answer(200, "")}}
	c.http.Transport = a
	sent := []*wire.ResourceSpans{{SchemaUrl: "x", ScopeSpans: []*wire.ScopeSpans{{Spans: []*wire.Span{{Name: "run"}}}}}}
	if err := c.UploadTraces(t.Context(), sent); err != nil {
		t.Fatal(err)
	}
	r := a.got[0]
	body, err := io.ReadAll(r.Body)
	var got api.ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(body, &got) != nil || !proto.Equal(&got, &api.ExportTraceServiceRequest{ResourceSpans: sent}) {
		t.Errorf("the request is %v, %v", &got, err)
	}
	for name, want := range map[string]string{"x-team": "traces", "x-key": "a b,c", "Content-Type": "application/x-protobuf"} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if r.Method != http.MethodPost || r.ContentLength != int64(len(body)) {
		t.Errorf("%s of %d bytes", r.Method, r.ContentLength)
	}
	for _, bad := range []string{"x-key", "x-key=%zz"} {
		if _, err := newCollector("http://collector.example", func(string) string { return bad }); err == nil {
			t.Errorf("%q is taken for headers", bad)
		}
	}
}
