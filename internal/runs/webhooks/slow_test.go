package webhooks_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/runs/webhooks"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
)

// slowAddresses answers at addresses that say that they are slow only when the test is
// over.
type slowAddresses struct {
	*receiver
	over    chan struct{}
	holding atomic.Int64
}

func (s *slowAddresses) Post(ctx context.Context, url string, h map[string]string, body []byte) (int, string, error) {
	if !strings.Contains(url, "slow") {
		return s.receiver.Post(ctx, url, h, body)
	}
	s.holding.Add(1)
	<-s.over
	return 0, "", webhooks.ErrSlow
}

// While the webhooks of ten teams, which one account can make in a day, wait for
// addresses that do not answer, as many as can, another team's message arrives.
func TestSlowWebhooksHoldUpNoOtherTeam(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		const teams = 10
		to := &slowAddresses{receiver: b.to, over: make(chan struct{})}
		sender := webhooks.NewSender(b.db, to, "https://here", slog.New(slog.NewTextHandler(t.Output(), nil)), time.Now)
		b.Service = webhooks.NewService(b.db, b.db, sender, false, time.Now)
		address := "https://slow.example.org"
		for team := range teams {
			b.owner = storetest.Owner(t, b.db, fmt.Sprint("slow", team))
			for range webhooks.TeamAtOnce + 1 {
				if _, err := b.Create(t.Context(), b.owner, webhooks.Edit{URL: &address}); err != nil {
					t.Fatal(err)
				}
			}
			b.submit()
		}
		ctx, stop := context.WithCancel(t.Context())
		var sending sync.WaitGroup
		sending.Go(func() { _ = sender.Run(ctx) })
		defer sending.Wait()
		defer close(to.over)
		defer stop()
		if !waittest.Until(func() bool { return to.holding.Load() >= teams*webhooks.TeamAtOnce }) {
			t.Fatalf("%d messages were sent to the slow addresses", to.holding.Load())
		}
		b.owner = storetest.Owner(t, b.db, "bea")
		b.make()
		b.submit()
		sender.Wake()
		if !waittest.Until(func() bool { return b.to.types() == "run.queued" }) {
			t.Error("the other team's message did not arrive")
		}
	})
}

// A webhook whose address does not answer in time, again and again, is paused as a
// whole, for longer each time, until it answers or somebody resumes it.
func TestSlowWebhookIsPaused(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		w := b.make("run.queued")
		b.to.answer = func(message) (int, error) { return 0, webhooks.ErrSlow }
		look := func() webhooks.Webhook {
			t.Helper()
			b.drain()
			w, err := b.Webhook(t.Context(), b.owner, w.ID)
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		paused := func(w webhooks.Webhook) time.Duration { return max(0, w.PausedUntil.Sub(b.clock.Now())) }
		for range 20 {
			b.submit()
		}
		first := look()
		if n := len(b.to.got); n != 3 || paused(first) < time.Minute || !first.Enabled {
			t.Fatalf("after %d messages it is paused for %s, enabled %v", n, paused(first), first.Enabled)
		}
		list, _, err := b.Deliveries(t.Context(), b.owner, w.ID, "", 100)
		if err != nil || len(list) != 20 {
			t.Fatal(len(list), err)
		}
		for _, d := range list {
			if d.Status != webhooks.Pending || d.NextAt.Before(first.PausedUntil) {
				t.Errorf("%s is %s, to be sent at %s", d.ID, d.Status, d.NextAt)
			}
		}
		// One message tries whether it is better, and it is not.
		b.clock.Pass(paused(first) + time.Second)
		second := look()
		if n := len(b.to.got); n != 4 || paused(second) <= paused(first) || second.PausedUntil.Sub(first.PausedUntil) < time.Minute {
			t.Fatalf("after %d messages it is paused for %s", n, paused(second))
		}
		// Whoever switches it on resumes it.
		on := true
		if got, err := b.Change(t.Context(), b.owner, w.ID, webhooks.Edit{Enabled: &on}); err != nil || paused(got) != 0 {
			t.Errorf("%+v, %v", got, err)
		}
		b.to.answer = nil
		if got := look(); paused(got) != 0 || len(b.to.got) < 20 {
			t.Errorf("%d messages, paused for %s", len(b.to.got), paused(got))
		}
		// An answer in between begins the count again.
		b.clock.Pass(time.Hour)
		b.drain()
		before := len(b.to.got)
		b.to.answer = func(message) (int, error) {
			if (len(b.to.got)-before)%3 == 0 {
				return 500, nil
			}
			return 0, webhooks.ErrSlow
		}
		for range 6 {
			b.submit()
		}
		if got := look(); paused(got) != 0 || len(b.to.got) < before+6 {
			t.Errorf("%d messages, paused for %s", len(b.to.got)-before, paused(got))
		}
	})
}

// A test message that is answered resumes a webhook that is paused.
func TestAnsweredTestResumesASlowWebhook(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		w := b.make("run.queued")
		b.to.answer = func(message) (int, error) { return 0, webhooks.ErrSlow }
		for range 5 {
			b.submit()
		}
		b.drain()
		b.to.answer = nil
		if d, err := b.Test(t.Context(), b.owner, w.ID); err != nil || d.Status != webhooks.Delivered {
			t.Fatalf("%+v, %v", d, err)
		}
		b.drain()
		b.clock.Pass(6 * time.Second)
		b.drain()
		if got := strings.Count(b.to.types(), "run.queued"); got != 5+3 {
			t.Errorf("%d messages", got)
		}
	})
}

// A message is due again at every start of the server, and would end the server each time.
func TestPanicOverAMessageIsAFailedAttempt(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		address := "https://panicking.example.org"
		broken, err := b.Create(t.Context(), b.owner, webhooks.Edit{URL: &address, Events: []string{"run.queued"}})
		if err != nil {
			t.Fatal(err)
		}
		b.make("run.queued")
		panics := true
		b.to.answer = func(m message) (int, error) {
			if panics && m.url == address {
				panic("out of order")
			}
			return 200, nil
		}
		b.submit()
		b.drain()
		look := func() webhooks.Delivery {
			t.Helper()
			list, _, err := b.Deliveries(t.Context(), b.owner, broken.ID, "", 100)
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			return list[0]
		}
		if d := look(); len(b.to.got) != 2 || d.Status != webhooks.Pending || d.Attempts != 1 || strings.Contains(d.Error, "out of order") {
			t.Errorf("of %d messages: %+v", len(b.to.got), d)
		}
		panics = false
		b.clock.Pass(time.Minute)
		b.drain()
		if d := look(); d.Status != webhooks.Delivered {
			t.Errorf("%+v", d)
		}
	})
}
