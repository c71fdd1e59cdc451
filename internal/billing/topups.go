package billing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// OrderState is how far an order has come.
type OrderState string

// The states of an order. Money that comes late still counts: paid wins over
// all others.
const (
	OrderOpen      OrderState = "open"
	OrderPending   OrderState = "pending"
	OrderPaid      OrderState = "paid"
	OrderFailed    OrderState = "failed"
	OrderCancelled OrderState = "cancelled"
	OrderExpired   OrderState = "expired"
)

// Purchase is an order as we keep it.
type Purchase struct {
	Order
	Buyer      ids.User
	State      OrderState
	Session    string // the provider's name of the checkout
	SecretHash string // what its address is looked up by
	TeamName   string
	CreatedAt  time.Time
	PaidAt     time.Time
}

// Invoice is what was billed.
type Invoice struct {
	ID          string
	Team        ids.Team
	TeamName    string
	Number      string
	Status      string
	Amount      int64
	Currency    string
	Description string
	Credits     credits.Amount
	BuyerEmail  string
	Refunded    int64
	Secret      string // of the address where we show it
	PDFURL      string // at the provider, or where we show it
	HostedURL   string
	CreatedAt   time.Time
	PaidAt      time.Time
}

// OrderStore keeps orders, what providers tell of them, and invoices.
type OrderStore interface {
	InsertOrder(ctx context.Context, p Purchase) error
	// OpenedCheckout notes where an order is paid, with the answer to repeat.
	OpenedCheckout(ctx context.Context, order, session string, r *access.IdempotencyRecord, now time.Time) error
	// ApplyPayment takes in an event and brings the ledger in line with all that is
	// known of its order; told twice, or in another order, it ends the same.
	ApplyPayment(ctx context.Context, e PaymentEvent, now time.Time) error
	OrderBySecret(ctx context.Context, secretHash string) (Purchase, error)
	CancelOrder(ctx context.Context, order string) error
	InvoiceStore
}

// InvoiceStore keeps invoices.
type InvoiceStore interface {
	// Invoices lists those before an id, newest first.
	Invoices(ctx context.Context, team ids.Team, before string, limit int) ([]Invoice, error)
	InvoiceBySecret(ctx context.Context, secretHash string) (Invoice, error)
}

// Packages are what can be bought.
func (s *Service) Packages(caller access.Caller) ([]credits.Package, error) {
	return s.catalog.Packages, caller.Must(access.ManageBilling)
}

const orderLife = 23 * time.Hour // Stripe takes less than a day, by its own clock

// TopUp is what somebody wants to buy.
type TopUp struct {
	Package    int
	BuyerEmail string
	Base       string // the public URL the buyer came by

	// Once records the answer with the effect; nil without an idempotency key.
	Once func(url string) (*access.IdempotencyRecord, error)
}

// StartTopUp opens a checkout and says where it is paid.
func (s *Service) StartTopUp(ctx context.Context, caller access.Caller, in TopUp) (url string, err error) {
	if err := caller.Must(access.ManageBilling); err != nil {
		return "", err
	}
	if s.Off() {
		return "", fault.Unavailable("nothing costs credits on this server, and none can be bought").WithCode("payments_unavailable")
	}
	pack, ok := s.catalog.Package(in.Package)
	if !ok {
		d := fault.Detail{Path: "packageIndex", Message: "is none of the packages on offer"}
		return "", fault.Problems([]fault.Detail{d}, "packageIndex is none of the packages on offer")
	}
	if s.pay == nil {
		return "", fault.Unavailable("credits cannot be bought on this server: its operator can change that with --payments").WithCode("payments_unavailable")
	}
	p := s.purchase(caller, pack, in)
	if err := s.orders.InsertOrder(ctx, p); err != nil {
		return "", err
	}
	session, err := s.pay.Start(ctx, p.Order)
	if err != nil {
		return "", err
	}
	var record *access.IdempotencyRecord
	if in.Once != nil {
		if record, err = in.Once(session.URL); err != nil {
			return "", err
		}
	}
	return session.URL, s.orders.OpenedCheckout(ctx, p.ID, session.ID, record, p.CreatedAt)
}

