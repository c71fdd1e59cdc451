package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/doi"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

var (
	_ ai.Store    = (*DB)(nil)
	_ ai.UseStore = (*DB)(nil)
)

// Attach gives the owner an analysis of a reading that is under way or fresh.
func (db *DB) Attach(ctx context.Context, a ai.Asked, now time.Time) (got ai.Analysis, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		got, err = tx.attach(ctx, a, now)
		return err
	})
	return got, err
}

// Ask attaches the owner or begins a reading. Askers for one subject take
// turns, so that one of them begins it, and so do those who share a limit.
func (db *DB) Ask(ctx context.Context, a ai.Asked, l ai.Limits, now time.Time) (got ai.Analysis, err error) {
	// Whoever asks again for what they have is answered without a write.
	got, err = db.analysis(ctx, `r.subject = $2 AND r.reader = $3 AND `+fresh+`$4)`, a.Owner.Key(), a.Subject, a.Reader, micros(now))
	if !fault.Is(err, fault.KindNotFound) {
		audit.On(ctx, got.ID)
		return got, err
	}
	err = db.inTx(ctx, func(tx *DB) error {
		if err := tx.lock(ctx, "reading "+a.Subject); err != nil {
			return err
		}
		if got, err = tx.attach(ctx, a, now); !fault.Is(err, fault.KindNotFound) {
			return err
		}
		if err := tx.withinLimits(ctx, a.Owner, l, now); err != nil {
			return err
		}
		if err := tx.insertReading(ctx, a, now); err != nil {
			return err
		}
		got, err = tx.attach(ctx, a, now)
		return err
	})
	return got, err
}

// fresh is a reading that answers for its subject at the time that follows.
const fresh = `r.current AND (r.stale_at IS NULL OR r.stale_at > `

func (db *DB) attach(ctx context.Context, a ai.Asked, now time.Time) (ai.Analysis, error) {
	var reading string
	err := db.q.QueryRowContext(ctx, `
		SELECT id FROM readings r WHERE subject = $1 AND reader = $2 AND `+fresh+`$3)`, a.Subject, a.Reader, micros(now)).Scan(&reading)
	if err != nil {
		return ai.Analysis{}, db.asFault(err, "reading")
	}
	_, err = db.changed(ctx, `
		INSERT INTO analyses (id, reading_id, owner, team_id, doi, title, created_by, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (owner, reading_id) DO UPDATE SET
			doi = CASE WHEN excluded.doi <> '' THEN excluded.doi ELSE analyses.doi END,
			title = CASE WHEN excluded.title <> '' THEN excluded.title ELSE analyses.title END`,
		ids.NewAnalysis(), reading, a.Owner.Key(), orNil(a.Owner.Team), a.DOI, a.Title, orNil(a.Owner.User), micros(now))
	if err != nil {
		return ai.Analysis{}, err
	}
	got, err := db.analysis(ctx, `a.reading_id = $2`, a.Owner.Key(), reading)
	audit.On(ctx, got.ID)
	return got, err
}

func orNil[T ~string](id T) any {
	if id == "" {
		return nil
	}
	return id
}

