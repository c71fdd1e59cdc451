package stripe

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Stripe's stand-in knows every field of the API and refuses what the API does.
func TestStripeTakesOurCheckout(t *testing.T) {
	t.Parallel()
	address := os.Getenv("MILLRACE_TEST_STRIPE")
	if address == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("MILLRACE_TEST_STRIPE is not set: run by scripts/with-stripe")
		}
		t.Skip("MILLRACE_TEST_STRIPE is not set: run by scripts/with-stripe")
	}
	for name, order := range map[string]billing.Order{
		"all that an order may say": anOrder(),
		"the least of it":           {ID: "ord_2", Team: "team_1", Package: aPackage(), SuccessURL: "https://x.test/a", CancelURL: "https://x.test/b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			session, err := New("sk_test_1", "", address).Start(context.Background(), order)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(session.ID, "cs_") {
				t.Errorf("the session is %+v", session)
			}
		})
	}
}

func TestTheOrderIsNamedWhereverItComesBack(t *testing.T) {
	t.Parallel()
	sent, header := startAt(t, anOrder())
	want := url.Values{
		"mode":                {"payment"},
		"client_reference_id": {"ord_1"},
		"customer_email":      {"ada@example.org"},
		"success_url":         {"https://millrace.test/billing?topup=done"},
		"cancel_url":          {"https://millrace.test/billing?topup=cancelled"},
		"expires_at":          {"1772529300"},

		"line_items[0][quantity]":                       {"1"},
		"line_items[0][price_data][currency]":           {"usd"},
		"line_items[0][price_data][unit_amount]":        {"4500"},
		"line_items[0][price_data][product_data][name]": {"5,000 credits"},

		"metadata[order]":                      {"ord_1"},
		"metadata[team]":                       {"team_1"},
		"payment_intent_data[description]":     {"5,000 credits"},
		"payment_intent_data[metadata][order]": {"ord_1"},
		"payment_intent_data[metadata][team]":  {"team_1"},

		"invoice_creation[enabled]":                       {"true"},
		"invoice_creation[invoice_data][description]":     {"5,000 credits"},
		"invoice_creation[invoice_data][metadata][order]": {"ord_1"},
		"invoice_creation[invoice_data][metadata][team]":  {"team_1"},

		"adaptive_pricing[enabled]": {"false"},
	}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("what was sent differs (-want +got):\n%s", diff)
	}
	if key := header.Get("Idempotency-Key"); key != "ord_1" {
		t.Errorf("the idempotency key is %q", key)
	}
	if key := header.Get("Authorization"); key != "Bearer sk_test_1" {
		t.Errorf("the key is sent as %q", key)
	}
}

func TestAProviderThatRefusesIsUnavailableAndKeepsItsReason(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error": {"type": "invalid_request_error", "message": "Invalid API Key provided"}}`)
	}))
	t.Cleanup(server.Close)
	_, err := New("sk_wrong", "", server.URL).Start(context.Background(), anOrder())
	if !fault.Is(err, fault.KindUnavailable) {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), "Invalid API Key provided") {
		t.Errorf("the log would not say why: %v", err)
	}
}

func TestNobodyWaitsForAProviderAfterLeaving(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := New("sk_test_1", "", "http://127.0.0.1:1").Start(ctx, anOrder())
	if !fault.Is(err, fault.KindUnavailable) {
		t.Errorf("got %v", err)
	}
}

// startAt starts an order at a stand-in that keeps what it was sent.
func startAt(t *testing.T, order billing.Order) (sent url.Values, header http.Header) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		sent, header = r.PostForm, r.Header
		_, _ = io.WriteString(w, `{"id": "cs_test_1", "object": "checkout.session", "url": "https://checkout.stripe.com/c/pay/cs_test_1"}`)
	}))
	t.Cleanup(server.Close)
	session, err := New("sk_test_1", "", server.URL).Start(context.Background(), order)
	if err != nil {
		t.Fatal(err)
	}
	want := billing.CheckoutSession{ID: "cs_test_1", URL: "https://checkout.stripe.com/c/pay/cs_test_1"}
	if session != want {
		t.Errorf("got %+v", session)
	}
	return sent, header
}

func aPackage() credits.Package { return credits.DefaultCatalog().Packages[1] }

func anOrder() billing.Order {
	return billing.Order{
		ID: "ord_1", Team: ids.Team("team_1"), Package: aPackage(), BuyerEmail: "ada@example.org",
		SuccessURL: "https://millrace.test/billing?topup=done",
		CancelURL:  "https://millrace.test/billing?topup=cancelled",
		ExpiresAt:  time.Date(2026, 3, 3, 9, 15, 0, 0, time.UTC),
	}
}
