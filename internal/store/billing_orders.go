package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

var _ billing.OrderStore = (*DB)(nil)

func orderPlace(id string) string { return "orders/" + id }

// InsertOrder notes what somebody is about to buy, before the provider hears
// of it.
func (db *DB) InsertOrder(ctx context.Context, p billing.Purchase) error {
	audit.On(ctx, p.ID)
	_, err := db.changed(ctx, `
		INSERT INTO orders (id, team_id, buyer_id, package_index, package_name, credits, amount, currency,
			secret_hash, secret, state, created_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
		p.ID, p.Team, p.Buyer, p.Package.Index, p.Package.Name, p.Package.Credits, p.Package.AmountMinor, p.Package.Currency,
		p.SecretHash, db.sealer.seal(orderPlace(p.ID), []byte(p.Secret)), p.State, micros(p.CreatedAt), micros(p.ExpiresAt))
	return err
}

// OpenedCheckout notes where an order is paid, with the answer to repeat.
func (db *DB) OpenedCheckout(ctx context.Context, order, session string, r *access.IdempotencyRecord, now time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.record(ctx, r, now); err != nil {
			return err
		}
		_, err := tx.changed(ctx, `UPDATE orders SET session_id = $1 WHERE id = $2`, session, order)
		return err
	})
}

// orderRow is an order with what is known and booked of it.
type orderRow struct {
	billing.Purchase
	buyerName string
	refunded  int64
	dispute   string
	disputeAt int64
	booked    credits.Amount
	bookings  int64
}

const order = `
	SELECT o.id, o.team_id, t.name, o.buyer_id, u.name, ` + emailOf + `, o.package_index, o.package_name, o.credits, o.amount, o.currency,
	       o.secret_hash, o.session_id, o.state, o.created_at, o.expires_at, o.paid_at,
	       o.refunded, o.dispute, o.dispute_at, o.booked, o.bookings
	FROM orders o
	JOIN teams t ON t.id = o.team_id AND t.closed_at IS NULL
	JOIN users u ON u.id = o.buyer_id
	WHERE `

func (db *DB) orderRow(ctx context.Context, where string, arg any) (orderRow, error) {
	var o orderRow
	var created, expires int64
	var paid sql.NullInt64
	err := db.q.QueryRowContext(ctx, order+where, arg).
		Scan(&o.ID, &o.Team, &o.TeamName, &o.Buyer, &o.buyerName, &o.BuyerEmail, &o.Package.Index, &o.Package.Name, &o.Package.Credits,
			&o.Package.AmountMinor, &o.Package.Currency, &o.SecretHash, &o.Session, &o.State, &created, &expires, &paid,
			&o.refunded, &o.dispute, &o.disputeAt, &o.booked, &o.bookings)
	o.CreatedAt, o.ExpiresAt = fromMicros(created), fromMicros(expires)
	if paid.Valid {
		o.PaidAt = fromMicros(paid.Int64)
	}
	return o, db.asFault(err, "order")
}

// OrderBySecret is the order that an address of ours leads to.
func (db *DB) OrderBySecret(ctx context.Context, secretHash string) (billing.Purchase, error) {
	o, err := db.orderRow(ctx, `o.secret_hash = $1`, secretHash)
	return o.Purchase, err
}

// CancelOrder closes an order that was not paid.
func (db *DB) CancelOrder(ctx context.Context, id string) error {
	_, err := db.changed(ctx, `UPDATE orders SET state = $1 WHERE id = $2 AND state = $3`, billing.OrderCancelled, id, billing.OrderOpen)
	return err
}

// ApplyPayment applies an event of a provider. Facts are kept on the order, the largest
// refund and the newest state of a dispute; then the ledger is brought in line
// with them. So events may come twice, at once and in any order.
func (db *DB) ApplyPayment(ctx context.Context, e billing.PaymentEvent, now time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		switch {
		case e.Kind == billing.PlanChanged:
			return tx.applyPlanEvent(ctx, e, now)
		case e.Kind == billing.InvoicePaid && e.Order == "":
			return tx.subscriptionBilled(ctx, e, now)
		}
		o, err := tx.applyOrderEvent(ctx, e)
		if fault.Is(err, fault.KindNotFound) && e.Order != "" {
			return nil // of another shop, or of a team that is gone
		}
		if fault.Is(err, fault.KindNotFound) {
			return fault.Unavailable("nothing is known of this payment yet: send the event again later")
		}
		if err != nil {
			return err
		}
		inTeam(ctx, o.Team)
		audit.On(ctx, o.ID)
		p, err := tx.lockBalance(ctx, o.Team, now) // from here on, one at a time
		if err != nil {
			return err
		}
		if o, err = tx.orderRow(ctx, `o.id = $1`, o.ID); err != nil {
			return err
		}
		if err := tx.noteFacts(ctx, &o, e); err != nil {
			return err
		}
		if err := tx.noteInvoice(ctx, o, e.Invoice, now); err != nil {
			return err
		}
		return tx.bookOrder(ctx, p, o, now)
	})
}

func (db *DB) applyOrderEvent(ctx context.Context, e billing.PaymentEvent) (orderRow, error) {
	switch {
	case e.Order != "":
		return db.orderRow(ctx, `o.id = $1`, e.Order)
	case e.Session != "":
		return db.orderRow(ctx, `o.session_id = $1`, e.Session)
	case e.Payment != "":
		return db.orderRow(ctx, `o.payment_id = $1`, e.Payment)
	}
	return orderRow{}, fault.NotFound("no order")
}

// covers reports whether what was paid is what was asked for.
func (o *orderRow) covers(e billing.PaymentEvent) bool {
	return e.Amount >= o.Package.AmountMinor && e.Currency == o.Package.Currency
}

func (db *DB) noteFacts(ctx context.Context, o *orderRow, e billing.PaymentEvent) error {
	states := map[billing.PaymentKind]billing.OrderState{
		billing.CheckoutPending: billing.OrderPending, billing.CheckoutFailed: billing.OrderFailed, billing.CheckoutExpired: billing.OrderExpired,
	}
	switch next, passing := states[e.Kind]; {
	case e.Kind == billing.CheckoutPaid && o.State != billing.OrderPaid && o.covers(e):
		o.State, o.PaidAt = billing.OrderPaid, e.Created
	case passing && o.State != billing.OrderPaid && !(e.Kind == billing.CheckoutPending && o.State == billing.OrderFailed):
		o.State = next
	case e.Kind == billing.PaymentRefunded:
		o.refunded = max(o.refunded, e.Refunded)
	}
	disputes := map[billing.PaymentKind]string{billing.DisputeOpened: "opened", billing.DisputeWon: "won", billing.DisputeLost: "lost"}
	// A dispute that was decided is not opened again by old news.
	if word, ok := disputes[e.Kind]; ok && micros(e.Created) >= o.disputeAt && (word != "opened" || o.dispute == "") {
		o.dispute, o.disputeAt = word, micros(e.Created)
	}
	_, err := db.changed(ctx, `
		UPDATE orders SET state = $1, paid_at = $2, refunded = $3, dispute = $4, dispute_at = $5,
			payment_id = CASE WHEN $6 = '' THEN payment_id ELSE $6 END
		WHERE id = $7`,
		o.State, microsOrNull(o.PaidAt), o.refunded, o.dispute, o.disputeAt, e.Payment, o.ID)
	return err
}

// bookOrder makes the ledger say what the order stands for: its credits once
// the money is there, less what went back.
func (db *DB) bookOrder(ctx context.Context, p *teamBalance, o orderRow, now time.Time) error {
	var due credits.Amount
	if o.State == billing.OrderPaid && o.dispute != "opened" && o.dispute != "lost" {
		due = o.Package.Credits - o.Package.CreditsFor(min(o.refunded, o.Package.AmountMinor))
	}
	change := due - o.booked
	if change == 0 {
		return nil
	}
	_, err := db.changed(ctx, `UPDATE orders SET booked = $1, bookings = bookings + 1 WHERE id = $2`, due, o.ID)
	if err != nil {
		return err
	}
	e := billing.Entry{
		Type: billing.TopUpEntry, Source: "order", SourceID: fmt.Sprintf("%s/%d", o.ID, o.bookings+1), CreatedAt: now,
		Actor: billing.Actor{Type: "user", ID: string(o.Buyer), Name: o.buyerName}, Description: "top-up: " + o.Package.Name,
	}
	if change < 0 {
		e.Type, e.Description = billing.RefundEntry, "money returned for "+o.Package.Name
		return db.takeBack(ctx, p, e, -change)
	}
	p.Credits.TopUp += change
	_, err = db.appendEntry(ctx, p, e, credits.Split{TopUp: change})
	return err
}

// noteInvoice keeps one invoice for a paid order; what the provider says of it
// later is filled in.
func (db *DB) noteInvoice(ctx context.Context, o orderRow, ref billing.InvoiceRef, now time.Time) error {
	if o.State != billing.OrderPaid && ref.HostedURL == "" {
		return nil
	}
	if err := db.lock(ctx, "invoice numbers"); err != nil {
		return err
	}
	var next int64
	if err := db.q.QueryRowContext(ctx, `SELECT (SELECT COUNT(*) FROM invoices) + (SELECT COUNT(*) FROM kept_invoices) + 1`).Scan(&next); err != nil {
		return err
	}
	number := ref.Number
	if number == "" {
		number = fmt.Sprintf("MR-%d-%06d", now.UTC().Year(), next)
	}
	_, err := db.changed(ctx, `
		INSERT INTO invoices (id, team_id, order_id, number, status, amount, currency, description, pdf_url, hosted_url, created_at, paid_at)
		VALUES ($1, $2, $3, $4, 'paid', $5, $6, $7, $8, $9, $10, $10)
		ON CONFLICT (order_id) DO UPDATE SET
			number = CASE WHEN excluded.hosted_url = '' THEN invoices.number ELSE excluded.number END,
			pdf_url = CASE WHEN excluded.pdf_url = '' THEN invoices.pdf_url ELSE excluded.pdf_url END,
			hosted_url = CASE WHEN excluded.hosted_url = '' THEN invoices.hosted_url ELSE excluded.hosted_url END`,
		ids.NewInvoice(), o.Team, o.ID, number, o.Package.AmountMinor, o.Package.Currency, o.Package.Name, ref.PDFURL, ref.HostedURL, micros(now))
	return err
}

// subscriptionBilled keeps the invoice of a subscription, which the provider
// shows.
func (db *DB) subscriptionBilled(ctx context.Context, e billing.PaymentEvent, now time.Time) error {
	if _, err := db.balanceRow(ctx, e.Team, balanceOf); fault.Is(err, fault.KindNotFound) {
		return nil // of another shop, or of a team that is gone
	}
	_, err := db.changed(ctx, `
		INSERT INTO invoices (id, team_id, provider_id, number, status, amount, currency, description, pdf_url, hosted_url, created_at, paid_at)
		VALUES ($1, $2, $3, $4, 'paid', $5, $6, 'subscription', $7, $8, $9, $9)
		ON CONFLICT (provider_id) DO NOTHING`,
		ids.NewInvoice(), e.Team, e.Invoice.ID, e.Invoice.Number, e.Amount, e.Currency, e.Invoice.PDFURL, e.Invoice.HostedURL, micros(now))
	return err
}

const invoice = `
	SELECT i.id, i.team_id, t.name, ` + emailOf + `, COALESCE(i.order_id, ''), o.secret, COALESCE(o.refunded, 0),
	       i.number, i.status, i.amount, i.currency, i.description, COALESCE(o.credits, 0),
	       i.pdf_url, i.hosted_url, i.created_at, i.paid_at
	FROM invoices i
	JOIN teams t ON t.id = i.team_id AND t.closed_at IS NULL
	LEFT JOIN orders o ON o.id = i.order_id
	LEFT JOIN users u ON u.id = o.buyer_id
	WHERE `

func (db *DB) scanInvoice(row scanner, i *billing.Invoice) error {
	var created int64
	var paid sql.NullInt64
	var orderID string
	var sealed []byte
	err := row.Scan(&i.ID, &i.Team, &i.TeamName, &i.BuyerEmail, &orderID, &sealed, &i.Refunded, &i.Number, &i.Status, &i.Amount,
		&i.Currency, &i.Description, &i.Credits, &i.PDFURL, &i.HostedURL, &created, &paid)
	if err != nil {
		return err
	}
	i.CreatedAt = fromMicros(created)
	if paid.Valid {
		i.PaidAt = fromMicros(paid.Int64)
	}
	if orderID == "" {
		return nil
	}
	secret, err := db.sealer.open(orderPlace(orderID), sealed)
	i.Secret = string(secret)
	return err
}

// Invoices are a team's newest, before one of them.
func (db *DB) Invoices(ctx context.Context, team ids.Team, before string, limit int) ([]billing.Invoice, error) {
	before = orAfterAll(db, before)
	return all(ctx, db, func(r *sql.Rows, i *billing.Invoice) error { return db.scanInvoice(r, i) },
		invoice+`i.team_id = $1 AND i.id < $2 ORDER BY i.id DESC LIMIT $3 + 0`, team, before, limit)
}

// InvoiceBySecret is the one that an address of ours leads to.
func (db *DB) InvoiceBySecret(ctx context.Context, secretHash string) (billing.Invoice, error) {
	var i billing.Invoice
	err := db.scanInvoice(db.q.QueryRowContext(ctx, invoice+`o.secret_hash = $1`, secretHash), &i)
	return i, db.asFault(err, "invoice")
}
