package store

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/addresses"
)

var _ runs.AddressStore = (*DB)(nil)

func (db *DB) insertAddresses(ctx context.Context, id ids.Run, list []addresses.Object) error {
	rows := make([][]any, len(list))
	for i, o := range list {
		rows[i] = []any{id, o.URL, o.Connection, o.Endpoint, o.Size, o.ETag, o.SHA256, o.Learnt}
	}
	return db.insertRows(ctx, `INSERT INTO run_addresses (run_id, url, connection_id, endpoint, size, etag, given_sha256, sha256)`, "", rows)
}

// AddressesOf are what a run takes from elsewhere.
func (db *DB) AddressesOf(ctx context.Context, team ids.Team, id ids.Run) ([]addresses.Object, error) {
	return all(ctx, db, func(r *sql.Rows, o *addresses.Object) error {
		return r.Scan(&o.URL, (*string)(&o.Connection), &o.Endpoint, &o.Size, &o.ETag, &o.SHA256, &o.Learnt)
	}, `
		SELECT a.url, a.connection_id, a.endpoint, a.size, a.etag, a.given_sha256, a.sha256
		FROM run_addresses a JOIN runs r ON r.id = a.run_id WHERE r.team_id = $1 AND r.id = $2`, team, id)
}

// LearntHashes completes objects with what a team knows of their bytes.
func (db *DB) LearntHashes(ctx context.Context, team ids.Team, list []addresses.Object) error {
	type version struct{ endpoint, url, etag string }
	at := map[version][]int{}
	var urls []string
	for i, o := range list {
		if o.ETag != "" {
			v := version{o.Endpoint, o.URL, o.ETag}
			at[v] = append(at[v], i)
			urls = append(urls, o.URL)
		}
	}
	return inChunks(urls, func(some []string) error {
		found, err := all(ctx, db, func(r *sql.Rows, o *addresses.Object) error {
			return r.Scan(&o.Endpoint, &o.URL, &o.ETag, &o.Size, &o.Learnt)
		},
			`SELECT endpoint, url, etag, size, sha256 FROM learnt_hashes WHERE team_id = $1 AND url IN (`+placeholders(2, len(some))+`)`,
			append([]any{team}, anys(some)...)...)
		for _, o := range found {
			for _, i := range at[version{o.Endpoint, o.URL, o.ETag}] {
				if list[i].Size == o.Size {
					list[i].Learnt = o.Learnt
				}
			}
		}
		return err
	})
}

// TeamsGone are those of the teams that are erased, or are being so.
func (db *DB) TeamsGone(ctx context.Context, teams []ids.Team) (gone []ids.Team, err error) {
	open := map[ids.Team]bool{}
	err = inChunks(teams, func(some []ids.Team) error {
		list, err := all(ctx, db, func(r *sql.Rows, id *string) error { return r.Scan(id) },
			`SELECT id FROM teams WHERE closed_at IS NULL AND id IN (`+placeholders(1, len(some))+`)`, anys(some)...)
		for _, id := range list {
			open[ids.Team(id)] = true
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(teams), func(t ids.Team) bool { return open[t] }), nil
}

// Learn records what the bytes of an object are that a run has read, and returns what
// was recorded for this run before, if anything was.
func (db *DB) Learn(ctx context.Context, team ids.Team, id ids.Run, o addresses.Object, sum string, now time.Time) (before string, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		n, err := tx.changed(ctx, `UPDATE run_addresses SET sha256 = $1 WHERE run_id = $2 AND url = $3 AND sha256 = ''`, sum, id, o.URL)
		if err != nil {
			return err
		}
		if n == 0 {
			err := tx.q.QueryRowContext(ctx, `SELECT sha256 FROM run_addresses WHERE run_id = $1 AND url = $2`, id, o.URL).Scan(&before)
			if err != nil {
				return tx.asFault(err, "run")
			}
		}
		if o.ETag == "" {
			return nil
		}
		_, err = tx.q.ExecContext(ctx, `
			INSERT INTO learnt_hashes (team_id, endpoint, url, etag, size, sha256, learnt_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (team_id, endpoint, url, etag) DO UPDATE SET size = excluded.size, sha256 = excluded.sha256, learnt_at = excluded.learnt_at`,
			team, o.Endpoint, o.URL, o.ETag, o.Size, sum, micros(now))
		return err
	})
	return before, err
}
