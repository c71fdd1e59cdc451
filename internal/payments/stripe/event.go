package stripe

import (
	"strconv"
	"strings"
	"time"

	stripego "github.com/stripe/stripe-go/v85"
	"github.com/stripe/stripe-go/v85/webhook"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/fault"
)

// tolerance is how far the moment of signing may be from ours, either way: an
// event that was caught on the way is worthless soon after.
const tolerance = 5 * time.Minute

// Event checks that a payload was signed with the account's webhook secret
// within the last minutes, and translates it. Events that concern nothing of
// ours are billing.Irrelevant.
func (s *Stripe) Event(payload []byte, signature string, now time.Time) (billing.PaymentEvent, error) {
	event, err := s.verified(payload, signature, now)
	if err != nil {
		return billing.PaymentEvent{}, err
	}
	if event.Data == nil {
		return billing.PaymentEvent{}, fault.Invalid("the event has no data")
	}
	translated, err := translate(string(event.Type), event.Data.Raw, event.Data.PreviousAttributes)
	if err != nil {
		return billing.PaymentEvent{}, fault.Invalid("the event cannot be read").WithCause(err)
	}
	translated.ID = event.ID
	translated.Created = time.Unix(event.Created, 0).UTC()
	return translated, nil
}

func (s *Stripe) verified(payload []byte, signature string, now time.Time) (stripego.Event, error) {
	if s.webhookSecret == "" {
		// An empty key signs as well as any other.
		return stripego.Event{}, fault.Unavailable("no webhook secret is set, so no event can be trusted").
			WithCode("payments_unavailable")
	}
	event, err := webhook.ConstructEventWithOptions(payload, signature, s.webhookSecret, webhook.ConstructEventOptions{
		// The library knows the clock of the machine only; ours is checked below.
		IgnoreTolerance: true,
		// Only fields are read that every version of the API has.
		IgnoreAPIVersionMismatch: true,
	})
	if err != nil {
		return event, fault.Invalid("the payload is not a signed event of this account").WithCause(err)
	}
	if age := now.Sub(signedAt(signature)); age.Abs() > tolerance {
		return event, fault.Invalid("the event was not signed within the last %d minutes", int(tolerance.Minutes()))
	}
	return event, nil
}

// signedAt is the time in a signature header that was found valid. Where there
// are several, the last one counts: that is the one the signature covers.
func signedAt(header string) time.Time {
	var at time.Time
	for pair := range strings.SplitSeq(header, ",") {
		if text, ok := strings.CutPrefix(pair, "t="); ok {
			seconds, _ := strconv.ParseInt(text, 10, 64) // it was a number to the library
			at = time.Unix(seconds, 0)
		}
	}
	return at
}
