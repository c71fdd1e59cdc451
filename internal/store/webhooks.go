package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/webhooks"
)

var (
	_ webhooks.Store         = (*DB)(nil)
	_ webhooks.DeliveryStore = (*DB)(nil)
	_ webhooks.Outbox        = (*DB)(nil)
)

func webhookPlace(id ids.Webhook) string { return "webhooks/" + string(id) }

// webhookAddressPlace is where an address is sealed: whoever has that of a chat may
// write there.
func webhookAddressPlace(id ids.Webhook) string { return "webhook addresses/" + string(id) }

// InsertWebhook adds a webhook to a team.
func (db *DB) InsertWebhook(ctx context.Context, w webhooks.Webhook, most int) error {
	audit.On(ctx, w.ID)
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.lock(ctx, "webhooks of "+string(w.Team)); err != nil {
			return err
		}
		if err := tx.mustBeOpen(ctx, w.Team); err != nil {
			return err
		}
		var n int
		if err := tx.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM webhooks WHERE team_id = $1`, w.Team).Scan(&n); err != nil {
			return err
		}
		if n >= most {
			return fault.Conflict("a team has at most %d webhooks: delete one that is not used any more", most).WithCode("too_many_webhooks")
		}
		_, err := tx.q.ExecContext(ctx, `
			INSERT INTO webhooks (id, team_id, url, sealed_url, events, enabled, sealed, created_by, created_at, updated_at, format, template)
			VALUES ($1, $2, '', $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
			w.ID, w.Team, tx.sealer.seal(webhookAddressPlace(w.ID), []byte(w.URL)), tagsText(w.Events), w.Enabled, tx.sealer.seal(webhookPlace(w.ID), []byte(w.Secret)), w.CreatedBy, micros(w.CreatedAt), micros(w.UpdatedAt),
			string(w.Format), w.Template)
		return err
	})
}

const webhookRow = `
	SELECT w.id, w.team_id, w.url, w.sealed_url, w.events, w.enabled, w.why, w.sealed, w.created_by, u.name, w.created_at, w.updated_at, w.format, w.template, w.timeouts, w.paused_until
	FROM webhooks w JOIN users u ON u.id = w.created_by `

func (db *DB) scanWebhook(row scanner, w *webhooks.Webhook) error {
	var sealed, address []byte
	var created, updated, paused int64
	err := row.Scan((*string)(&w.ID), (*string)(&w.Team), &w.URL, &address, (*tagList)(&w.Events), &w.Enabled, &w.Why, &sealed, (*string)(&w.CreatedBy), &w.CreatedByName, &created, &updated,
		(*string)(&w.Format), &w.Template, &w.Timeouts, &paused)
	if err != nil {
		return err
	}
	w.CreatedAt, w.UpdatedAt = fromMicros(created), fromMicros(updated)
	if paused > 0 {
		w.PausedUntil = fromMicros(paused)
	}
	if w.URL == "" { // otherwise written by an earlier version, and not sealed yet
		plain, err := db.sealer.open(webhookAddressPlace(w.ID), address)
		if err != nil {
			return err
		}
		w.URL = string(plain)
	}
	secret, err := db.sealer.open(webhookPlace(w.ID), sealed)
	w.Secret = string(secret)
	return err
}

// Webhooks are a team's, newest first.
func (db *DB) Webhooks(ctx context.Context, team ids.Team) ([]webhooks.Webhook, error) {
	return all(ctx, db, func(r *sql.Rows, w *webhooks.Webhook) error { return db.scanWebhook(r, w) }, webhookRow+`WHERE w.team_id = $1 ORDER BY w.id DESC`, team)
}

// Webhook is one of a team.
func (db *DB) Webhook(ctx context.Context, team ids.Team, id ids.Webhook) (w webhooks.Webhook, err error) {
	err = db.scanWebhook(db.q.QueryRowContext(ctx, webhookRow+`WHERE w.team_id = $1 AND w.id = $2`, team, id), &w)
	return w, db.asFault(err, "webhook")
}

