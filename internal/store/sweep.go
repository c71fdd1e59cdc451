package store

import (
	"context"
	"time"
)

// Sweep deletes what has had its time: ended sessions, old answers, counted
// requests, letters nobody took for a week, keys long retired, what visitors
// asked for and papers nobody asks for any more.
func (db *DB) Sweep(ctx context.Context, now time.Time) error {
	week := 7 * 24 * time.Hour
	month := 30 * 24 * time.Hour
	for _, s := range []struct {
		query string
		by    time.Time
	}{
		{`DELETE FROM sessions WHERE expires_at <= $1`, now},
		{`DELETE FROM oauth_grants WHERE expires_at <= $1`, now},
		{`DELETE FROM oauth_refresh_tokens WHERE used_at <= $1`, now.Add(-30 * 24 * time.Hour)},
		{`DELETE FROM oauth_codes WHERE expires_at <= $1`, now.Add(-week)}, // a late replay is recognised
		{`DELETE FROM oauth_devices WHERE expires_at <= $1`, now.Add(-time.Hour)},
		{`DELETE FROM access_tokens WHERE expires_at <= $1`, now},
		{`DELETE FROM slips WHERE expires_at <= $1`, now},
		{`DELETE FROM answers WHERE created_at <= $1`, now.Add(-answerLife)},
		{`DELETE FROM rate_hits WHERE expires_at <= $1`, now},
		{`DELETE FROM outbox WHERE created_at <= $1`, now.Add(-week)},
		{`DELETE FROM signing_keys WHERE retires_at <= $1`, now.Add(-week)},
		{`DELETE FROM analyses WHERE team_id IS NULL AND created_at <= $1`, now.Add(-month)},
		{`DELETE FROM readings WHERE created_at <= $1 AND NOT EXISTS (SELECT 1 FROM analyses a WHERE a.reading_id = readings.id)`, now.Add(-month)},
		{`DELETE FROM chat_quota WHERE day <= $1`, now.Add(-week)},
		{`DELETE FROM failed_pdfs WHERE day <= $1`, now.Add(-week)},
	} {
		if _, err := db.changed(ctx, s.query, micros(s.by)); err != nil {
			return err
		}
	}
	return nil
}