func (db *DB) insertReading(ctx context.Context, a ai.Asked, now time.Time) error {
	if _, err := db.changed(ctx, `UPDATE readings SET current = FALSE WHERE subject = $1 AND reader = $2 AND current`, a.Subject, a.Reader); err != nil {
		return err
	}
	var text, team any
	if a.Text != nil {
		pages, err := json.Marshal(a.Text)
		if err != nil {
			return err
		}
		text, team = string(pages), orNil(a.Owner.Team)
	}
	_, err := db.changed(ctx, `
		INSERT INTO readings (id, subject, reader, current, team_id, doi, title, text, status, charged_to, charged_address, charged_day, created_at)
		VALUES ($1, $2, $3, TRUE, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		ids.NewReading(), a.Subject, a.Reader, team, a.DOI, a.Title, text, ai.Queued, a.Owner.Key(), a.Owner.Address, micros(ai.DayOf(now)), micros(now))
	return err
}

// withinLimits looks at what is charged while nobody else can add to it. The
// locks are always taken in this order.
func (db *DB) withinLimits(ctx context.Context, o ai.Owner, l ai.Limits, now time.Time) error {
	keys := []string{"charge " + o.Key()}
	if o.Visitor != "" {
		keys = append(keys, "charge address "+o.Address, "charge visitors")
	}
	for _, k := range keys {
		if err := db.lock(ctx, k); err != nil {
			return err
		}
	}
	c, err := db.Charged(ctx, o, ai.DayOf(now))
	if err != nil {
		return err
	}
	if err := l.Refused(o, c, now); err != nil {
		return err
	}
	f, err := db.failedPDFs(ctx, o.Payer(), ai.DayOf(now))
	if err != nil {
		return err
	}
	return l.FailedRefused(o.Payer(), f, now)
}

// Charged counts the readings of a day that have not failed.
func (db *DB) Charged(ctx context.Context, o ai.Owner, day time.Time) (c ai.Charged, err error) {
	for _, n := range []struct {
		into  *int
		where string
		args  []any
		skip  bool
	}{
		{&c.Owner, `charged_to = $2`, []any{o.Key()}, false},
		{&c.Address, `charged_address = $2`, []any{o.Address}, o.Visitor == ""},
		{&c.Visitors, `charged_address <> ''`, nil, o.Visitor == ""},
	} {
		if n.skip {
			continue
		}
		err := db.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM readings WHERE charged_day = $1 AND status <> 'failed' AND `+n.where,
			append([]any{micros(day)}, n.args...)...).Scan(n.into)
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

const (
	analysisRow = `
		SELECT a.id, a.owner, a.doi, CASE WHEN a.title <> '' THEN a.title ELSE r.title END,
		       r.status, r.stage, r.percent, r.message, r.error_kind, r.error_code, r.error_message, a.created_at, `
	analysisFrom = ` FROM analyses a JOIN readings r ON r.id = a.reading_id WHERE a.owner = $1 AND `
)

// Analysis is one of an owner.
func (db *DB) Analysis(ctx context.Context, owner string, id ids.Analysis) (ai.Analysis, error) {
	return db.analysis(ctx, `a.id = $2`, owner, id)
}

// AnalysisOf is an owner's newest of one paper; one that failed only when there
// is no other.
func (db *DB) AnalysisOf(ctx context.Context, owner string, name doi.DOI) (ai.Analysis, error) {
	return db.analysis(ctx, `a.doi = $2 ORDER BY CASE r.status WHEN 'failed' THEN 1 ELSE 0 END, a.id DESC LIMIT 1`, owner, name)
}

func (db *DB) analysis(ctx context.Context, which string, args ...any) (a ai.Analysis, err error) {
	err = scanAnalysis(db.q.QueryRowContext(ctx, analysisRow+`r.result`+analysisFrom+which, args...), &a)
	return a, db.asFault(err, "analysis")
}

// Analyses lists an owner's without their results, newest first.
func (db *DB) Analyses(ctx context.Context, owner string, before ids.Analysis, limit int) ([]ai.Analysis, error) {
	return all(ctx, db, func(rows *sql.Rows, a *ai.Analysis) error { return scanAnalysis(rows, a) },
		analysisRow+`NULL`+analysisFrom+`($2 = '' OR a.id < $2) ORDER BY a.id DESC LIMIT $3 + 0`, owner, before, limit)
}

func scanAnalysis(row scanner, a *ai.Analysis) error {
	var f ai.Failure
	var created int64
	var result []byte
	p := &a.Progress
	err := row.Scan(&a.ID, &a.Owner, &a.DOI, &a.Title, &a.Status, &p.Stage, &p.Percent, &p.Message, &f.Kind, &f.Code, &f.Message, &created, &result)
	if err != nil {
		return err
	}
	a.CreatedAt = fromMicros(created)
	if a.Status == ai.Failed {
		a.Failure = &f
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(result, &a.Result); err != nil {
		return fmt.Errorf("result of %s: %w", a.ID, err)
	}
	if p := &a.Result.Paper; p.Source == "upload" { // called what its owner last called it
		p.DOI, p.Title = a.DOI, a.Title
	}
	return nil
}

// AIDays sums up a team's chat and analyses by day.
func (db *DB) AIDays(ctx context.Context, team ids.Team, from time.Time) ([]ai.Day, error) {
	return all(ctx, db, func(rows *sql.Rows, d *ai.Day) error {
		var day int64
		err := rows.Scan(&day, &d.Requests, &d.PromptTokens, &d.CompletionTokens, &d.Analyses)
		d.Date = fromMicros(day * dayMicros)
		return err
	}, `
		SELECT day, SUM(requests), SUM(prompt), SUM(completion), SUM(analyses) FROM (
			SELECT day / 86400000000 AS day, requests, prompt_tokens AS prompt, completion_tokens AS completion, 0 AS analyses
			FROM chat_use WHERE team_id = $1 AND day >= $2
			UNION ALL
			SELECT a.created_at / 86400000000, 0, 0, 0, 1
			FROM analyses a JOIN readings r ON r.id = a.reading_id
			WHERE a.team_id = $1 AND a.created_at >= $2 AND r.status <> 'failed'
		) AS days GROUP BY day`, team, micros(from))
}