// SaveWebhook changes a webhook.
func (db *DB) SaveWebhook(ctx context.Context, w webhooks.Webhook) error {
	n, err := db.changed(ctx, `UPDATE webhooks SET url = '', sealed_url = $1, events = $2, enabled = $3, why = $4, updated_at = $5, format = $6, template = $7, timeouts = $8, paused_until = $9 WHERE team_id = $10 AND id = $11`,
		db.sealer.seal(webhookAddressPlace(w.ID), []byte(w.URL)), tagsText(w.Events), w.Enabled, w.Why, micros(w.UpdatedAt), string(w.Format), w.Template, w.Timeouts, pauseMicros(w), w.Team, w.ID)
	if err == nil && n == 0 {
		err = fault.NotFound("no such webhook")
	}
	return err
}

// pauseMicros is when the pause of a webhook ends; 0: there is none.
func pauseMicros(w webhooks.Webhook) int64 {
	if w.PausedUntil.IsZero() {
		return 0
	}
	return micros(w.PausedUntil)
}

// sealAddresses seals the addresses of webhooks that an earlier version wrote down
// plainly. It may be ended at any moment, and goes on the next time.
func (db *DB) sealAddresses(ctx context.Context) error {
	for {
		list, err := all(ctx, db, func(r *sql.Rows, w *webhooks.Webhook) error { return r.Scan((*string)(&w.ID), &w.URL) },
			`SELECT id, url FROM webhooks WHERE url <> '' ORDER BY id LIMIT 200`)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, w := range list {
			_, err := db.changed(audit.Without(ctx), `UPDATE webhooks SET url = '', sealed_url = $1 WHERE id = $2 AND url = $3`,
				db.sealer.seal(webhookAddressPlace(w.ID), []byte(w.URL)), w.ID, w.URL)
			if err != nil {
				return err
			}
		}
	}
}

// DeleteWebhook ends a webhook, with its messages.
func (db *DB) DeleteWebhook(ctx context.Context, team ids.Team, id ids.Webhook) error {
	n, err := db.changed(ctx, `DELETE FROM webhooks WHERE team_id = $1 AND id = $2`, team, id)
	if err == nil && n == 0 {
		err = fault.NotFound("no such webhook")
	}
	return err
}

const deliveryRow = `
	SELECT d.id, d.webhook_id, d.team_id, d.run_id, d.seq, d.type, d.payload, d.status, d.attempts, d.next_at, d.give_up_at, d.created_at, d.delivered_at,
	       d.response_status, d.answer, d.error
	FROM webhook_deliveries d `

func scanDelivery(row scanner, d *webhooks.Delivery) error {
	var next, giveUp, created int64
	var delivered sql.NullInt64
	err := row.Scan(&d.ID, (*string)(&d.Webhook), (*string)(&d.Team), (*string)(&d.Run), &d.Seq, &d.Type, &d.Payload, (*string)(&d.Status), &d.Attempts,
		&next, &giveUp, &created, &delivered, &d.ResponseStatus, &d.Answer, &d.Error)
	d.NextAt, d.GiveUpAt, d.CreatedAt, d.DeliveredAt = fromMicros(next), fromMicros(giveUp), fromMicros(created), fromNull(delivered)
	return err
}

// Deliveries are a webhook's before one of them, newest first.
func (db *DB) Deliveries(ctx context.Context, team ids.Team, id ids.Webhook, before string, limit int) ([]webhooks.Delivery, error) {
	where, args := `WHERE d.team_id = $1 AND d.webhook_id = $2 `, []any{team, id, limit}
	if before != "" {
		where += `AND (d.created_at, d.id) < (SELECT b.created_at, b.id FROM webhook_deliveries b WHERE b.webhook_id = $2 AND b.id = $4) `
		args = append(args, before)
	}
	return all(ctx, db, func(r *sql.Rows, d *webhooks.Delivery) error { return scanDelivery(r, d) },
		deliveryRow+where+`ORDER BY d.created_at DESC, d.id DESC LIMIT $3 + 0`, args...)
}

// Delivery is one of a webhook.
func (db *DB) Delivery(ctx context.Context, team ids.Team, id ids.Webhook, delivery string) (d webhooks.Delivery, err error) {
	err = scanDelivery(db.q.QueryRowContext(ctx, deliveryRow+`WHERE d.team_id = $1 AND d.webhook_id = $2 AND d.id = $3`, team, id, delivery), &d)
	return d, db.asFault(err, "delivery")
}

