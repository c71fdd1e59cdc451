package webhooks_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/sizetest"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
)

// TestTenThousandMessagesLeaveRunsAlone prints what it costs a run to start and
// end while 10,000 messages are sent, beside what it costs before and after.
func TestTenThousandMessagesLeaveRunsAlone(t *testing.T) {
	if !sizetest.All() {
		t.Skip("it takes minutes: make test-all")
	}
	each(t, func(t *testing.T, b *bench) {
		const messages = 10_000
		other := storetest.Owner(t, b.db, "bea") // whose team has no webhooks
		measure := func(n int, more func() bool) (took []time.Duration) {
			for i := 0; i < n && more(); i++ {
				r := runs.Run{
					ID: ids.NewRun(), Team: other.Team, Workflow: "wf_1", WorkflowName: "align", Revision: 1, Definition: []byte(`{}`), Parameters: []byte(`{}`),
					Inputs: []byte(`{}`), Size: credits.DefaultSize(), Price: 1, Starter: runs.Starter{Type: "user", ID: string(other.User)}, CreatedAt: b.clock.Now(),
				}
				began := time.Now()
				if err := b.db.SubmitRun(t.Context(), r, r.Price, nil); err != nil {
					t.Fatal(err)
				}
				if _, err := b.db.CancelRun(t.Context(), other.Team, r.ID, r.Starter, b.clock.Now()); err != nil {
					t.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			return took
		}
		always := func() bool { return true }
		b.make()
		for range messages / 2 {
			b.cancel(b.submit())
		}
		measure(50, always) // warm
		before := measure(200, always)

		ctx, stop := context.WithCancel(t.Context())
		var sending sync.WaitGroup
		sending.Go(func() { _ = b.sender.Run(ctx) })
		sent := func() int { b.to.mu.Lock(); defer b.to.mu.Unlock(); return len(b.to.got) }
		began := time.Now()
		during := measure(messages, func() bool { return sent() < messages })
		for n := sent(); n < messages; n = sent() {
			if !waittest.Until(func() bool { return sent() > n }) {
				t.Fatalf("only %d of %d messages were sent", n, messages)
			}
		}
		drained := time.Since(began)
		after := measure(200, always)
		stop()
		sending.Wait()

		idle := slices.Concat(before, after)
		slices.Sort(idle)
		slices.Sort(during)
		at := func(list []time.Duration, part float64) time.Duration { return list[int(float64(len(list)-1)*part)] }
		t.Logf("%d messages in %s; a run starts and ends in %s (p90 %s) idle, %s (p90 %s) meanwhile, %d of them: ratio %.2f, p90 %.2f",
			sent(), drained.Round(time.Millisecond), at(idle, 0.5), at(idle, 0.9), at(during, 0.5), at(during, 0.9), len(during),
			float64(at(during, 0.5))/float64(at(idle, 0.5)), float64(at(during, 0.9))/float64(at(idle, 0.9)))
	})
}
