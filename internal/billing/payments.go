package billing

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Payments is who takes the money.
type Payments interface {
	// Start opens a checkout for an order and says where the buyer goes.
	// Starting the same order again gives the same checkout. A provider that
	// cannot be reached is fault.KindUnavailable.
	Start(ctx context.Context, order Order) (CheckoutSession, error)
}

// PaymentEvents reads what a provider sends on its own account.
type PaymentEvents interface {
	// Event checks the signature before it reads anything else; one that is
	// missing, wrong or old is fault.KindInvalid. The same event may come many
	// times and in any order, and reads the same each time.
	Event(payload []byte, signature string, now time.Time) (PaymentEvent, error)
}

// Order is one package that somebody is about to buy for a team.
type Order struct {
	ID         string
	Team       ids.Team
	Package    credits.Package
	BuyerEmail string    // may be empty
	Origin     string    // the public URL that the buyer came by, without a slash at its end
	Secret     string    // of the address where our own checkout shows it
	SuccessURL string    // where the buyer returns to after paying
	CancelURL  string    // where the buyer returns to otherwise
	ExpiresAt  time.Time // 1 to 23 hours ahead, so that clocks may differ; zero leaves it to the provider
}

// CheckoutSession is a hosted page where an order is paid.
type CheckoutSession struct {
	ID  string // names the checkout in the provider's events
	URL string
}

// PaymentKind is what happened to a payment or a subscription.
type PaymentKind string

// What a provider tells us.
const (
	CheckoutPaid    PaymentKind = "checkout_paid"    // the money is there: credit the order, once
	CheckoutPending PaymentKind = "checkout_pending" // the buyer is done, the money is on its way
	CheckoutFailed  PaymentKind = "checkout_failed"  // it did not arrive
	CheckoutExpired PaymentKind = "checkout_expired" // nobody paid in time
	PaymentRefunded PaymentKind = "payment_refunded" // some or all of the money went back
	DisputeOpened   PaymentKind = "dispute_opened"   // the buyer's bank took the money back for now
	DisputeWon      PaymentKind = "dispute_won"      // the money is ours again
	DisputeLost     PaymentKind = "dispute_lost"     // the money is gone for good
	InvoicePaid     PaymentKind = "invoice_paid"     // there is an invoice to show
	PlanChanged     PaymentKind = "plan_changed"     // the team's subscription stands for Plan
	Irrelevant      PaymentKind = "irrelevant"       // nothing of ours; acknowledge and forget
)

// PaymentEvent is something that happened at the provider. Only the references
// that the provider gives are set. A refund or dispute is found by Order where
// it is set, else by Payment, which every paid checkout names.
type PaymentEvent struct {
	ID      string // the provider's, the same whenever it is sent again
	Kind    PaymentKind
	Created time.Time // in whole seconds; events arrive in any order

	Order        string
	Team         ids.Team
	Session      string // of a checkout: CheckoutSession.ID
	Payment      string
	Charge       string
	Dispute      string // several events tell of one dispute
	Customer     string
	Subscription string

	Amount   int64  // in the minor unit: of a checkout, charge, dispute or invoice
	Refunded int64  // of that, how much has gone back in all so far
	Currency string // ISO 4217, in lower case

	Plan    credits.Plan // with PlanChanged; Free when the subscription stands for nothing
	State   string       // with PlanChanged: the subscription's, in the provider's words
	Before  string       // with PlanChanged: its state until then
	Began   bool         // with PlanChanged: this is how it began
	Ended   bool         // with PlanChanged: it has ended for good
	Invoice InvoiceRef
}

// SubscriptionState is what the event says of its subscription.
func (e PaymentEvent) SubscriptionState() Subscription {
	return Subscription{ID: e.Subscription, Plan: e.Plan, State: e.State, Before: e.Before, Began: e.Began, Ended: e.Ended, EventAt: e.Created}
}

// InvoiceRef is where the provider keeps an invoice. A paid checkout may know
// its ID alone; InvoicePaid brings the rest.
type InvoiceRef struct {
	ID        string
	Number    string
	PDFURL    string
	HostedURL string
}

// CheckoutView is what our own checkout page shows. Only an open order has
// buttons.
type CheckoutView struct {
	State      OrderState
	Package    credits.Package
	TeamName   string
	BuyerEmail string    // may be empty
	ExpiresAt  time.Time // of an open one; may be zero
	Action     string    // where the form goes, with decision=pay or decision=cancel
	ReturnURL  string    // back to the app
	InvoiceURL string    // of a paid one; may be empty
	Problem    string    // what was wrong with the last try; may be empty
}

// InvoiceView is what our own invoice shows.
type InvoiceView struct {
	Number      string
	IssuedAt    time.Time
	PaidAt      time.Time // may be zero
	TeamName    string
	BuyerEmail  string // may be empty
	Description string
	Credits     credits.Amount
	Amount      int64 // in the minor unit
	Refunded    int64 // of that
	Currency    string
	PDFURL      string // for the page
	ReturnURL   string // for the page: back to the app
}
