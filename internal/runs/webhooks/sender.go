package webhooks

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs/webhooks/templates"
)

// Outbox is where messages wait. One process at a time sends to a webhook, and
// of each run the earliest message first.
type Outbox interface {
	// ClaimDeliveries takes a webhook that has something due, and up to most of
	// its messages; an empty id: there is none.
	ClaimDeliveries(ctx context.Context, now, until time.Time, most int) (Webhook, []Delivery, error)
	// ReleaseWebhook lets others send to it, unless they do already: the claim is
	// told by its end.
	ReleaseWebhook(ctx context.Context, id ids.Webhook, until time.Time) error
	// Attempted writes down how an attempt went, unless somebody else has made
	// that attempt meanwhile. A reason disables the webhook.
	Attempted(ctx context.Context, d Delivery, disable string) error
}

// Transport posts a message, and returns the status and the beginning of the
// answer. It follows no redirects.
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
	workers = 4
	look    = 3 * time.Second
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
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				if busy := s.Round(ctx); busy {
					continue
				}
				t := time.NewTimer(look)
				select {
				case <-ctx.Done():
				case <-t.C:
				case <-s.wake:
				}
				t.Stop()
			}
		})
	}
	all.Wait()
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
	began := s.now()
	until := began.Add(lease)
	w, list, err := s.outbox.ClaimDeliveries(ctx, began, until, batch)
	if err != nil {
		s.complain(ctx, "cannot look for messages to send", err)
		return false
	}
	if w.ID == "" {
		return false
	}
	for _, d := range list {
		if ctx.Err() != nil || s.now().Sub(began) > lease-2*attemptTime {
			break
		}
		if err := s.send(ctx, w, d); err != nil {
			s.complain(ctx, "cannot write down how a message was sent", err)
			break
		}
	}
	s.complain(ctx, "cannot let others send to a webhook", s.outbox.ReleaseWebhook(context.WithoutCancel(ctx), w.ID, until))
	return len(list) > 0
}

const gone = 410

// send tries a message once.
func (s *Sender) send(ctx context.Context, w Webhook, d Delivery) error {
	now := s.now()
	err := s.post(ctx, w, &d, now)
	if err != nil && ctx.Err() != nil {
		return nil //nolint:nilerr // we are stopping; the lease ends, and it is sent again
	}
	d.Attempts++
	d.Error = ""
	disable := ""
	switch {
	case err != nil:
		d.Error, d.ResponseStatus, d.Answer = err.Error(), 0, ""
	case d.ResponseStatus >= 200 && d.ResponseStatus < 300:
		d.Status, d.DeliveredAt = Delivered, s.now()
	case d.ResponseStatus == gone:
		d.Error, disable = "the address says that it is gone", "the address answered 410: it is gone"
	case d.ResponseStatus >= 300 && d.ResponseStatus < 400:
		d.Error = "the address answered with a redirect, which is not followed"
	default:
		d.Error = "the address did not answer with a status of 2xx"
	}
	if d.Status == Pending {
		d.NextAt = s.now().Add(pauses[min(d.Attempts, len(pauses))-1])
		if disable != "" || d.NextAt.After(d.GiveUpAt) {
			d.Status = Failed
		}
	}
	return s.outbox.Attempted(context.WithoutCancel(ctx), d, disable)
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
		s.log.ErrorContext(ctx, what, slog.Any("error", err))
	}
}
