package store

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/sharing"
)

var _ sharing.Documents = (*DB)(nil)

// Document reads a live document as far as the reader does not know it.
func (db *DB) Document(ctx context.Context, id ids.Workflow, after int64) (d sharing.Document, err error) {
	// The updates first: a snapshot that swallows some between the two queries
	// is read with them.
	d.Updates, err = all(ctx, db, func(r *sql.Rows, u *sharing.Update) error {
		return r.Scan(&u.Seq, &u.Data, (*string)(&u.Author.User), &u.Author.Guest, &u.Author.GuestName)
	}, `SELECT seq, data, user_id, guest_id, guest_name FROM document_updates WHERE workflow_id = $1 AND seq > $2 ORDER BY seq`, id, after)
	if err != nil {
		return d, err
	}
	err = db.q.QueryRowContext(ctx, `
		SELECT d.epoch, d.seq, d.settled_seq, d.snapshot_seq, s.data
		FROM documents d LEFT JOIN document_snapshots s ON s.workflow_id = d.workflow_id AND d.snapshot_seq > $2
		WHERE d.workflow_id = $1`, id, after).
		Scan(&d.Epoch, &d.Seq, &d.Synced, &d.SnapshotSeq, &d.Snapshot)
	if err != nil {
		return d, db.asFault(err, "document")
	}
	d.Updates = slices.DeleteFunc(d.Updates, func(u sharing.Update) bool { return u.Seq <= d.SnapshotSeq })
	d.Seq = max(after, d.SnapshotSeq) // what was read, not what is there by now
	if n := len(d.Updates); n > 0 {
		d.Seq = d.Updates[n-1].Seq
	}
	return d, nil
}

// SeedDocument gives a workflow its first document. It counts as a save, so
// that whoever saves a definition at the same time looks again.
func (db *DB) SeedDocument(ctx context.Context, team ids.Team, id ids.Workflow, version int, snapshot []byte, now time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		n, err := tx.changed(ctx, `UPDATE workflows SET version = version + 1 WHERE team_id = $1 AND id = $2 AND version = $3`, team, id, version)
		if err != nil || n == 0 {
			return err
		}
		n, err = tx.changed(ctx, `
			INSERT INTO documents (workflow_id, epoch, seq, settled_seq, snapshot_seq, updated_at)
			VALUES ($1, 1, 1, 1, 1, $2)
			ON CONFLICT (workflow_id) DO NOTHING`, id, micros(now))
		if err != nil || n == 0 {
			return err
		}
		return tx.keepSnapshot(ctx, team, id, snapshot, 0)
	})
}

// AppendUpdate stores an update under the next number. Writers take turns at
// the document's row, so that nobody ever sees a number before a lower one. It
// is fault.KindPayment if the team's storage has no room for it.
func (db *DB) AppendUpdate(ctx context.Context, id ids.Workflow, epoch int64, u sharing.Update, now time.Time) (seq int64, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		err := tx.q.QueryRowContext(ctx, `
			UPDATE documents SET seq = seq + 1, updated_at = $1, guest_seq = CASE WHEN $4 THEN seq + 1 ELSE guest_seq END
			WHERE workflow_id = $2 AND epoch = $3 RETURNING seq`, micros(now), id, epoch, u.Guests).Scan(&seq)
		if err = tx.asFault(err, "document"); fault.Is(err, fault.KindNotFound) {
			return tx.goneOrStale(ctx, id)
		}
		if err != nil {
			return err
		}
		_, err = tx.q.ExecContext(ctx, `
			INSERT INTO document_updates (workflow_id, seq, data, user_id, guest_id, guest_name, at)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`, id, seq, u.Data, u.Author.User, u.Author.Guest, u.Author.GuestName, micros(now))
		if err != nil {
			return err
		}
		team, err := tx.teamOf(ctx, id)
		if err != nil {
			return err
		}
		return tx.fitDefinitions(ctx, team, int64(len(u.Data)))
	})
	return seq, err
}

// teamOf is the team of a workflow.
func (db *DB) teamOf(ctx context.Context, id ids.Workflow) (team ids.Team, err error) {
	err = db.q.QueryRowContext(ctx, `SELECT team_id FROM workflows WHERE id = $1`, id).Scan((*string)(&team))
	return team, db.asFault(err, "workflow")
}

