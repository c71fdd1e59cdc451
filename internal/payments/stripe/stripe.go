// Package stripe takes payments through Stripe Checkout and reads the events
// that Stripe sends. It decides nothing: what an event means for a team's
// credits is the billing room's affair.
package stripe

import (
	"context"
	"net/http"
	"time"

	stripego "github.com/stripe/stripe-go/v85"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/fault"
)

// The two names under which an order is found again. They are put on the
// session, the payment and the invoice, because each comes back in events of
// its own.
const (
	metaOrder = "order"
	metaTeam  = "team"
	metaPlan  = "plan"
)

const (
	patience = 20 * time.Second // with one request to Stripe
	retries  = 2                // safe: every request carries an idempotency key
)

// Stripe is an account there.
type Stripe struct {
	backend       stripego.Backend
	secretKey     string
	webhookSecret string
}

var (
	_ billing.Payments      = (*Stripe)(nil)
	_ billing.PaymentEvents = (*Stripe)(nil)
)

// New makes one. An empty apiURL is Stripe's own address. Nothing is asked of
// Stripe yet, so a wrong key shows at the first checkout.
func New(secretKey, webhookSecret, apiURL string) *Stripe {
	config := &stripego.BackendConfig{
		HTTPClient:        &http.Client{Timeout: patience},
		MaxNetworkRetries: stripego.Int64(retries),
		EnableTelemetry:   stripego.Bool(false),
		// What goes wrong is returned; it is logged where it stops.
		LeveledLogger: &stripego.LeveledLogger{Level: stripego.LevelNull},
	}
	if apiURL != "" {
		config.URL = stripego.String(apiURL)
	}
	backend := stripego.GetBackendWithConfig(stripego.APIBackend, config)
	return &Stripe{backend: backend, secretKey: secretKey, webhookSecret: webhookSecret}
}

// opened is what we want to know of a session. The library's client, and its
// own type for this, bring everything with them that Stripe can do: an eighth
// of our binary.
type opened struct {
	stripego.APIResource
	ID  string `json:"id"`
	URL string `json:"url"`
}

// Start opens a Checkout Session. The order's id is its idempotency key, so
// starting the same order again gives the same session for as long as Stripe
// remembers it, which is a day.
func (s *Stripe) Start(ctx context.Context, order billing.Order) (billing.CheckoutSession, error) {
	params := checkout(order)
	params.Context = ctx
	var session opened
	if err := s.backend.Call(http.MethodPost, "/v1/checkout/sessions", s.secretKey, params, &session); err != nil {
		return billing.CheckoutSession{}, fault.Unavailable("the payment service did not open a checkout; try again in a few minutes").
			WithCode("payments_unavailable").WithCause(err)
	}
	return billing.CheckoutSession{ID: session.ID, URL: session.URL}, nil
}

func checkout(order billing.Order) *stripego.CheckoutSessionCreateParams {
	about := map[string]string{metaOrder: order.ID, metaTeam: string(order.Team)}
	params := &stripego.CheckoutSessionCreateParams{
		Mode:              stripego.String(string(stripego.CheckoutSessionModePayment)),
		ClientReferenceID: stripego.String(order.ID),
		SuccessURL:        stripego.String(order.SuccessURL),
		CancelURL:         stripego.String(order.CancelURL),
		LineItems:         []*stripego.CheckoutSessionCreateLineItemParams{lineItem(order)},
		Metadata:          about,
		PaymentIntentData: &stripego.CheckoutSessionCreatePaymentIntentDataParams{
			Description: stripego.String(order.Package.Name),
			Metadata:    about,
		},
		// Without this a one-time payment has a receipt but no invoice.
		InvoiceCreation: &stripego.CheckoutSessionCreateInvoiceCreationParams{
			Enabled: stripego.Bool(true),
			InvoiceData: &stripego.CheckoutSessionCreateInvoiceCreationInvoiceDataParams{
				Description: stripego.String(order.Package.Name),
				Metadata:    about,
			},
		},
		// Refunds are counted against the package's price, in its currency.
		AdaptivePricing: &stripego.CheckoutSessionCreateAdaptivePricingParams{Enabled: stripego.Bool(false)},
	}
	if order.BuyerEmail != "" {
		params.CustomerEmail = stripego.String(order.BuyerEmail)
	}
	if !order.ExpiresAt.IsZero() {
		params.ExpiresAt = stripego.Int64(order.ExpiresAt.Unix())
	}
	params.SetIdempotencyKey(order.ID)
	return params
}

func lineItem(order billing.Order) *stripego.CheckoutSessionCreateLineItemParams {
	return &stripego.CheckoutSessionCreateLineItemParams{
		Quantity: stripego.Int64(1),
		PriceData: &stripego.CheckoutSessionCreateLineItemPriceDataParams{
			Currency:   stripego.String(order.Package.Currency),
			UnitAmount: stripego.Int64(order.Package.AmountMinor),
			ProductData: &stripego.CheckoutSessionCreateLineItemPriceDataProductDataParams{
				Name: stripego.String(order.Package.Name),
			},
		},
	}
}
