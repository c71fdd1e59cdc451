package stripe

import (
	"encoding/json"
	"maps"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
)

// translate puts one of Stripe's events into the words of the billing room.
func translate(kind string, raw []byte, before map[string]any) (billing.PaymentEvent, error) {
	switch kind {
	case "checkout.session.completed", "checkout.session.async_payment_succeeded",
		"checkout.session.async_payment_failed", "checkout.session.expired":
		return read(raw, func(s session) billing.PaymentEvent { return s.event(kind) })
	case "charge.refunded":
		return read(raw, charge.event)
	case "charge.dispute.created", "charge.dispute.funds_withdrawn",
		"charge.dispute.funds_reinstated", "charge.dispute.closed":
		return read(raw, func(d dispute) billing.PaymentEvent { return d.event(kind) })
	case "invoice.paid":
		return read(raw, invoice.event)
	case "customer.subscription.created", "customer.subscription.updated", "customer.subscription.deleted":
		earlier, err := earlierOf(raw, before)
		if err != nil {
			return billing.PaymentEvent{}, err
		}
		return read(raw, func(s subscription) billing.PaymentEvent { return s.event(kind, earlier) })
	default:
		return irrelevant(), nil
	}
}

func read[T any](raw []byte, event func(T) billing.PaymentEvent) (billing.PaymentEvent, error) {
	var object T
	if err := json.Unmarshal(raw, &object); err != nil {
		return billing.PaymentEvent{}, err
	}
	return event(object), nil
}

func irrelevant() billing.PaymentEvent { return billing.PaymentEvent{Kind: billing.Irrelevant} }

// The objects below have just the fields that are read, because those have
// been the same in every version of the API; the library's types are of one.

// reference is another object: its id, or all of it where it was expanded.
type reference string

func (r *reference) UnmarshalJSON(text []byte) error {
	var object *struct {
		ID string `json:"id"`
	}
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, (*string)(r))
	}
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		return err
	}
	*r = reference(object.ID)
	return nil
}

type session struct {
	ID                string            `json:"id"`
	Mode              string            `json:"mode"`
	ClientReferenceID string            `json:"client_reference_id"`
	PaymentStatus     string            `json:"payment_status"`
	PaymentIntent     reference         `json:"payment_intent"`
	Customer          reference         `json:"customer"`
	Invoice           reference         `json:"invoice"`
	AmountTotal       int64             `json:"amount_total"`
	Currency          string            `json:"currency"`
	Metadata          map[string]string `json:"metadata"`
}

func (s session) event(kind string) billing.PaymentEvent {
	// The account may sell other things than ours. What a subscription is worth
	// is told by its own events.
	if s.Mode != "payment" || s.Metadata[metaOrder] == "" || s.Metadata[metaOrder] != s.ClientReferenceID {
		return irrelevant()
	}
	return billing.PaymentEvent{
		Kind:     s.kind(kind),
		Order:    s.ClientReferenceID,
		Team:     ids.Team(s.Metadata[metaTeam]),
		Session:  s.ID,
		Payment:  string(s.PaymentIntent),
		Customer: string(s.Customer),
		Amount:   s.AmountTotal,
		Currency: s.Currency,
		Invoice:  billing.InvoiceRef{ID: string(s.Invoice)},
	}
}

func (s session) kind(kind string) billing.PaymentKind {
	switch kind {
	case "checkout.session.async_payment_succeeded":
		return billing.CheckoutPaid
	case "checkout.session.async_payment_failed":
		return billing.CheckoutFailed
	case "checkout.session.expired":
		return billing.CheckoutExpired
	}
	// Completed means that the buyer is done, not that the money is there: bank
	// debits and the like take days.
	if s.PaymentStatus == "paid" || s.PaymentStatus == "no_payment_required" {
		return billing.CheckoutPaid
	}
	return billing.CheckoutPending
}

type charge struct {
	ID             string            `json:"id"`
	PaymentIntent  reference         `json:"payment_intent"`
	Customer       reference         `json:"customer"`
	Amount         int64             `json:"amount"`
	AmountRefunded int64             `json:"amount_refunded"`
	Currency       string            `json:"currency"`
	Metadata       map[string]string `json:"metadata"` // a copy of the payment's
}

func (c charge) event() billing.PaymentEvent {
	return billing.PaymentEvent{
		Kind:     billing.PaymentRefunded,
		Order:    c.Metadata[metaOrder],
		Team:     ids.Team(c.Metadata[metaTeam]),
		Payment:  string(c.PaymentIntent),
		Charge:   c.ID,
		Customer: string(c.Customer),
		Amount:   c.Amount,
		Refunded: c.AmountRefunded,
		Currency: c.Currency,
	}
}

type dispute struct {
	ID            string    `json:"id"`
	Charge        reference `json:"charge"`
	PaymentIntent reference `json:"payment_intent"`
	Amount        int64     `json:"amount"`
	Currency      string    `json:"currency"`
	Status        string    `json:"status"`
}