// goneOrStale says why a document of some epoch is not there.
func (db *DB) goneOrStale(ctx context.Context, id ids.Workflow) error {
	var epoch int64
	err := db.q.QueryRowContext(ctx, `SELECT epoch FROM documents WHERE workflow_id = $1`, id).Scan(&epoch)
	if err != nil {
		return db.asFault(err, "document")
	}
	return fault.Stale("the document has started afresh")
}

// SaveSnapshot replaces updates by what they came to.
func (db *DB) SaveSnapshot(ctx context.Context, id ids.Workflow, epoch, seq int64, snapshot []byte) error {
	return db.inTx(ctx, func(tx *DB) error {
		n, err := tx.changed(ctx, `
			UPDATE documents SET snapshot_seq = $1
			WHERE workflow_id = $2 AND epoch = $3 AND snapshot_seq < $1 AND seq >= $1`, seq, id, epoch)
		if err != nil || n == 0 {
			return err
		}
		return tx.replaceUpdates(ctx, id, snapshot, seq)
	})
}

// replaceUpdates deletes the updates up to a number, in whose place there is a snapshot.
func (db *DB) replaceUpdates(ctx context.Context, id ids.Workflow, snapshot []byte, upTo int64) error {
	team, err := db.teamOf(ctx, id)
	if err != nil {
		return err
	}
	sizes, err := all(ctx, db, func(r *sql.Rows, size *int64) error { return r.Scan(size) },
		`DELETE FROM document_updates WHERE workflow_id = $1 AND seq <= $2 RETURNING octet_length(data)`, id, upTo)
	if err != nil {
		return err
	}
	var freed int64
	for _, size := range sizes {
		freed += size
	}
	return db.keepSnapshot(ctx, team, id, snapshot, freed)
}

// keepSnapshot stores a snapshot in place of the one before, and counts what that takes
// less what was freed for it.
func (db *DB) keepSnapshot(ctx context.Context, team ids.Team, id ids.Workflow, snapshot []byte, freed int64) error {
	var before int64
	err := db.q.QueryRowContext(ctx, `SELECT COALESCE(MAX(octet_length(data)), 0) FROM document_snapshots WHERE workflow_id = $1`, id).Scan(&before)
	if err != nil {
		return err
	}
	_, err = db.changed(ctx, `
		INSERT INTO document_snapshots (workflow_id, data) VALUES ($1, $2)
		ON CONFLICT (workflow_id) DO UPDATE SET data = excluded.data`, id, snapshot)
	if err != nil {
		return err
	}
	return db.countDefinitions(ctx, team, int64(len(snapshot))-before-freed)
}

// ResetDocument starts a document afresh, if it is where the caller saw it.
func (db *DB) ResetDocument(ctx context.Context, id ids.Workflow, h sharing.Head, snapshot []byte, now time.Time) error {
	return db.inTx(ctx, func(tx *DB) error {
		n, err := tx.changed(ctx, `
			UPDATE documents SET epoch = epoch + 1, seq = seq + 1, settled_seq = seq + 1, snapshot_seq = seq + 1, updated_at = $1
			WHERE workflow_id = $2 AND epoch = $3 AND seq = $4 AND settled_seq = $4`, micros(now), id, h.Epoch, h.Seq)
		if err != nil || n == 0 {
			return err
		}
		return tx.replaceUpdates(ctx, id, snapshot, math.MaxInt64)
	})
}

// headsAtOnce bounds the parameters of one query.
const headsAtOnce = 500

// Heads is how far documents have come.
func (db *DB) Heads(ctx context.Context, list []ids.Workflow) (map[ids.Workflow]sharing.Head, error) {
	type row struct {
		id ids.Workflow
		sharing.Head
	}
	heads := make(map[ids.Workflow]sharing.Head, len(list))
	for len(list) > 0 {
		some := list[:min(len(list), headsAtOnce)]
		list = list[len(some):]
		found, err := all(ctx, db, func(r *sql.Rows, h *row) error { return r.Scan((*string)(&h.id), &h.Epoch, &h.Seq, &h.Synced) },
			`SELECT workflow_id, epoch, seq, settled_seq FROM documents WHERE workflow_id IN (`+placeholders(1, len(some))+`)`, anys(some)...)
		if err != nil {
			return nil, err
		}
		for _, h := range found {
			heads[h.id] = h.Head
		}
	}
	return heads, nil
}
