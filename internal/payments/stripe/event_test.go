package stripe

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
)

const webhookSecret = "whsec_test"

var now = time.Date(2026, 3, 2, 9, 15, 30, 0, time.UTC)

func TestEventsAreToldInTheRoomsWords(t *testing.T) {
	t.Parallel()
	session := billing.PaymentEvent{
		Order: "ord_1", Team: "team_1", Session: "cs_1", Payment: "pi_1", Customer: "cus_1",
		Amount: 4500, Currency: "usd", Invoice: billing.InvoiceRef{ID: "in_1"},
	}
	dispute := billing.PaymentEvent{Dispute: "dp_1", Charge: "ch_1", Payment: "pi_1", Amount: 4500, Currency: "usd"}
	subscription := billing.PaymentEvent{Kind: billing.PlanChanged, Team: "team_1", Customer: "cus_1", Subscription: "sub_1"}
	for name, tt := range map[string]struct {
		kind, object string
		want         billing.PaymentEvent
	}{
		"a card is charged at once":       {"checkout.session.completed", sessionJSON("paid"), kind(session, billing.CheckoutPaid)},
		"a bank takes its time":           {"checkout.session.completed", sessionJSON("unpaid"), kind(session, billing.CheckoutPending)},
		"the bank has paid":               {"checkout.session.async_payment_succeeded", sessionJSON("paid"), kind(session, billing.CheckoutPaid)},
		"the bank has not":                {"checkout.session.async_payment_failed", sessionJSON("unpaid"), kind(session, billing.CheckoutFailed)},
		"nobody paid":                     {"checkout.session.expired", sessionJSON("unpaid"), kind(session, billing.CheckoutExpired)},
		"somebody else's checkout":        {"checkout.session.completed", `{"id": "cs_2", "mode": "payment", "payment_status": "paid"}`, irrelevant()},
		"a subscription's checkout":       {"checkout.session.completed", strings.Replace(sessionJSON("paid"), `"mode": "payment"`, `"mode": "subscription"`, 1), irrelevant()},
		"a checkout whose order is vague": {"checkout.session.completed", strings.Replace(sessionJSON("paid"), `"client_reference_id": "ord_1"`, `"client_reference_id": "ord_9"`, 1), irrelevant()},

		"a part went back": {"charge.refunded", chargeJSON(1500), refund(1500)},
		"all went back":    {"charge.refunded", chargeJSON(4500), refund(4500)},

		"a dispute opens":                   {"charge.dispute.created", disputeJSON("needs_response"), kind(dispute, billing.DisputeOpened)},
		"a bank only asks":                  {"charge.dispute.created", disputeJSON("warning_needs_response"), kind(dispute, billing.Irrelevant)},
		"the bank takes the money":          {"charge.dispute.funds_withdrawn", disputeJSON("needs_response"), kind(dispute, billing.DisputeOpened)},
		"the bank gives it back":            {"charge.dispute.funds_reinstated", disputeJSON("won"), kind(dispute, billing.DisputeWon)},
		"a dispute is won":                  {"charge.dispute.closed", disputeJSON("won"), kind(dispute, billing.DisputeWon)},
		"a dispute is lost":                 {"charge.dispute.closed", disputeJSON("lost"), kind(dispute, billing.DisputeLost)},
		"the bank's question is closed":     {"charge.dispute.closed", disputeJSON("warning_closed"), kind(dispute, billing.DisputeWon)},
		"an expanded charge is named alike": {"charge.dispute.closed", strings.Replace(disputeJSON("won"), `"ch_1"`, `{"id": "ch_1", "object": "charge"}`, 1), kind(dispute, billing.DisputeWon)},

		"there is an invoice": {"invoice.paid", invoiceJSON, billing.PaymentEvent{
			Kind: billing.InvoicePaid, Order: "ord_1", Team: "team_1", Customer: "cus_1", Amount: 4500, Currency: "usd",
			Invoice: billing.InvoiceRef{
				ID: "in_1", Number: "ABC-0001",
				PDFURL:    "https://pay.stripe.com/invoice/acct_1/test_1/pdf",
				HostedURL: "https://invoice.stripe.com/i/acct_1/test_1",
			},
		}},
		"a subscription's invoice": {"invoice.paid", subscriptionInvoiceJSON, billing.PaymentEvent{
			Kind: billing.InvoicePaid, Team: "team_1", Customer: "cus_1", Subscription: "sub_1", Amount: 9900, Currency: "usd",
			Invoice: billing.InvoiceRef{ID: "in_2"},
		}},
		"a subscription's invoice of an earlier version": {"invoice.paid", earlierInvoiceJSON, billing.PaymentEvent{
			Kind: billing.InvoicePaid, Team: "team_1", Customer: "cus_1", Subscription: "sub_1", Amount: 9900, Currency: "usd",
			Invoice: billing.InvoiceRef{ID: "in_3"},
		}},

		"a plan by its lookup key":       {"customer.subscription.created", subscriptionJSON("active", `{"lookup_key": "pro", "metadata": {}}`), began(as("active pro", plan(subscription, credits.Pro)))},
		"a plan by its price's metadata": {"customer.subscription.updated", subscriptionJSON("active", `{"lookup_key": "team_yearly", "metadata": {"plan": "team"}}`), as("active team", plan(subscription, credits.Team))},
		"a plan by its own metadata":     {"customer.subscription.updated", subscriptionJSON("trialing", `{"lookup_key": null, "metadata": {}}`), as("trialing lab", plan(subscription, "lab"))},
		"a late payment keeps the plan":  {"customer.subscription.updated", subscriptionJSON("past_due", `{"lookup_key": "pro"}`), as("past_due pro", plan(subscription, credits.Pro))},
		"an unpaid one loses it":         {"customer.subscription.updated", subscriptionJSON("unpaid", `{"lookup_key": "pro"}`), as("unpaid pro", plan(subscription, credits.Free))},
		"an ended one is free":           {"customer.subscription.deleted", subscriptionJSON("canceled", `{"lookup_key": "pro"}`), ended(as("canceled pro", plan(subscription, credits.Free)))},
		"one not yet paid says nothing":  {"customer.subscription.created", subscriptionJSON("incomplete", `{"lookup_key": "pro"}`), irrelevant()},

		"what we do not know": {"payout.paid", `{"id": "po_1"}`, irrelevant()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			payload := envelope(tt.kind, tt.object)
			got, err := account().Event(payload, sign(payload, now), now)
			if err != nil {
				t.Fatal(err)
			}
			tt.want.ID, tt.want.Created = "evt_1", time.Unix(1772442900, 0).UTC()
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("the event differs (-want +got):\n%s", diff)
			}
			again, err := account().Event(payload, sign(payload, now.Add(time.Minute)), now.Add(time.Minute))
			if err != nil || again != got {
				t.Errorf("sent again it reads %+v, %v", again, err)
			}
		})
	}
}