func (d dispute) event(kind string) billing.PaymentEvent {
	return billing.PaymentEvent{
		Kind:     d.kind(kind),
		Dispute:  d.ID,
		Charge:   string(d.Charge),
		Payment:  string(d.PaymentIntent),
		Amount:   d.Amount,
		Currency: d.Currency,
	}
}

func (d dispute) kind(kind string) billing.PaymentKind {
	switch kind {
	case "charge.dispute.funds_withdrawn":
		return billing.DisputeOpened
	case "charge.dispute.funds_reinstated":
		return billing.DisputeWon
	case "charge.dispute.closed":
		if d.Status == "lost" {
			return billing.DisputeLost
		}
		return billing.DisputeWon // or an inquiry that came to nothing
	}
	switch d.Status {
	case "warning_needs_response", "warning_under_review", "warning_closed":
		return billing.Irrelevant // a bank's question; no money has moved
	}
	return billing.DisputeOpened
}

type invoice struct {
	ID               string            `json:"id"`
	Number           string            `json:"number"`
	Customer         reference         `json:"customer"`
	AmountPaid       int64             `json:"amount_paid"`
	Currency         string            `json:"currency"`
	InvoicePDF       string            `json:"invoice_pdf"`
	HostedInvoiceURL string            `json:"hosted_invoice_url"`
	Metadata         map[string]string `json:"metadata"`

	// Of a subscription's invoice, in today's place and in the earlier one.
	Parent struct {
		SubscriptionDetails subscriptionDetails `json:"subscription_details"`
	} `json:"parent"`
	SubscriptionDetails subscriptionDetails `json:"subscription_details"`
	Subscription        reference           `json:"subscription"`
}

type subscriptionDetails struct {
	Subscription reference         `json:"subscription"`
	Metadata     map[string]string `json:"metadata"`
}

func (i invoice) event() billing.PaymentEvent {
	return billing.PaymentEvent{
		Kind:  billing.InvoicePaid,
		Order: i.Metadata[metaOrder],
		Team: ids.Team(first(
			i.Metadata[metaTeam], i.Parent.SubscriptionDetails.Metadata[metaTeam], i.SubscriptionDetails.Metadata[metaTeam],
		)),
		Customer:     string(i.Customer),
		Subscription: first(string(i.Parent.SubscriptionDetails.Subscription), string(i.Subscription)),
		Amount:       i.AmountPaid,
		Currency:     i.Currency,
		Invoice: billing.InvoiceRef{
			ID: i.ID, Number: i.Number, PDFURL: i.InvoicePDF, HostedURL: i.HostedInvoiceURL,
		},
	}
}

type subscription struct {
	ID       string            `json:"id"`
	Customer reference         `json:"customer"`
	Status   string            `json:"status"`
	Metadata map[string]string `json:"metadata"`
	Items    struct {
		Data []struct {
			Price struct {
				LookupKey string            `json:"lookup_key"`
				Metadata  map[string]string `json:"metadata"`
			} `json:"price"`
		} `json:"data"`
	} `json:"items"`
}

// earlierOf is the subscription as it was before an update, which names what
// it changed.
func earlierOf(raw []byte, before map[string]any) (s subscription, err error) {
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		return s, err
	}
	maps.Copy(object, before)
	text, err := json.Marshal(object)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
}

func (s subscription) event(kind string, earlier subscription) billing.PaymentEvent {
	// The first payment of an incomplete one is not made yet; when it is, an
	// update follows.
	if s.plan() == "" || s.Status == "incomplete" {
		return irrelevant()
	}
	e := billing.PaymentEvent{
		Kind:         billing.PlanChanged,
		Team:         ids.Team(s.Metadata[metaTeam]),
		Customer:     string(s.Customer),
		Subscription: s.ID,
		Plan:         s.worth(),
		State:        s.state(),
		Before:       earlier.state(),
		Began:        kind == "customer.subscription.created",
		Ended:        kind == "customer.subscription.deleted" || s.over(),
	}
	if e.Ended {
		e.Plan = credits.Free
	}
	return e
}

// worth is the plan that the subscription stands for at the moment.
func (s subscription) worth() credits.Plan {
	if !s.standing() {
		return credits.Free
	}
	return s.plan()
}

// state is what a change of it is told by.
func (s subscription) state() string { return s.Status + " " + string(s.plan()) }

// over reports whether nothing can come of the subscription any more.
func (s subscription) over() bool { return s.Status == "canceled" || s.Status == "incomplete_expired" }

// standing reports whether the subscription is good for its plan. A late
// payment leaves it so while Stripe tries again.
func (s subscription) standing() bool {
	return s.Status == "active" || s.Status == "trialing" || s.Status == "past_due"
}

// plan is what the subscription is for. The price says it better than the
// subscription, which keeps its metadata when the buyer moves to another price.
func (s subscription) plan() credits.Plan {
	for _, item := range s.Items.Data {
		if name := first(item.Price.Metadata[metaPlan], item.Price.LookupKey); name != "" {
			return credits.Plan(name)
		}
	}
	return credits.Plan(s.Metadata[metaPlan])
}

// first is the first of the texts that says something.
func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
