package runs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/admission"
)

// slowObjects answers nobody until several ask at the same time.
type slowObjects struct {
	atOnce int

	mu      sync.Mutex
	asked   int
	enough  chan struct{}
	missing string
}

func (o *slowObjects) StatOutput(ctx context.Context, key string) (runs.Stored, error) {
	o.mu.Lock()
	if o.asked++; o.asked == o.atOnce {
		close(o.enough)
	}
	o.mu.Unlock()
	select {
	case <-o.enough:
	case <-ctx.Done():
		return runs.Stored{}, ctx.Err()
	}
	if key == o.missing {
		return runs.Stored{}, fault.NotFound("no such object")
	}
	return runs.Stored{Size: 1, Mark: "m"}, nil
}

func (*slowObjects) PresignOutput(_ context.Context, o runs.Output, _ time.Time, base string) (string, error) {
	return base + "/" + o.Key, nil
}

func (*slowObjects) Open(context.Context, string, int64, int64) (io.ReadCloser, error) {
	return nil, errors.New("nobody reads them")
}

// withOutputs is a running run that has made some.
func (b *bench) withOutputs(n int) ids.Run {
	b.t.Helper()
	now := b.clock.Now()
	r := b.start(b.owner, b.workflow(`{"nodes":[{"id":"a","command":"true","outputs":{"o":{"path":"*","many":true}}}]}`))
	c := admission.Claim{Owner: "here w", Host: "here", Total: credits.Size{VCPU: 8, RAMGB: 32}, Most: 1}
	claimed, err := b.db.ClaimRuns(b.t.Context(), c, now, now.Add(time.Minute))
	if err != nil || len(claimed.Runs) != 1 {
		b.t.Fatalf("%+v, %v", claimed, err)
	}
	var s runs.Step
	for i := range n {
		key := fmt.Sprintf("teams/%s/runs/%s/a.%06d", b.owner.Team, r.ID, i)
		s.Outputs = append(s.Outputs, runs.Output{Key: key, Blob: key, Node: "a", Port: "o", Name: fmt.Sprint(i), Size: 1, SHA256: "x", Mark: "m"})
	}
	if err := b.db.Advance(b.t.Context(), r.ID, claimed.Runs[0].Fence, s, now); err != nil {
		b.t.Fatal(err)
	}
	return r.ID
}

func TestSharedOutputsAreLookedUpTogetherAndInPages(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		id := b.withOutputs(40)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		objects := &slowObjects{atOnce: 10, enough: make(chan struct{})}
		objects.missing = fmt.Sprintf("teams/%s/runs/%s/a.%06d", b.owner.Team, id, 3)
		service := runs.NewService(runs.Options{Store: b.db, Details: b.db, Objects: objects, Verifier: runs.NewVerifier(objects, b.db), Now: b.clock.Now})
		q := runs.OutputQuery{Limit: 25, Base: "https://here"}
		first, err := service.Results(ctx, b.owner.Team, id, nil, q)
		if err != nil || len(first.Outputs) != 24 || first.Next == "" || objects.asked != 25 {
			t.Fatalf("%d outputs, %d looked up, next %q, %v", len(first.Outputs), objects.asked, first.Next, err)
		}
		q.After = first.Next
		second, err := service.Results(ctx, b.owner.Team, id, nil, q)
		if err != nil || len(second.Outputs) != 15 || second.Next != "" || objects.asked != 40 || second.Outputs[0].Name != "25" {
			t.Errorf("%d outputs, %d looked up, next %q, %v", len(second.Outputs), objects.asked, second.Next, err)
		}
		if _, err := service.Results(ctx, "team_other", id, nil, q); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("another team's run: %v", err)
		}
	})
}