func TestAnUpdateSaysWhatWasBeforeIt(t *testing.T) {
	t.Parallel()
	for before, want := range map[string]string{
		`{}`:                            "active team",
		`{"status": "incomplete"}`:      "incomplete team",
		`{"default_payment_method": 1}`: "active team",
		`{"items": {"data": [{"price": {"lookup_key": "pro"}}]}}`: "active pro",
	} {
		object := subscriptionJSON("active", `{"lookup_key": "team"}`) + `, "previous_attributes": ` + before
		payload := envelope("customer.subscription.updated", object)
		got, err := account().Event(payload, sign(payload, now), now)
		if err != nil || got.State != "active team" || got.Before != want {
			t.Errorf("%s: from %q to %q, %v", before, got.Before, got.State, err)
		}
	}
}

func TestOnlyWhatStripeSignedIsRead(t *testing.T) {
	t.Parallel()
	payload := envelope("checkout.session.completed", sessionJSON("paid"))
	tampered := []byte(strings.Replace(string(payload), "4500", "450000", 1))
	good := sign(payload, now)
	for name, tt := range map[string]struct {
		payload   []byte
		signature string
	}{
		"no signature":             {payload, ""},
		"nonsense":                 {payload, "hello"},
		"another secret":           {payload, signWith("whsec_other", payload, now)},
		"an empty secret":          {payload, signWith("", payload, now)},
		"changed on the way":       {tampered, good},
		"a later time in its head": {payload, strings.Replace(good, fmt.Sprint(now.Unix()), fmt.Sprint(now.Unix()+60), 1)},
		"a second time added":      {payload, good + fmt.Sprintf(",t=%d", now.Unix()+60)},
		"too old":                  {payload, sign(payload, now.Add(-tolerance-time.Second))},
		"from the future":          {payload, sign(payload, now.Add(tolerance+time.Second))},
		"an earlier scheme":        {payload, strings.Replace(good, "v1=", "v0=", 1)},
		"signed, but no JSON":      {[]byte("hello"), sign([]byte("hello"), now)},
		"signed, but no event":     {[]byte(`{}`), sign([]byte(`{}`), now)},
		"signed, but misshapen":    {envelope("charge.refunded", `{"amount": "many"}`), sign(envelope("charge.refunded", `{"amount": "many"}`), now)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := account().Event(tt.payload, tt.signature, now)
			if !fault.Is(err, fault.KindInvalid) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestASecretMayBeRolled(t *testing.T) {
	t.Parallel()
	payload := envelope("payout.paid", `{}`)
	_, old, _ := strings.Cut(signWith("whsec_old", payload, now), ",")
	if _, err := account().Event(payload, sign(payload, now)+","+old, now); err != nil {
		t.Error(err)
	}
}

func TestWithoutASecretNothingIsTrusted(t *testing.T) {
	t.Parallel()
	payload := envelope("checkout.session.completed", sessionJSON("paid"))
	_, err := New("sk_test_1", "", "").Event(payload, signWith("", payload, now), now)
	if !fault.Is(err, fault.KindUnavailable) {
		t.Errorf("got %v", err)
	}
}

func account() *Stripe { return New("sk_test_1", webhookSecret, "") }

func kind(e billing.PaymentEvent, k billing.PaymentKind) billing.PaymentEvent {
	e.Kind = k
	return e
}

func plan(e billing.PaymentEvent, p credits.Plan) billing.PaymentEvent {
	e.Plan = p
	return e
}

// as is an event that says the same of the time before it.
func as(state string, e billing.PaymentEvent) billing.PaymentEvent {
	e.State, e.Before = state, state
	return e
}

func began(e billing.PaymentEvent) billing.PaymentEvent {
	e.Began = true
	return e
}

func ended(e billing.PaymentEvent) billing.PaymentEvent {
	e.Ended = true
	return e
}

func refund(all int64) billing.PaymentEvent {
	return billing.PaymentEvent{
		Kind: billing.PaymentRefunded, Order: "ord_1", Team: "team_1", Payment: "pi_1", Charge: "ch_1", Customer: "cus_1",
		Amount: 4500, Refunded: all, Currency: "usd",
	}
}

// sign makes the header that Stripe sends, as its documentation describes it.
func sign(payload []byte, at time.Time) string { return signWith(webhookSecret, payload, at) }

func signWith(secret string, payload []byte, at time.Time) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), payload)
	return fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
}

