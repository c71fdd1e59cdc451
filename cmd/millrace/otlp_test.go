package main

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receiver takes traces as a collector does.
type receiver struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*wire.Span
}

func receive(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		var got collector.ExportTraceServiceRequest
		if err != nil || req.URL.Path != "/v1/traces" || proto.Unmarshal(body, &got) != nil {
			http.Error(w, "no traces", http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, of := range got.ResourceSpans {
			for _, by := range of.ScopeSpans {
				r.spans = append(r.spans, by.Spans...)
			}
		}
		answer, _ := proto.Marshal(&collector.ExportTraceServiceResponse{})
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write(answer)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) named(name string) (list []*wire.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		if s.Name == name {
			list = append(list, s)
		}
	}
	return list
}

// A caller's trace goes on through the request and the run to each attempt.
func TestTracesGoFromTheCallerToTheAttempts(t *testing.T) {
	t.Parallel()
	r := receive(t)
	s := start(t, "--data", t.TempDir(), "--sandbox", "none", "--otlp-endpoint", r.URL)
	_, cookie, _ := s.signUp("ada")
	workflow := s.want(201, "POST", "/api/workflows", `{"name":"w","definition":{"nodes":[{"id":"a","command":"true"},{"id":"b","command":"exit 1","retries":{"max":1,"backoffSeconds":0.1}}]}}`, "Cookie", cookie)["id"].(string)
	const traceID, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	run := s.want(202, "POST", "/api/runs", `{"workflowId":"`+workflow+`"}`, "Cookie", cookie, "traceparent", "00-"+traceID+"-"+caller+"-01")["runId"].(string)
	s.endedFor(cookie, run)
	await(t, "the spans", func() bool {
		return len(r.named("run")) == 1 && len(r.named("attempt")) == 3 && len(r.named("POST /api/runs")) == 1
	})
	request, whole := r.named("POST /api/runs")[0], r.named("run")[0]
	if hex.EncodeToString(request.TraceId) != traceID || hex.EncodeToString(request.ParentSpanId) != caller {
		t.Errorf("the request is not the caller's: %v", request)
	}
	if string(whole.ParentSpanId) != string(request.SpanId) || string(whole.TraceId) != string(request.TraceId) || whole.EndTimeUnixNano <= whole.StartTimeUnixNano {
		t.Errorf("the run is not the request's: %v", whole)
	}
	for _, a := range append(r.named("attempt"), r.named("queued")...) {
		if string(a.ParentSpanId) != string(whole.SpanId) || a.StartTimeUnixNano < whole.StartTimeUnixNano || a.EndTimeUnixNano > whole.EndTimeUnixNano {
			t.Errorf("not within the run: %v", a)
		}
	}
	if sign := r.named("POST /auth/sign-up"); len(sign) != 1 || len(sign[0].ParentSpanId) != 0 {
		t.Errorf("signing up: %v", sign)
	}
}

// A collector that is away, or a traceparent that is none, harms nobody.
func TestNoCollectorAndABadTraceparentHarmNobody(t *testing.T) {
	t.Parallel()
	s := start(t, "--data", t.TempDir(), "--sandbox", "none", "--otlp-endpoint", "http://127.0.0.1:1")
	_, cookie, _ := s.signUp("ada")
	workflow := s.want(201, "POST", "/api/workflows", `{"name":"w","definition":{"nodes":[{"id":"a","command":"true"}]}}`, "Cookie", cookie)["id"].(string)
	for _, bad := range []string{"x", "00-00000000000000000000000000000000-0000000000000000-01", "00-zz"} {
		run := s.want(202, "POST", "/api/runs", `{"workflowId":"`+workflow+`"}`, "Cookie", cookie, "traceparent", bad)["runId"].(string)
		if r := s.endedFor(cookie, run); r["status"] != "completed" {
			t.Errorf("the run is %v", r["status"])
		}
	}
}
