package main

import (
	"fmt"
	"os"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/payments/sandbox"
	"github.com/millrace/millrace/internal/payments/stripe"
	"github.com/millrace/millrace/internal/store"
)

// catalog is what things cost: the defaults, or the operator's file.
func (s *moneySettings) catalog() (credits.Catalog, error) {
	c := credits.DefaultCatalog()
	if s.PlansFile != "" {
		text, err := os.ReadFile(s.PlansFile)
		if err != nil {
			return c, fmt.Errorf("--plans-file: %w", err)
		}
		if c, err = credits.ParseCatalog(text); err != nil {
			return c, fmt.Errorf("--plans-file %s: %w", s.PlansFile, err)
		}
	}
	if s.PlanFreeRunSeconds != defaultFreeRunSeconds {
		c = c.WithRunSeconds(credits.Free, int64(s.PlanFreeRunSeconds))
	}
	if s.Billing == billingOff {
		c = c.WithoutBilling()
	}
	return c, nil
}

const (
	defaultFreeRunSeconds = 3600
	billingOff            = "off"
)

// billing makes the room with the provider that the settings name, and the
// pages of the sandbox if that is it.
func (s *settings) billing(db *store.DB, c credits.Catalog, room billing.Capacity, origins []string) (*billing.Service, httpapi.Pages) {
	o := billing.Options{Ledger: db, Budgets: db, Quotas: db, Costs: db, Orders: db, History: db, Capacity: room, Catalog: c, Now: db.Now}
	var pages httpapi.Pages
	switch s.payments(origins) {
	case "stripe":
		provider := stripe.New(s.StripeSecretKey, s.StripeWebhookSecret, s.StripeAPIURL)
		o.Payments, o.Events = provider, provider
	case "sandbox":
		o.Payments, o.Sandbox, pages = sandbox.Sandbox{}, true, sandbox.Sandbox{}
	}
	return billing.NewService(o), pages
}

// payments mint credits in the sandbox, so off loopback it must be asked for.
func (s *settings) payments(origins []string) string {
	switch {
	case s.Billing == billingOff:
		return "off"
	case s.Payments != "":
		return s.Payments
	case s.private(origins):
		return "sandbox"
	default:
		return "off"
	}
}
