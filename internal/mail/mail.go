// Package mail delivers mails that rooms left in the outbox: by SMTP, or as
// .eml files in a folder where no mail server is configured.
package mail

import (
	"context"
	"log/slog"
	"time"

	"github.com/millrace/millrace/internal/domain/mails"
)

// Outbox is where mails wait.
type Outbox interface {
	ClaimMails(ctx context.Context, most int, now time.Time, lease time.Duration) ([]mails.Message, error)
	MailSent(ctx context.Context, id string) error
	MailFailed(ctx context.Context, id, why string) error
	// ReleaseMails lets those go that waited for limits which allow them by now.
	ReleaseMails(ctx context.Context, now time.Time) error
}

// Transport sends a mail.
type Transport interface {
	Send(ctx context.Context, l mails.Message) error
}

// Sender empties the outbox: at once when hurried, and every few seconds in
// any case. A mail is sent at least once.
type Sender struct {
	Base string // the address of the app, for mails that lead to a page of it

	outbox    Outbox
	transport Transport
	log       *slog.Logger
	now       func() time.Time
	wake      chan struct{}
}

// NewSender makes one. Several, on several servers, do not get in each
// other's way.
func NewSender(outbox Outbox, transport Transport, log *slog.Logger, now func() time.Time) *Sender {
	return &Sender{outbox: outbox, transport: transport, log: log, now: now, wake: make(chan struct{}, 1)}
}

const (
	round     = 15 * time.Second // between two looks
	lease     = time.Minute      // until a mail that failed is sent again
	batch     = 20
	patience  = 30 * time.Second // for one mail
	hurryTime = 3 * time.Second  // that somebody who asked waits
)

// Run delivers until ctx ends.
func (p *Sender) Run(ctx context.Context) error {
	tick := time.NewTicker(round)
	defer tick.Stop()
	for {
		p.deliver(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-p.wake:
		}
	}
}

// SendSoon makes Run deliver what waits; whoever asks does not wait for it.
func (p *Sender) SendSoon() {
	select {
	case p.wake <- struct{}{}:
	default: // it looks again in any case
	}
}

// SendNow delivers what waits, as far as a few seconds go. It goes on although
// the one who asked has left.
func (p *Sender) SendNow(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hurryTime)
	defer cancel()
	p.deliver(ctx)
}

func (p *Sender) deliver(ctx context.Context) {
	if err := p.outbox.ReleaseMails(ctx, p.now()); err != nil && ctx.Err() == nil {
		p.log.ErrorContext(ctx, "cannot release mails that waited", slog.Any("error", err))
	}
	for ctx.Err() == nil {
		claimed, err := p.outbox.ClaimMails(ctx, batch, p.now(), lease)
		if err != nil {
			if ctx.Err() == nil {
				p.log.ErrorContext(ctx, "cannot read the outbox", slog.Any("error", err))
			}
			return
		}
		for _, l := range claimed {
			p.send(ctx, l)
		}
		if len(claimed) < batch {
			return
		}
	}
}

func (p *Sender) send(ctx context.Context, l mails.Message) {
	err := p.trySend(ctx, l)
	if err == nil {
		err = p.outbox.MailSent(context.WithoutCancel(ctx), l.ID)
	} else if noted := p.outbox.MailFailed(context.WithoutCancel(ctx), l.ID, err.Error()); noted != nil {
		p.log.ErrorContext(ctx, "cannot note a failed mail", slog.String("mail", l.ID), slog.Any("error", noted))
	}
	if err != nil {
		p.log.WarnContext(ctx, "a mail did not go out; it is tried again", slog.String("mail", l.ID), slog.Any("error", err))
	}
}

func (p *Sender) trySend(ctx context.Context, l mails.Message) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if l.Void {
		return nil
	}
	if l.Path != "" {
		l.Text += "\n" + p.Base + l.Path + "\n"
	}
	return p.transport.Send(ctx, l)
}
