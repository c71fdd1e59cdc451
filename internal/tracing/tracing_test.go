package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/tracing"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// world is a collector, and the requests that runs came of.
type world struct {
	*tracing.Tracer
	t       *testing.T
	parents map[ids.Run]string
	mu      sync.Mutex
	spans   []*wire.Span
	paths   []string
}

func open(t *testing.T, path string) *world {
	t.Helper()
	w := &world{t: t, parents: map[ids.Run]string{}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var got collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &got)
		}
		if err != nil {
			t.Error(err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.paths = append(w.paths, r.URL.Path)
		for _, of := range got.ResourceSpans {
			for _, by := range of.ScopeSpans {
				w.spans = append(w.spans, by.Spans...)
			}
		}
	}))
	t.Cleanup(server.Close)
	var err error
	w.Tracer, err = tracing.Open(t.Context(), server.URL+path, "1", slog.New(slog.DiscardHandler), func(_ context.Context, id ids.Run) (string, error) {
		if from, ok := w.parents[id]; ok {
			return from, nil
		}
		return "", errors.New("the database is away")
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// said closes the tracer and gives what the collector has heard, a span a line, in
// the order of their ends.
func (w *world) said() []string {
	w.t.Helper()
	if err := w.Close(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	var list []string
	for _, s := range w.spans {
		line := fmt.Sprintf("%s %d", s.Name, s.EndTimeUnixNano/1e9-s.StartTimeUnixNano/1e9)
		if s.Status.GetCode() == wire.Status_STATUS_CODE_ERROR {
			line += " bad"
		}
		for _, a := range s.Attributes {
			if v := a.Value; v.GetStringValue() != "" || v.GetBoolValue() {
				line += " " + a.Key + "=" + v.GetStringValue()
			}
		}
		list = append(list, strings.ReplaceAll(line, "millrace.", ""))
	}
	return list
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestTheAddressOfACollector(t *testing.T) {
	t.Parallel()
	for text, good := range map[string]bool{
		"http://localhost:4318": true, "https://otel.example.org/v1/traces": true, "": false, "localhost:4318": false, "ftp://x": false, "http://": false,
		"http://user:secret@x": false, "http:///v1/traces": false, "http://[::1": false,
	} {
		if tracing.CheckEndpoint(text) != good {
			t.Errorf("%q: %v", text, !good)
		}
	}
	for path, want := range map[string]string{"": "/v1/traces", "/": "/v1/traces", "/custom": "/custom"} {
		w := open(t, path)
		_, done := w.Request(httptest.NewRequest("GET", "/x", nil), "GET /x")
		done(200)
		if w.said(); len(w.paths) != 1 || w.paths[0] != want {
			t.Errorf("%q: sent to %v", path, w.paths)
		}
	}
}

// A request is told by its route and status, and never by its path, query or
// headers.
func TestARequestIsToldByItsRoute(t *testing.T) {
	t.Parallel()
	w := open(t, "")
	r := httptest.NewRequest("GET", "/api/runs/run_secret?token=secret", nil)
	r.Header.Set("Authorization", "Bearer secret")
	r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	inner, done := w.Request(r, "GET /api/runs/{id}")
	parent := tracing.Parent(inner.Context())
	done(404)
	_, failed := w.Request(httptest.NewRequest("POST", "/api/runs", nil), "POST /api/runs")
	failed(500)
	expect(t, w.said(),
		"GET /api/runs/{id} 0 http.request.method=GET http.route=GET /api/runs/{id}",
		"POST /api/runs 0 bad http.request.method=POST http.route=POST /api/runs")
	if !strings.HasPrefix(parent, "00-0af7651916cd43dd8448eb211c80319c-") || strings.Contains(parent, "b7ad6b7169203331") {
		t.Errorf("a run would remember %q", parent)
	}
	if text := fmt.Sprint(w.spans); strings.Contains(text, "secret") {
		t.Errorf("it tells %s", text)
	}
	if got := tracing.Parent(context.Background()); got != "" {
		t.Errorf("nobody is the parent %q", got)
	}
}

func TestARunIsToldFromItsAcceptanceToItsEnd(t *testing.T) {
	t.Parallel()
	w := open(t, "")
	ctx := t.Context()
	w.parents["run_a"] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var run runs.Run
	run.ID, run.Workflow, run.Team, run.CreatedAt = "run_a", "wf_a", "team_a", noon.Add(-10*time.Second)
	w.RunClaimed(ctx, run, noon)
	attempt := func(state runs.AttemptState, reason string, ended time.Time) runs.Attempt {
		return runs.Attempt{Node: "n", State: state, Reason: reason, Message: "a secret message", StartedAt: noon, EndedAt: ended}
	}
	end := noon.Add(4 * time.Second)
	w.RunAdvanced(ctx, "run_a", runs.Step{Attempts: []runs.Attempt{
		attempt(runs.AttemptStarted, "", time.Time{}), attempt(runs.AttemptSucceeded, "", end), attempt(runs.AttemptFailed, "exit_code", end), attempt(runs.AttemptLost, "", time.Time{}),
	}}, end)
	w.RunAdvanced(ctx, "run_of_another", runs.Step{Attempts: []runs.Attempt{attempt(runs.AttemptSucceeded, "", end)}}, end)
	w.RunEnded(ctx, "run_a", lifecycle.Completed, end)
	w.RunEnded(ctx, "run_a", lifecycle.Failed, end) // no run has two ends
	expect(t, w.said(),
		"queued 10",
		"attempt 4 node=n outcome=succeeded",
		"attempt 4 bad node=n outcome=failed reason=exit_code",
		"run 14 run=run_a workflow=wf_a team=team_a status=completed")
	for _, s := range w.spans {
		if fmt.Sprintf("%x", s.TraceId) != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s is in another trace", s.Name)
		}
	}
	if strings.Contains(fmt.Sprint(w.spans), "secret") {
		t.Errorf("%v", w.spans)
	}
}

func TestARunThatChangesHandsIsToldByEach(t *testing.T) {
	t.Parallel()
	w := open(t, "")
	ctx := t.Context()
	run := func(id ids.Run) (r runs.Run) {
		r.ID, r.CreatedAt = id, noon
		return r
	}
	later := noon.Add(5 * time.Second)
	w.RunTakenOver(ctx, run("run_a"), noon)
	w.RunLost(ctx, "run_a", later)
	w.RunTakenOver(ctx, run("run_b"), noon)
	w.RunRequeued(ctx, "run_b", later)
	w.RunTakenOver(ctx, run("run_c"), noon)
	w.RunEnded(ctx, "run_c", lifecycle.Failed, later)
	w.RunLost(ctx, "run_x", later)
	expect(t, w.said(),
		"run 5 bad run=run_a taken_over= status=lost",
		"run 5 bad run=run_b taken_over= status=requeued",
		"run 5 bad run=run_c taken_over= status=failed")
}

// What a server has open when it stops is told as handed over, and a run that it
// claims a second time is not told twice.
func TestNothingStaysOpen(t *testing.T) {
	t.Parallel()
	w := open(t, "")
	var run runs.Run
	run.ID, run.CreatedAt = "run_a", time.Now()
	w.RunTakenOver(t.Context(), run, time.Now())
	w.RunTakenOver(t.Context(), run, time.Now())
	list := w.said()
	if len(list) != 2 || strings.Contains(list[0], "handed_over") || !strings.Contains(list[1], "handed_over") {
		t.Errorf("%q", list)
	}
}