// InsertDelivery adds a message that is of no run.
func (db *DB) InsertDelivery(ctx context.Context, d webhooks.Delivery) error {
	_, err := db.changed(ctx, `
		INSERT INTO webhook_deliveries (id, webhook_id, team_id, run_id, seq, type, payload, status, next_at, give_up_at, created_at)
		VALUES ($1, $2, $3, '', 0, $4, $5, $6, $7, $8, $9)`,
		d.ID, d.Webhook, d.Team, d.Type, string(d.Payload), string(d.Status), micros(d.NextAt), micros(d.GiveUpAt), micros(d.CreatedAt))
	return err
}

// Resend makes a message wait for its turn again.
func (db *DB) Resend(ctx context.Context, team ids.Team, id ids.Webhook, delivery string, now, giveUp time.Time) error {
	n, err := db.changed(ctx, `
		UPDATE webhook_deliveries SET status = 'pending', next_at = $1, give_up_at = $2, delivered_at = NULL
		WHERE team_id = $3 AND webhook_id = $4 AND id = $5`, micros(now), micros(giveUp), team, id, delivery)
	if err == nil && n == 0 {
		err = fault.NotFound("no such delivery")
	}
	return err
}

// hasWebhooks is whether a team has webhooks for its events, as part of a
// statement that writes one: most have nobody, and pay nothing for those who do.
func hasWebhooks(table string) string {
	return `EXISTS (SELECT 1 FROM webhooks h WHERE h.team_id = ` + table + `.team_id AND h.enabled)`
}

// announce writes a message to each webhook that wants to know of an event of a
// run, in the transaction of the event. It waits as long as the one before it that
// could not be delivered, as those do that were there already: see moveLater.
func (db *DB) announce(ctx context.Context, r runs.Run, seq int64, kind lifecycle.EventType, at time.Time) error {
	_, err := db.changed(ctx, `
		INSERT INTO webhook_deliveries (id, webhook_id, team_id, run_id, seq, type, payload, status, next_at, give_up_at, created_at)
		SELECT CAST($1 AS TEXT) || w.id, w.id, w.team_id, CAST($2 AS TEXT), CAST($3 AS BIGINT), CAST($4 AS TEXT), CAST($5 AS TEXT), 'pending',
		       COALESCE((SELECT MAX(e.next_at) FROM webhook_deliveries e
		           WHERE e.webhook_id = w.id AND e.run_id = $2 AND e.status = 'pending' AND e.seq < $3 AND e.next_at > $6), CAST($6 AS BIGINT)), CAST($7 AS BIGINT), CAST($6 AS BIGINT)
		FROM webhooks w WHERE w.team_id = $8 AND w.enabled AND (w.events = '[]' OR REPLACE(w.events, $9, '') <> w.events)
		ON CONFLICT (id) DO NOTHING`,
		fmt.Sprintf("msg_%s_%d_", r.ID, seq), r.ID, seq, string(kind), string(webhooks.RunPayload(r, kind, at)), micros(at), micros(at.Add(webhooks.Patience)),
		r.Team, `"`+string(kind)+`"`)
	return err
}

// isDue picks the messages d whose turn has come: of each run the earliest that is
// not delivered.
const isDue = `d.status = 'pending' AND d.next_at <= $1
	AND NOT EXISTS (SELECT 1 FROM webhook_deliveries e WHERE e.webhook_id = d.webhook_id AND e.run_id = d.run_id AND e.run_id <> ''
		AND e.status = 'pending' AND e.seq < d.seq)`

// claimable picks the webhooks w that nobody sends to at a time $1, that are not paused,
// and whose team has less than webhooks.TeamAtOnce others that are sent to.
var claimable = fmt.Sprintf(`w.enabled AND w.busy_until <= $1 AND w.paused_until <= $1
	AND (SELECT COUNT(*) FROM webhooks o WHERE o.team_id = w.team_id AND o.busy_until > $1) < %d`, webhooks.TeamAtOnce)

