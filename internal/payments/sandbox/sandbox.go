// Package sandbox is a payment provider without money: a checkout page of our
// own, marked as what it is, and invoices for it. It writes the pages and the
// PDF; who serves them, and what a payment means, is decided elsewhere.
package sandbox

import (
	"context"

	"github.com/millrace/millrace/internal/billing"
)

// Sandbox is the built-in provider. It keeps nothing and sends no events.
type Sandbox struct{}

var _ billing.Payments = Sandbox{}

// Start gives the address of the order's checkout page, which whoever knows it
// may see and pay.
func (Sandbox) Start(_ context.Context, order billing.Order) (billing.CheckoutSession, error) {
	return billing.CheckoutSession{ID: "sandbox_" + order.ID, URL: order.Origin + "/checkout/" + order.Secret}, nil
}
