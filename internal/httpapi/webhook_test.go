package httpapi_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/payments/stripe"
	"github.com/millrace/millrace/internal/store/storetest"
)

const webhookSecret = "whsec_test"

// deliver sends an event as Stripe would: signed, with its time.
func (h *harness) deliver(payload string, at time.Time) reply {
	h.t.Helper()
	mac := hmac.New(sha256.New, []byte(webhookSecret))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), payload)
	signature := fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil)))
	return h.call("POST", "/webhooks/stripe", payload, header("Stripe-Signature", signature))
}

func stripeEvent(id, kind string, created int, object string) string {
	return fmt.Sprintf(`{"id":%q,"object":"event","api_version":"2024-06-20","created":%d,"type":%q,"data":{"object":%s}}`, id, created, kind, object)
}

func TestStripeEventsCreditATeamOnce(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		h := houseOn(t, url)
		provider := stripe.New("sk_test_x", webhookSecret, "http://127.0.0.1:1")
		h2 := houseOn(t, url, func(o *httpapi.Options, _ *builtin.Options) {
			o.Billing = billing.NewService(billing.Options{
				Ledger: h.db, Budgets: h.db, Quotas: h.db, Costs: h.db, Orders: h.db, History: h.db, Catalog: credits.DefaultCatalog(), Payments: provider, Events: provider, Now: time.Now,
			})
		})
		ada := h2.signUp("Ada")
		pack, _ := credits.DefaultCatalog().Package(0)
		order := billing.Purchase{
			Order: billing.Order{ID: ids.NewOrder(), Team: ada.team, Package: pack, ExpiresAt: time.Now().Add(time.Hour)},
			Buyer: ada.id, State: billing.OrderOpen, SecretHash: "h", CreatedAt: time.Now(),
		}
		if err := h.db.InsertOrder(t.Context(), order); err != nil {
			t.Fatal(err)
		}
		meta := fmt.Sprintf(`{"order":%q,"team":%q}`, order.ID, ada.team)
		session := func(status string) string {
			return fmt.Sprintf(`{"id":"cs_1","object":"checkout.session","mode":"payment","client_reference_id":%q,"payment_status":%q,"payment_intent":"pi_1","amount_total":1000,"currency":"usd","metadata":%s}`, order.ID, status, meta)
		}
		dispute := `{"id":"dp_1","object":"dispute","charge":"ch_1","payment_intent":"pi_1","amount":1000,"currency":"usd","status":%q}`
		story := []string{
			stripeEvent("evt_1", "checkout.session.completed", 1000, session("unpaid")),
			stripeEvent("evt_2", "checkout.session.async_payment_succeeded", 1001, session("paid")),
			stripeEvent("evt_3", "charge.refunded", 1002, fmt.Sprintf(`{"id":"ch_1","object":"charge","payment_intent":"pi_1","amount":1000,"amount_refunded":100,"currency":"usd","metadata":%s}`, meta)),
			stripeEvent("evt_4", "charge.dispute.created", 1003, fmt.Sprintf(dispute, "needs_response")),
			stripeEvent("evt_5", "charge.dispute.closed", 1004, fmt.Sprintf(dispute, "won")),
			stripeEvent("evt_6", "customer.subscription.updated", 1005, fmt.Sprintf(`{"id":"sub_1","object":"subscription","customer":"cus_1","status":"active","metadata":{"team":%q},"items":{"data":[{"price":{"lookup_key":"pro"}}]}}`, ada.team)),
			stripeEvent("evt_7", "customer.subscription.created", 999, fmt.Sprintf(`{"id":"sub_1","object":"subscription","customer":"cus_1","status":"active","metadata":{"team":%q},"items":{"data":[{"price":{"lookup_key":"team"}}]}}`, ada.team)),
			stripeEvent("evt_8", "payout.paid", 1006, `{"id":"po_1","object":"payout"}`),
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		var later []string
		for range 5 {
			for _, i := range rand.Perm(len(story)) {
				wg.Go(func() {
					r := h2.deliver(story[i], time.Now())
					switch r.status {
					case 200:
					case 503: // a dispute before its payment is known: Stripe tries again
						mu.Lock()
						later = append(later, story[i])
						mu.Unlock()
					default:
						t.Errorf("%d %s", r.status, r.body)
					}
				})
			}
		}
		wg.Wait()
		for _, payload := range later {
			h2.deliver(payload, time.Now()).want(200)
		}
		r := h2.call("GET", "/api/billing/credits", "", bearer(ada.token)).want(200)
		if r.at("topUpCredits") != 900.0 || r.at("plan") != "pro" {
			t.Errorf("%s", r.body)
		}
		if n := len(h2.call("GET", "/api/billing/invoices", "", bearer(ada.token)).want(200).at("data").([]any)); n != 1 {
			t.Errorf("%d invoices", n)
		}

		h2.call("POST", "/webhooks/stripe", story[1]).want(400)
		h2.call("POST", "/webhooks/stripe", story[1], header("Stripe-Signature", "t=1,v1=00")).want(400)
		h2.deliver(story[1], time.Now().Add(-10*time.Minute)).want(400)
	})
}