// envelope is an event of an older version of the API than the library's.
func envelope(kind, object string) []byte {
	return fmt.Appendf(nil, `{
  "id": "evt_1",
  "object": "event",
  "api_version": "2023-10-16",
  "created": 1772442900,
  "livemode": false,
  "pending_webhooks": 1,
  "request": {"id": null, "idempotency_key": null},
  "type": %q,
  "data": {"object": %s}
}`, kind, object)
}

func sessionJSON(status string) string {
	return fmt.Sprintf(`{
  "id": "cs_1", "object": "checkout.session", "mode": "payment", "status": "complete", "payment_status": %q,
  "client_reference_id": "ord_1", "customer": "cus_1", "payment_intent": "pi_1", "invoice": "in_1", "subscription": null,
  "amount_subtotal": 4500, "amount_total": 4500, "currency": "usd", "metadata": {"order": "ord_1", "team": "team_1"}
}`, status)
}

func chargeJSON(refunded int64) string {
	return fmt.Sprintf(`{
  "id": "ch_1", "object": "charge", "amount": 4500, "amount_captured": 4500, "amount_refunded": %d, "refunded": %v,
  "currency": "usd", "customer": "cus_1", "payment_intent": "pi_1", "metadata": {"order": "ord_1", "team": "team_1"}
}`, refunded, refunded == 4500)
}

func disputeJSON(status string) string {
	return fmt.Sprintf(`{
  "id": "dp_1", "object": "dispute", "amount": 4500, "charge": "ch_1", "currency": "usd", "payment_intent": "pi_1",
  "metadata": {}, "reason": "fraudulent", "status": %q
}`, status)
}

func subscriptionJSON(status, price string) string {
	return fmt.Sprintf(`{
  "id": "sub_1", "object": "subscription", "customer": "cus_1", "status": %q,
  "metadata": {"team": "team_1", "plan": "lab"},
  "items": {"object": "list", "data": [{"id": "si_1", "object": "subscription_item", "price": %s}]}
}`, status, price)
}

const (
	invoiceJSON = `{
  "id": "in_1", "object": "invoice", "number": "ABC-0001", "status": "paid", "customer": "cus_1",
  "amount_due": 4500, "amount_paid": 4500, "currency": "usd", "metadata": {"order": "ord_1", "team": "team_1"},
  "invoice_pdf": "https://pay.stripe.com/invoice/acct_1/test_1/pdf",
  "hosted_invoice_url": "https://invoice.stripe.com/i/acct_1/test_1", "parent": null, "subscription": null
}`
	subscriptionInvoiceJSON = `{
  "id": "in_2", "object": "invoice", "number": null, "customer": {"id": "cus_1", "object": "customer"},
  "amount_paid": 9900, "currency": "usd", "metadata": {}, "invoice_pdf": null, "hosted_invoice_url": null,
  "parent": {"type": "subscription_details", "subscription_details": {"subscription": "sub_1", "metadata": {"team": "team_1"}}}
}`
	earlierInvoiceJSON = `{
  "id": "in_3", "object": "invoice", "customer": "cus_1", "amount_paid": 9900, "currency": "usd", "metadata": {},
  "subscription": "sub_1", "subscription_details": {"metadata": {"team": "team_1"}}
}`
)
