package webhooks

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs/webhooks/templates"
)

// Outbox is where messages wait. One process at a time sends to a webhook, and
// of each run the earliest message first.
type Outbox interface {
	// ClaimDeliveries takes the webhook that has something due and was sent to longest
	// ago, and up to most of its messages; an empty id: there is none. Of a team,
	// all servers together claim at most TeamAtOnce.
	ClaimDeliveries(ctx context.Context, now, until time.Time, most int) (Webhook, []Delivery, error)
	// ReleaseWebhook lets others send to it, unless they do already: the claim is
	// told by its end.
	ReleaseWebhook(ctx context.Context, id ids.Webhook, until, now time.Time) error
	// Attempted writes down how an attempt went, and how long the webhook is paused,
	// unless somebody else has made that attempt meanwhile. A reason disables the
	// webhook.
	Attempted(ctx context.Context, d Delivery, w Webhook, disable string) error
}

// TeamAtOnce is to how many webhooks of a team is sent at the same time: a team whose
// addresses do not answer keeps no other team's messages waiting.
const TeamAtOnce = 2

// ErrSlow is about an address that did not answer in time.
var ErrSlow = errors.New("the server did not respond in time")

// Transport posts a message, and returns the status and the beginning of the
// answer. It follows no redirects. That there was no answer in time is ErrSlow.
type Transport interface {
	Post(ctx context.Context, url string, headers map[string]string, body []byte) (status int, answer string, err error)
}

// Sender empties the outbox.
type Sender struct {
	outbox    Outbox
	transport Transport
	base      string // of this installation's pages
	log       *slog.Logger
	now       func() time.Time
	wake      chan struct{}
}

// NewSender makes one. Several, on several servers, do not get in each other's
// way.
func NewSender(outbox Outbox, transport Transport, base string, log *slog.Logger, now func() time.Time) *Sender {
	return &Sender{outbox, transport, base, log, now, make(chan struct{}, 1)}
}

const (
	// atOnce is to how many webhooks a server sends at a time. Sending is waiting, and
	// costs a goroutine and a connection; all teams of one account do not use them up.
	atOnce = 64
	look   = 3 * time.Second
	// patience with one attempt
	attemptTime = 10 * time.Second
	// lease is how long a webhook is one process's. No attempt begins in the last
	// part of it.
	lease = time.Minute
	batch = 50
)

// pauses are how long it takes until the next attempt.
var pauses = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour,
}

// Run sends until ctx ends.
func (s *Sender) Run(ctx context.Context) error {
	var sending sync.WaitGroup
	defer sending.Wait()
	free := make(chan struct{}, atOnce)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return nil
		case free <- struct{}{}:
		}
		if c, there := s.claim(ctx); there {
			sending.Go(func() {
				s.sendAll(ctx, c)
				<-free
				s.Wake() // the team, or the webhook, may have more
			})
			continue
		}
		<-free
		t := time.NewTimer(look)
		select {
		case <-ctx.Done():
		case <-t.C:
		case <-s.wake:
		}
		t.Stop()
	}
	return nil
}

// Wake makes somebody look at once.
func (s *Sender) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Round sends what is due to one webhook, and says whether there was one.
func (s *Sender) Round(ctx context.Context) (busy bool) {
	c, busy := s.claim(ctx)
	if busy {
		s.sendAll(ctx, c)
	}
	return busy
}

// claimed is what is due to a webhook that is ours for a while.
type claimed struct {
	webhook      Webhook
	list         []Delivery
	began, until time.Time
}

// claim claims a webhook that has something due; false if there is none.
func (s *Sender) claim(ctx context.Context) (c claimed, there bool) {
	var err error
	c.began = s.now()
	c.until = c.began.Add(lease)
	c.webhook, c.list, err = s.outbox.ClaimDeliveries(ctx, c.began, c.until, batch)
	s.complain(ctx, "cannot look for messages to send", err)
	if err != nil || c.webhook.ID == "" {
		return c, false
	}
	if len(c.list) == 0 {
		s.release(ctx, c)
	}
	return c, len(c.list) > 0
}