// ClaimDeliveries takes the webhook that has something due and was released longest
// ago, for one process.
func (db *DB) ClaimDeliveries(ctx context.Context, now, until time.Time, most int) (w webhooks.Webhook, list []webhooks.Delivery, err error) {
	// Reading first keeps an idle server from writing.
	var id ids.Webhook
	find := `SELECT w.id FROM webhooks w WHERE ` + claimable + ` AND EXISTS (SELECT 1 FROM webhook_deliveries d WHERE d.webhook_id = w.id AND ` + isDue + `) ORDER BY w.busy_until LIMIT 1`
	err = db.q.QueryRowContext(ctx, find, micros(now)).Scan((*string)(&id))
	if errors.Is(err, sql.ErrNoRows) {
		return w, nil, nil
	}
	if err != nil {
		return w, nil, err
	}
	err = db.inTx(ctx, func(tx *DB) error {
		w, list = webhooks.Webhook{}, nil
		n, err := tx.changed(ctx, `UPDATE webhooks AS w SET busy_until = $2 WHERE id = $3 AND `+claimable, micros(now), micros(until), id)
		if err != nil || n == 0 {
			return err
		}
		if err := tx.scanWebhook(tx.q.QueryRowContext(ctx, webhookRow+`WHERE w.id = $1`, id), &w); err != nil {
			return err
		}
		// In the order of their index, so that however many wait, no more are looked at than are taken.
		list, err = all(ctx, tx, func(r *sql.Rows, d *webhooks.Delivery) error { return scanDelivery(r, d) },
			deliveryRow+`WHERE d.webhook_id = $2 AND `+isDue+` ORDER BY d.next_at, d.id LIMIT $3 + 0`, micros(now), id, most)
		return err
	})
	return w, list, err
}

// ReleaseWebhook ends a claim that has not run out and gone to somebody else.
func (db *DB) ReleaseWebhook(ctx context.Context, id ids.Webhook, until, now time.Time) error {
	_, err := db.changed(ctx, `UPDATE webhooks SET busy_until = $1 WHERE id = $2 AND busy_until = $3`, micros(now), id, micros(until))
	return err
}

// Attempted writes down how an attempt went, pauses a webhook whose address does not
// answer in time, and disables one whose address is gone. A process that was stopped in
// the middle, and whose claim went to another, changes nothing.
func (db *DB) Attempted(ctx context.Context, d webhooks.Delivery, w webhooks.Webhook, disable string) error {
	return db.inTx(audit.Without(ctx), func(tx *DB) error {
		n, err := tx.changed(ctx, `
			UPDATE webhook_deliveries SET status = $1, attempts = $2, next_at = $3, delivered_at = $4, response_status = $5, answer = $6, error = $7
			WHERE id = $8 AND status = $9 AND attempts = $10`,
			string(d.Status), d.Attempts, micros(d.NextAt), microsOrNull(d.DeliveredAt), d.ResponseStatus, d.Answer, d.Error, d.ID, string(webhooks.Pending), d.Attempts-1)
		if err != nil || n == 0 {
			return err
		}
		if err := tx.moveLater(ctx, d); err != nil {
			return err
		}
		// Most answer in time, and nothing changes.
		_, err = tx.changed(ctx, `UPDATE webhooks SET timeouts = $1, paused_until = $2 WHERE id = $3 AND (timeouts <> $1 OR paused_until <> $2)`, w.Timeouts, pauseMicros(w), d.Webhook)
		if err != nil || disable == "" {
			return err
		}
		_, err = tx.changed(ctx, `UPDATE webhooks SET enabled = FALSE, why = $1 WHERE id = $2`, disable, d.Webhook)
		return err
	})
}

// moveLater has the later messages of a run wait as long as the one that holds
// them back, so that nobody looks at them meanwhile, and no longer.
func (db *DB) moveLater(ctx context.Context, d webhooks.Delivery) error {
	later := ` WHERE webhook_id = $1 AND run_id = $2 AND run_id <> '' AND status = 'pending' AND seq > $3 AND `
	if d.Status == webhooks.Pending {
		_, err := db.changed(ctx, `UPDATE webhook_deliveries SET next_at = $4`+later+`next_at < $4`, d.Webhook, d.Run, d.Seq, micros(d.NextAt))
		return err
	}
	_, err := db.changed(ctx, `UPDATE webhook_deliveries SET next_at = created_at`+later+`attempts = 0 AND next_at > created_at`, d.Webhook, d.Run, d.Seq)
	return err
}
