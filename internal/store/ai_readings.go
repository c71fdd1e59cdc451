package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

var (
	_ ai.ReadingQueue = (*DB)(nil)
	_ ai.ChatStore    = (*DB)(nil)
)

// ClaimReading takes the oldest reading that waits, or whose worker has gone;
// teams come before visitors, and who has fewer under way before who has more.
// Claims take turns, so that no two of them see the last place of one payer.
func (db *DB) ClaimReading(ctx context.Context, worker string, c ai.Crowd, now, until time.Time) (r ai.Reading, err error) {
	const busy = `(SELECT COUNT(*) FROM readings b WHERE b.status = 'processing' AND b.lease_until > $3 AND b.`
	var text []byte
	err = db.inTx(ctx, func(tx *DB) error {
		if err := tx.lock(ctx, "claim readings"); err != nil {
			return err
		}
		return tx.q.QueryRowContext(ctx, `
			UPDATE readings SET status = 'processing', worker = $1, lease_until = $2, attempt = attempt + 1
			WHERE id = (
				SELECT id FROM (
					SELECT r.id, r.charged_address AS address, `+busy+`charged_to = r.charged_to) AS own,
					       `+busy+`charged_address = r.charged_address) AS near
					FROM readings r
					WHERE r.status IN ('queued', 'processing') AND (r.status = 'queued' OR r.lease_until <= $3)
				) AS waiting
				WHERE own < $4 AND (address = '' OR near < $5)
				ORDER BY CASE address WHEN '' THEN 0 ELSE 1 END, own, id LIMIT 1)
			AND (status = 'queued' OR status = 'processing' AND lease_until <= $3) -- it may have moved since
			RETURNING id, attempt, doi, title, text, charged_to, charged_address`, worker, micros(until), micros(now), c.PerOwner, c.PerAddress).
			Scan(&r.ID, &r.Attempt, &r.DOI, &r.Title, &text, &r.Payer.Owner, &r.Payer.Address)
	})
	if err = db.asFault(err, "reading that waits"); err != nil || text == nil {
		return r, err
	}
	return r, json.Unmarshal(text, &r.Text)
}

// held changes a reading that its worker still has.
func (db *DB) held(ctx context.Context, r ai.Reading, set string, args ...any) error {
	n, err := db.changed(ctx, `UPDATE readings SET `+set+` WHERE id = $1 AND attempt = $2 AND status = 'processing'`, append([]any{r.ID, r.Attempt}, args...)...)
	if err == nil && n == 0 {
		return fault.NotFound("this reading is somebody else's by now")
	}
	return err
}

// RenewReading keeps a reading with its worker.
func (db *DB) RenewReading(ctx context.Context, r ai.Reading, until time.Time) error {
	return db.held(ctx, r, `lease_until = $3`, micros(until))
}

// AdvanceReading says how far a reading is.
func (db *DB) AdvanceReading(ctx context.Context, r ai.Reading, p ai.Progress) error {
	return db.held(ctx, r, `stage = $3, percent = $4, message = $5`, p.Stage, p.Percent, p.Message)
}

// EndReading keeps how a reading ended. A failed one is nobody's answer: who
// asks again begins anew. The text of an upload is not kept.
func (db *DB) EndReading(ctx context.Context, r ai.Reading, result *ai.Result, f *ai.Failure, stale time.Time) error {
	if f != nil {
		return db.held(ctx, r, `status = 'failed', current = FALSE, text = NULL, error_kind = $3, error_code = $4, error_message = $5`, f.Kind, f.Code, f.Message)
	}
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return db.held(ctx, r, `status = 'completed', text = NULL, result = $3, title = $4, stale_at = $5`, string(text), result.Paper.Title, micros(stale))
}

// ReturnReading puts a reading back as if it had not been taken.
func (db *DB) ReturnReading(ctx context.Context, r ai.Reading) error {
	return db.held(ctx, r, `status = 'queued', attempt = attempt - 1, lease_until = 0`)
}

// RecoverReadings puts back what is under way, for a server that is alone and
// has just started.
func (db *DB) RecoverReadings(ctx context.Context) error {
	_, err := db.changed(ctx, `UPDATE readings SET status = 'queued', lease_until = 0 WHERE status = 'processing'`)
	return err
}

// TakeChat counts a request for the user and for all, or not at all.
func (db *DB) TakeChat(ctx context.Context, user ids.User, l ai.ChatLimits, day time.Time) (used int, err error) {
	var all int
	err = db.inTx(ctx, func(tx *DB) error {
		for _, q := range []struct {
			who  string
			most int
			into *int
			over error
		}{{string(user), l.PerUser, &used, ai.ErrFairUse}, {"", l.All, &all, ai.ErrAllUsed}} {
			err := tx.q.QueryRowContext(ctx, `
				INSERT INTO chat_quota (day, who, used) SELECT CAST($1 AS BIGINT), CAST($2 AS TEXT), 1 WHERE CAST($3 AS BIGINT) > 0
				ON CONFLICT (day, who) DO UPDATE SET used = chat_quota.used + 1 WHERE chat_quota.used < $3
				RETURNING used`, micros(day), q.who, q.most).Scan(q.into)
			if errors.Is(err, sql.ErrNoRows) {
				return q.over
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return used, err
}

// ReturnChat takes back what TakeChat counted.
func (db *DB) ReturnChat(ctx context.Context, user ids.User, day time.Time) error {
	_, err := db.changed(ctx, `UPDATE chat_quota SET used = used - 1 WHERE day = $1 AND who IN ($2, '') AND used > 0`, micros(day), user)
	return err
}

// CountChat adds to what a team used. A team that is gone has no use to count.
func (db *DB) CountChat(ctx context.Context, team ids.Team, u ai.ChatUse, day time.Time) error {
	_, err := db.changed(ctx, `
		INSERT INTO chat_use (team_id, day, requests, prompt_tokens, completion_tokens)
		SELECT id, CAST($2 AS BIGINT), 1, CAST($3 AS BIGINT), CAST($4 AS BIGINT) FROM teams WHERE id = $1
		ON CONFLICT (team_id, day) DO UPDATE SET requests = chat_use.requests + 1,
			prompt_tokens = chat_use.prompt_tokens + excluded.prompt_tokens,
			completion_tokens = chat_use.completion_tokens + excluded.completion_tokens`, team, micros(day), u.PromptTokens, u.CompletionTokens)
	return err
}