// Events of one second come in any order, and Stripe's clock does not tell
// them apart.
func TestSubscriptionEventsOfOneSecondEndTheSameInAnyOrder(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		provider := stripe.New("sk_test_x", webhookSecret, "http://127.0.0.1:1")
		h := houseOn(t, url)
		h = houseOn(t, url, func(o *httpapi.Options, _ *builtin.Options) {
			o.Billing = billing.NewService(billing.Options{
				Ledger: h.db, Budgets: h.db, Quotas: h.db, Costs: h.db, Orders: h.db, History: h.db, Catalog: credits.DefaultCatalog(), Payments: provider, Events: provider, Now: time.Now,
			})
		})
		told := func(team ids.Team, id, kind, status, plan, before string) string {
			object := fmt.Sprintf(`{"id":%q,"object":"subscription","customer":"cus_1","status":%q,"metadata":{"team":%q},"items":{"data":[{"price":{"lookup_key":%q}}]}}`, id, status, team, plan)
			if before != "" {
				object += `,"previous_attributes":` + before
			}
			return stripeEvent("evt_"+kind+status+plan, "customer.subscription."+kind, 1000, object)
		}
		pro := `{"items":{"data":[{"price":{"lookup_key":"pro"}}]}}`
		for name, tt := range map[string]struct {
			events func(team ids.Team) [2]string
			want   string
		}{
			"begun and changed": {func(team ids.Team) [2]string {
				return [2]string{told(team, "sub_1", "created", "active", "pro", ""), told(team, "sub_1", "updated", "active", "team", pro)}
			}, "team"},
			"changed and ended": {func(team ids.Team) [2]string {
				return [2]string{told(team, "sub_1", "updated", "active", "team", pro), told(team, "sub_1", "deleted", "canceled", "team", "")}
			}, "free"},
			"unpaid and paid": {func(team ids.Team) [2]string {
				return [2]string{told(team, "sub_1", "updated", "unpaid", "pro", `{"status":"past_due"}`), told(team, "sub_1", "updated", "active", "pro", `{"status":"unpaid"}`)}
			}, "pro"},
			"one ended and another begun": {func(team ids.Team) [2]string {
				return [2]string{told(team, "sub_1", "deleted", "canceled", "pro", ""), told(team, "sub_2", "created", "active", "team", "")}
			}, "team"},
		} {
			for order, turn := range map[string][2]int{"in order": {0, 1}, "the other way round": {1, 0}} {
				ada := h.signUp(strings.ReplaceAll(name, " ", "") + fmt.Sprint(turn[0]))
				events := tt.events(ada.team)
				for _, i := range []int{turn[0], turn[1], turn[0]} { // and one of them again
					h.deliver(events[i], time.Now()).want(200)
				}
				if got := h.call("GET", "/api/billing/credits", "", bearer(ada.token)).want(200).at("plan"); got != tt.want {
					t.Errorf("%s, %s: the plan is %v, want %s", name, order, got, tt.want)
				}
			}
		}
	})
}
