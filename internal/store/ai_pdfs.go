package store

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/ai"
)

var _ ai.PDFStore = (*DB)(nil)

// TakePDF counts a PDF for the payer and their address, or for neither. Those
// who share a limit take turns. Of a team that is gone nothing is counted.
func (db *DB) TakePDF(ctx context.Context, p ai.Payer, l ai.Limits, now time.Time) error {
	day := ai.DayOf(now)
	return db.inTx(ctx, func(tx *DB) error {
		for _, who := range p.CountedAs() {
			if err := tx.lock(ctx, "failed pdfs "+who); err != nil {
				return err
			}
		}
		f, err := tx.failedPDFs(ctx, p, day)
		if err != nil {
			return err
		}
		if err := l.FailedRefused(p, f, now); err != nil {
			return err
		}
		for _, who := range p.CountedAs() {
			_, err := tx.changed(ctx, `
				INSERT INTO failed_pdfs (day, who, failed) SELECT CAST($1 AS BIGINT), CAST($2 AS TEXT), 1
				WHERE CAST($3 AS TEXT) <> '' OR EXISTS (SELECT 1 FROM teams WHERE id = $2)
				ON CONFLICT (day, who) DO UPDATE SET failed = failed_pdfs.failed + 1`, micros(day), who, p.Address)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ReturnPDF takes back what TakePDF counted.
func (db *DB) ReturnPDF(ctx context.Context, p ai.Payer, day time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		for _, who := range p.CountedAs() {
			_, err := tx.changed(ctx, `UPDATE failed_pdfs SET failed = failed - 1 WHERE day = $1 AND who = $2 AND failed > 0`, micros(day), who)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (db *DB) failedPDFs(ctx context.Context, p ai.Payer, day time.Time) (f ai.FailedPDFs, err error) {
	into := []*int{&f.Owner, &f.Address}
	for i, who := range p.CountedAs() {
		err := db.q.QueryRowContext(ctx, `SELECT COALESCE(SUM(failed), 0) FROM failed_pdfs WHERE day = $1 AND who = $2`, micros(day), who).Scan(into[i])
		if err != nil {
			return f, err
		}
	}
	return f, nil
}