func (s *Service) purchase(caller access.Caller, pack credits.Package, in TopUp) Purchase {
	now := s.now()
	secret := strings.ToLower(rand.Text() + rand.Text())
	return Purchase{
		Order: Order{
			ID: ids.NewOrder(), Team: caller.Team, Package: pack, BuyerEmail: in.BuyerEmail, Origin: in.Base, Secret: secret,
			SuccessURL: in.Base + "/billing/return?topup=done", CancelURL: in.Base + "/billing/return?topup=cancelled", ExpiresAt: now.Add(orderLife),
		},
		Buyer: caller.User, State: OrderOpen, SecretHash: hashed(secret), CreatedAt: now,
	}
}

func hashed(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Webhook takes in what the provider sends on its own account.
func (s *Service) Webhook(ctx context.Context, payload []byte, signature string) error {
	if s.events == nil {
		return fault.Unavailable("this server takes no payments (--payments off)").WithCode("payments_unavailable")
	}
	e, err := s.events.Event(payload, signature, s.now())
	if err != nil || e.Kind == Irrelevant {
		return err
	}
	return s.orders.ApplyPayment(ctx, e, s.now())
}

// Invoices are what was billed before one of them, or until now, newest first,
// with addresses on the public URL the caller came by.
func (s *Service) Invoices(ctx context.Context, caller access.Caller, before string, limit int, base string) (list []Invoice, more bool, err error) {
	if err := caller.Must(access.ManageBilling); err != nil {
		return nil, false, err
	}
	if s.Off() {
		return nil, false, nil
	}
	list, err = s.orders.Invoices(ctx, caller.Team, before, limit+1)
	if more = len(list) > limit; more {
		list = list[:limit]
	}
	for i := range list {
		s.address(&list[i], base)
	}
	return list, more, err
}

// address says where we show an invoice that no provider shows.
func (s *Service) address(i *Invoice, base string) {
	if i.HostedURL == "" && i.Secret != "" && s.sandbox {
		i.HostedURL = base + "/invoices/" + i.Secret
		i.PDFURL = i.HostedURL + ".pdf"
	}
}

// errNoCheckout is for addresses that lead to no checkout of ours.
var errNoCheckout = fault.NotFound("there is nothing at this address")

// Checkout is the order behind the address of a sandbox checkout. Whoever has
// the address may see and pay it.
func (s *Service) Checkout(ctx context.Context, secret string) (Purchase, error) {
	if !s.sandbox {
		return Purchase{}, errNoCheckout
	}
	p, err := s.orders.OrderBySecret(ctx, hashed(secret))
	if err == nil && p.State == OrderOpen && !s.now().Before(p.ExpiresAt) {
		p.State = OrderExpired
	}
	return p, err
}

// PayCheckout plays the provider for a sandbox checkout: it mints credits, so
// it works only where the sandbox was asked for.
func (s *Service) PayCheckout(ctx context.Context, secret string) (Purchase, error) {
	p, err := s.Checkout(ctx, secret)
	if err != nil || p.State != OrderOpen {
		return p, err
	}
	p.State = OrderPaid
	return p, s.orders.ApplyPayment(ctx, PaymentEvent{
		ID: "sandbox " + p.ID, Kind: CheckoutPaid, Created: s.now(), Order: p.ID, Team: p.Team, Payment: "sandbox " + p.ID,
		Amount: p.Package.AmountMinor, Currency: p.Package.Currency,
	}, s.now())
}

// CancelCheckout closes an unpaid sandbox checkout.
func (s *Service) CancelCheckout(ctx context.Context, secret string) (Purchase, error) {
	p, err := s.Checkout(ctx, secret)
	if err != nil || p.State != OrderOpen {
		return p, err
	}
	p.State = OrderCancelled
	return p, s.orders.CancelOrder(ctx, p.ID)
}

// Invoice is the one behind an address of ours.
func (s *Service) Invoice(ctx context.Context, secret, base string) (Invoice, error) {
	if !s.sandbox {
		return Invoice{}, errNoCheckout
	}
	i, err := s.orders.InvoiceBySecret(ctx, hashed(secret))
	s.address(&i, base)
	return i, err
}