// sendAll sends what was claimed, as far as there is time for it.
func (s *Sender) sendAll(ctx context.Context, c claimed) {
	defer s.release(ctx, c)
	for _, d := range c.list {
		if ctx.Err() != nil || s.now().Sub(c.began) > lease-2*attemptTime {
			return
		}
		if err := s.send(ctx, &c.webhook, d); err != nil {
			s.complain(ctx, "cannot write down how a message was sent", err)
			return
		}
		if c.webhook.Timeouts > 0 { // the team's other webhooks go first
			return
		}
	}
}

func (s *Sender) release(ctx context.Context, c claimed) {
	s.complain(ctx, "cannot let others send to a webhook", s.outbox.ReleaseWebhook(context.WithoutCancel(ctx), c.webhook.ID, c.until, s.now()))
}

const gone = 410

var errInternal = errors.New("an internal error kept the server from sending it")

// A webhook is paused after so many attempts in a row that were not answered in time,
// and after each further one, for so long.
const pauseAfter = 3

var slowPauses = []time.Duration{2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour}

// answered notes whether an attempt was answered in time, and pauses the webhook if
// that was not so too often.
func (w *Webhook) answered(inTime bool, now time.Time) {
	if inTime {
		w.Timeouts, w.PausedUntil = 0, time.Time{}
		return
	}
	w.Timeouts++
	if n := w.Timeouts - pauseAfter; n >= 0 {
		w.PausedUntil = now.Add(slowPauses[min(n, len(slowPauses)-1)])
	}
}

// send tries a message once.
func (s *Sender) send(ctx context.Context, w *Webhook, d Delivery) error {
	now := s.now()
	err := panics.Catch(func() error { return s.post(ctx, *w, &d, now) })
	if panics.Is(err) {
		s.complain(ctx, "cannot send a message", err)
		err = errInternal
	}
	if err != nil && ctx.Err() != nil {
		return nil //nolint:nilerr // we are stopping; the lease ends, and it is sent again
	}
	d.Attempts++
	d.Error = ""
	disable := ""
	w.answered(!errors.Is(err, ErrSlow), s.now())
	switch {
	case err != nil:
		d.Error, d.ResponseStatus, d.Answer = err.Error(), 0, ""
	case d.ResponseStatus >= 200 && d.ResponseStatus < 300:
		d.Status, d.DeliveredAt = Delivered, s.now()
	case d.ResponseStatus == gone:
		d.Error, disable = "the server says that the URL is gone", "the server responded with 410: the URL is gone"
	case d.ResponseStatus >= 300 && d.ResponseStatus < 400:
		d.Error = "the server responded with a redirect, which is not followed"
	default:
		d.Error = "the server did not respond with a 2xx status"
	}
	if d.Status == Pending {
		d.NextAt = s.now().Add(pauses[min(d.Attempts, len(pauses))-1])
		if disable != "" || d.NextAt.After(d.GiveUpAt) {
			d.Status = Failed
		}
	}
	return s.outbox.Attempted(context.WithoutCancel(ctx), d, *w, disable)
}

// post has a message written as the webhook wants it, and posts it.
func (s *Sender) post(ctx context.Context, w Webhook, d *Delivery, now time.Time) error {
	body, err := templates.Render(w.Format, w.Template, s.base, d.Payload)
	if err != nil {
		d.Status = Failed // it would be no better the next time, and the run's later messages wait for it
		return err
	}
	head, err := headers(w, d.ID, body, now)
	if err != nil {
		return err
	}
	trying, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	d.ResponseStatus, d.Answer, err = s.transport.Post(trying, w.URL, head, body)
	return err
}

func (s *Sender) complain(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		s.log.ErrorContext(ctx, what, panics.About(err)...)
	}
}
