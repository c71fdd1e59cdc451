// Package tracing tells an OpenTelemetry collector how requests become runs and
// runs become attempts. It names routes, ids and outcomes, never paths, queries,
// names of people or files.
package tracing

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
)

// CheckEndpoint refuses what is no address of a collector.
func CheckEndpoint(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}

// Tracer sends traces. It never makes anybody wait: what a collector does not
// take is dropped.
type Tracer struct {
	provider *trace.TracerProvider
	tracer   api.Tracer
	parent   func(context.Context, ids.Run) (string, error)

	mu   sync.Mutex
	open map[ids.Run]context.Context // with the span of a run that this process executes
}

// Open begins to send to a collector; parent finds the request that a run came
// of.
func Open(ctx context.Context, endpoint, version string, log *slog.Logger, parent func(context.Context, ids.Run) (string, error)) (*Tracer, error) {
	if u, err := url.Parse(endpoint); err == nil && strings.Trim(u.Path, "/") == "" {
		endpoint = strings.TrimSuffix(endpoint, "/") + "/v1/traces"
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("cannot send traces", slog.Any("error", err))
	}))
	client, err := newCollector(endpoint, os.Getenv)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, err
	}
	about := resource.NewSchemaless(attribute.String("service.name", "millrace"), attribute.String("service.version", version))
	p := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(about))
	return &Tracer{provider: p, tracer: p.Tracer("millrace"), parent: parent, open: map[ids.Run]context.Context{}}, nil
}

// Close ends what is open and sends what is left, for a few seconds.
func (t *Tracer) Close(ctx context.Context) error {
	t.mu.Lock()
	for id, run := range t.open {
		span := api.SpanFromContext(run)
		span.SetAttributes(attribute.Bool("millrace.handed_over", true))
		span.End()
		delete(t.open, id)
	}
	t.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// Request begins the span of a request, in the trace of its caller if it names
// one.
func (t *Tracer) Request(r *http.Request, route string) (*http.Request, func(status int)) {
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.tracer.Start(ctx, route, api.WithSpanKind(api.SpanKindServer),
		api.WithAttributes(attribute.String("http.request.method", r.Method), attribute.String("http.route", route)))
	return r.WithContext(ctx), func(status int) {
		span.SetAttributes(attribute.Int("http.response.status_code", status))
		if status >= 500 {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// Parent names the span of a context, for a run to remember.
func Parent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// RunClaimed begins the span of a run where it was accepted, with the time that
// it waited.
func (t *Tracer) RunClaimed(ctx context.Context, r runs.Run, now time.Time) {
	run := t.begin(ctx, r, r.CreatedAt)
	_, queued := t.tracer.Start(run, "queued", api.WithTimestamp(r.CreatedAt))
	queued.End(api.WithTimestamp(now))
}

// RunTakenOver begins the span of what another worker began.
func (t *Tracer) RunTakenOver(ctx context.Context, r runs.Run, now time.Time) {
	api.SpanFromContext(t.begin(ctx, r, now)).SetAttributes(attribute.Bool("millrace.taken_over", true))
}

func (t *Tracer) begin(ctx context.Context, r runs.Run, at time.Time) context.Context {
	from, _ := t.parent(ctx, r.ID) // without it, the run has a trace of its own
	run := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": from})
	run, _ = t.tracer.Start(run, "run", api.WithTimestamp(at), api.WithAttributes(
		attribute.String("millrace.run", string(r.ID)), attribute.String("millrace.workflow", string(r.Workflow)), attribute.String("millrace.team", string(r.Team)),
		attribute.Int("millrace.vcpu", r.Size.VCPU), attribute.Int("millrace.ram_gb", r.Size.RAMGB), attribute.Int("millrace.gpu", r.Size.GPU)))
	t.mu.Lock()
	before := t.open[r.ID]
	t.open[r.ID] = run
	t.mu.Unlock()
	if before != nil {
		api.SpanFromContext(before).End()
	}
	return run
}

// RunAdvanced tells of the attempts that have ended.
func (t *Tracer) RunAdvanced(_ context.Context, id ids.Run, s runs.Step, _ time.Time) {
	t.mu.Lock()
	run := t.open[id]
	t.mu.Unlock()
	if run == nil {
		return
	}
	for _, a := range s.Attempts {
		if a.State == runs.AttemptStarted || a.EndedAt.IsZero() {
			continue
		}
		_, span := t.tracer.Start(run, "attempt", api.WithTimestamp(a.StartedAt), api.WithAttributes(
			attribute.String("millrace.node", a.Node), attribute.Int("millrace.shard", a.Shard), attribute.Int("millrace.attempt", a.Number),
			attribute.String("millrace.outcome", string(a.State)), attribute.String("millrace.reason", a.Reason)))
		if a.State != runs.AttemptSucceeded {
			span.SetStatus(codes.Error, a.Reason)
		}
		span.End(api.WithTimestamp(a.EndedAt))
	}
}

// RunEnded ends the span of a run.
func (t *Tracer) RunEnded(_ context.Context, id ids.Run, status lifecycle.Status, now time.Time) {
	t.end(id, string(status), now, status != lifecycle.Completed)
}

// RunRequeued ends the span of what goes back to the queue.
func (t *Tracer) RunRequeued(_ context.Context, id ids.Run, now time.Time) {
	t.end(id, "requeued", now, true)
}

// RunLost ends the span of what another worker has.
func (t *Tracer) RunLost(_ context.Context, id ids.Run, now time.Time) { t.end(id, "lost", now, true) }

func (t *Tracer) end(id ids.Run, status string, now time.Time, bad bool) {
	t.mu.Lock()
	run := t.open[id]
	delete(t.open, id)
	t.mu.Unlock()
	if run == nil {
		return
	}
	span := api.SpanFromContext(run)
	span.SetAttributes(attribute.String("millrace.status", status))
	if bad {
		span.SetStatus(codes.Error, status)
	}
	span.End(api.WithTimestamp(now))
}
