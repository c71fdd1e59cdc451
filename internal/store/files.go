package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
)

// FileStores is the database as the files see it.
func (db *DB) FileStores() files.Stores {
	return files.Stores{Uploads: db, List: db, Cleaning: db, Hashes: db}
}

// PlanOf is the plan a team is on.
func (db *DB) PlanOf(ctx context.Context, team ids.Team) (plan credits.Plan, err error) {
	err = db.q.QueryRowContext(ctx, `SELECT plan FROM teams WHERE id = $1`, team).Scan(&plan)
	return plan, db.asFault(err, "team")
}

// Reserve counts an upload against the quota. The check and the count are one
// statement, so two uploads can never both have the last room.
func (db *DB) Reserve(ctx context.Context, r files.Reservation, limit int64) error {
	audit.On(ctx, r.Key)
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.mustBeOpen(ctx, r.Team); err != nil {
			return err
		}
		if err := tx.fitStorage(ctx, r.Team, r.Size, limit); err != nil {
			return err
		}
		_, err := tx.changed(ctx, `
			INSERT INTO reservations (key, team_id, id, name, content_type, size, created_by, created_at, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			r.Key, r.Team, r.ID, r.Name, r.ContentType, r.Size, r.CreatedBy, micros(r.CreatedAt), micros(r.ExpiresAt))
		return tx.asFault(err, "upload")
	})
}

const reservation = `SELECT key, team_id, id, name, content_type, size, created_by, created_at, expires_at FROM reservations WHERE `

func scanReservation(row scanner, r *files.Reservation) error {
	var created, expires int64
	err := row.Scan(&r.Key, &r.Team, &r.ID, &r.Name, &r.ContentType, &r.Size, &r.CreatedBy, &created, &expires)
	r.CreatedAt, r.ExpiresAt = fromMicros(created), fromMicros(expires)
	return err
}

// stillMayUpload is whether whoever was allowed an upload, in a row of this table, may
// still upload.
func stillMayUpload(table string) string {
	return `EXISTS (
		SELECT 1 FROM memberships m JOIN users u ON u.id = m.user_id
		WHERE m.team_id = ` + table + `.team_id AND m.user_id = ` + table + `.created_by AND m.role <> 'viewer' AND u.disabled_at IS NULL)`
}

// Begin claims a reservation for bytes that are arriving.
func (db *DB) Begin(ctx context.Context, key string, now, until time.Time) (r files.Reservation, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		n, err := tx.changed(ctx, `
			UPDATE reservations SET busy_until = $1 WHERE key = $2 AND expires_at > $3 AND busy_until <= $3 AND `+stillMayUpload("reservations"),
			micros(until), key, micros(now))
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.Conflict("this address has been used, is being used, or has expired, or who asked for it may not upload any more: ask for another one").WithCode("upload_closed")
		}
		return scanReservation(tx.q.QueryRowContext(ctx, reservation+`key = $1`, key), &r)
	})
	return r, err
}

// Abandon gives a claim back.
func (db *DB) Abandon(ctx context.Context, key string) error {
	_, err := db.changed(ctx, `UPDATE reservations SET busy_until = 0 WHERE key = $1`, key)
	return err
}

// ResetUploads gives all claims back.
func (db *DB) ResetUploads(ctx context.Context) error {
	_, err := db.changed(ctx, `UPDATE reservations SET busy_until = 0 WHERE busy_until > 0`)
	return err
}

// Keep turns a reservation into a file; what it counts stays counted. A reservation of
// somebody who may not upload any more ends.
func (db *DB) Keep(ctx context.Context, key string, b files.Blob, now time.Time) error {
	ended := false
	err := db.inTx(ctx, func(tx *DB) error {
		var r files.Reservation
		err := scanReservation(tx.q.QueryRowContext(ctx, reservation+`key = $1 `+tx.dialect.forUpdate, key), &r)
		if err = tx.asFault(err, "upload"); fault.Is(err, fault.KindNotFound) {
			return tx.keptBefore(ctx, key)
		}
		if err != nil {
			return err
		}
		n, err := tx.changed(ctx, `DELETE FROM reservations WHERE key = $1 AND `+stillMayUpload("reservations"), key)
		if ended = n == 0; err != nil {
			return err
		}
		if ended {
			return tx.Drop(ctx, key)
		}
		return tx.keepFile(ctx, r, b, now)
	})
	if err == nil && ended {
		err = fault.NotFound("who was allowed this upload may not upload any more")
	}
	return err
}

// keepFile adds the rows of an upload that has arrived.
func (db *DB) keepFile(ctx context.Context, r files.Reservation, b files.Blob, now time.Time) error {
	_, err := db.changed(ctx, `
		INSERT INTO blobs (key, team_id, size, sha256, mark, refs, created_at) VALUES ($1, $2, $3, $4, $5, 1, $6)`,
		r.Key, r.Team, b.Size, b.SHA256, b.Mark, micros(now))
	if err != nil {
		return err
	}
	b.Key = r.Key
	return db.keepRow(ctx, r, b, now)
}

// keepRow adds the row of a file whose bytes have theirs.
func (db *DB) keepRow(ctx context.Context, r files.Reservation, b files.Blob, now time.Time) error {
	_, err := db.changed(ctx, `
		INSERT INTO files (key, team_id, source, rank, id, name, content_type, size, blob_key, created_by, created_at)
		VALUES ($1, $2, $3, 0, $4, $5, $6, $7, $8, $9, $10)`,
		r.Key, r.Team, files.FromUpload, r.ID, r.Name, r.ContentType, b.Size, b.Key, r.CreatedBy, micros(now))
	if err != nil {
		return err
	}
	return db.countDefinitions(ctx, r.Team, fileRow)
}

// keptBefore is fault.KindNotFound where there is no such file.
func (db *DB) keptBefore(ctx context.Context, key string) error {
	var n int
	return db.asFault(db.q.QueryRowContext(ctx, `SELECT 1 FROM blobs WHERE key = $1`, key).Scan(&n), "upload")
}

// Drop ends a reservation and what it counts.
func (db *DB) Drop(ctx context.Context, key string) error {
	return db.inTx(ctx, func(tx *DB) error {
		var team ids.Team
		var size int64
		err := tx.q.QueryRowContext(ctx, `DELETE FROM reservations WHERE key = $1 RETURNING team_id, size`, key).Scan(&team, &size)
		if err = tx.asFault(err, "upload"); fault.Is(err, fault.KindNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		_, err = tx.addStorage(ctx, team, -size, 0)
		return err
	})
}

// NewestReservations are a team's newest open ones, the newest first.
func (db *DB) NewestReservations(ctx context.Context, team ids.Team, limit int) ([]files.Reservation, error) {
	return all(ctx, db, func(r *sql.Rows, v *files.Reservation) error { return scanReservation(r, v) },
		reservation+`team_id = $1 AND busy_until = 0 ORDER BY id DESC LIMIT $2 + 0`, team, limit)
}

// ReservationsOf are those of the keys that are open ones.
func (db *DB) ReservationsOf(ctx context.Context, keys []string) (list []files.Reservation, err error) {
	err = inChunks(keys, func(some []string) error {
		found, err := all(ctx, db, func(r *sql.Rows, v *files.Reservation) error { return scanReservation(r, v) },
			reservation+`busy_until = 0 AND key IN (`+placeholders(1, len(some))+`)`, anys(some)...)
		list = append(list, found...)
		return err
	})
	return list, err
}

// ExpiredReservations are those whose time was over by then, and into which
// nothing is arriving.
func (db *DB) ExpiredReservations(ctx context.Context, by time.Time, after string, limit int) ([]files.Reservation, error) {
	return all(ctx, db, func(r *sql.Rows, v *files.Reservation) error { return scanReservation(r, v) },
		reservation+`expires_at <= $1 AND busy_until <= $1 AND key > $2 ORDER BY key LIMIT $3 + 0`, micros(by), after, limit)
}

const file = `
	SELECT f.key, f.id, f.source, f.name, f.content_type, f.size, f.blob_key, b.sha256, f.run_id, f.created_by, f.created_at,
		b.mark, b.data_key, b.folder_files, COALESCE(d.size, 0), COALESCE(d.mark, '')
	FROM files f JOIN blobs b ON b.key = f.blob_key LEFT JOIN blobs d ON d.key = b.data_key
	WHERE f.team_id = $1 AND `

func scanFile(row scanner, f *files.File) error {
	var created int64
	var folder files.Folder
	err := row.Scan(&f.Key, &f.ID, (*string)(&f.Source), &f.Name, &f.ContentType, &f.Size, &f.Blob, &f.SHA256,
		(*string)(&f.Run), (*string)(&f.CreatedBy), &created, &f.Mark, &folder.Data, &folder.Files, &folder.Bytes, &folder.Mark)
	f.CreatedAt = fromMicros(created)
	if folder.Data != "" {
		f.Folder = &folder
	}
	return err
}

// Files lists a team's files, uploads first, each kind newest first.
func (db *DB) Files(ctx context.Context, team ids.Team, only files.Filter, after files.Place, limit int) ([]files.File, error) {
	rank := 0
	if after.ID != "" && after.Source == files.FromRun {
		rank = 1
	}
	where, args := `(f.rank > $2 OR (f.rank = $2 AND f.id < $3)) `, []any{team, rank, orAfterAll(db, after.ID), limit}
	if only.Source != "" {
		args = append(args, only.Source)
		where += fmt.Sprintf(`AND f.source = $%d `, len(args))
	}
	if len(only.Keys) > 0 {
		marks := make([]string, len(only.Keys))
		for i, key := range only.Keys {
			args = append(args, key)
			marks[i] = fmt.Sprint("$", len(args))
		}
		where += `AND f.key IN (` + strings.Join(marks, ", ") + `) `
	}
	if only.Directory != nil {
		where += map[bool]string{true: `AND b.data_key <> '' `, false: `AND b.data_key = '' `}[*only.Directory]
	}
	return all(ctx, db, func(r *sql.Rows, f *files.File) error {
		f.Team = team
		return scanFile(r, f)
	}, file+where+`ORDER BY f.rank, f.id DESC LIMIT $4 + 0`, args...)
}

// File is one file of a team.
func (db *DB) File(ctx context.Context, team ids.Team, source files.Source, key string) (files.File, error) {
	f := files.File{Team: team}
	err := scanFile(db.q.QueryRowContext(ctx, file+`f.key = $2 AND f.source = $3`, team, key, source), &f)
	return f, db.asFault(err, "file")
}

// DeleteFile removes a file's row, and marks its bytes for deletion if it was the last that
// pointed to them.
func (db *DB) DeleteFile(ctx context.Context, team ids.Team, key string) (pending []string, err error) {
	audit.On(ctx, key)
	err = db.inTx(ctx, func(tx *DB) error {
		var blob string
		err := tx.q.QueryRowContext(ctx, `DELETE FROM files WHERE team_id = $1 AND key = $2 RETURNING blob_key`, team, key).Scan(&blob)
		if err != nil {
			return tx.asFault(err, "file")
		}
		if pending, err = tx.dropBlob(ctx, team, blob); err != nil {
			return err
		}
		return tx.countDefinitions(ctx, team, -fileRow)
	})
	return pending, err
}

// dropBlob counts one file less that points to bytes. The last one marks them for
// deletion, with those of a folder, and returns them.
func (db *DB) dropBlob(ctx context.Context, team ids.Team, blob string) (pending []string, err error) {
	var refs, size int64
	var data string
	err = db.q.QueryRowContext(ctx, `UPDATE blobs SET refs = refs - 1 WHERE key = $1 RETURNING refs, size, data_key`, blob).Scan(&refs, &size, &data)
	if err != nil || refs > 0 {
		return nil, err
	}
	if data != "" {
		if pending, err = db.dropBlob(ctx, team, data); err != nil {
			return nil, err
		}
	}
	if _, err := db.changed(ctx, `DELETE FROM blobs WHERE key = $1`, blob); err != nil {
		return nil, err
	}
	return append(pending, blob), db.markForDeletion(ctx, team, blob, size)
}

// markForDeletion has bytes deleted by upkeep; they do not count from now on.
func (db *DB) markForDeletion(ctx context.Context, team ids.Team, key string, size int64) error {
	if _, err := db.changed(ctx, `INSERT INTO doomed_blobs (key) VALUES ($1) ON CONFLICT (key) DO NOTHING`, key); err != nil {
		return err
	}
	_, err := db.addStorage(ctx, team, -size, 0)
	return err
}

// PendingDeletes are bytes to delete.
func (db *DB) PendingDeletes(ctx context.Context, after string, limit int) ([]string, error) {
	return all(ctx, db, func(r *sql.Rows, key *string) error { return r.Scan(key) },
		`SELECT key FROM doomed_blobs WHERE key > $1 ORDER BY key LIMIT $2 + 0`, after, limit)
}

// ToBeDeleted reports whether the last row that pointed to bytes is gone.
func (db *DB) ToBeDeleted(ctx context.Context, key string) (yes bool, err error) {
	err = db.q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM doomed_blobs WHERE key = $1)`, key).Scan(&yes)
	return yes, err
}

// ForgetDelete forgets bytes that are deleted.
func (db *DB) ForgetDelete(ctx context.Context, key string) error {
	_, err := db.changed(ctx, `DELETE FROM doomed_blobs WHERE key = $1`, key)
	return err
}

// RecordedObject is what is recorded of the bytes of files.
func (db *DB) RecordedObject(ctx context.Context, key string) (o runs.Recorded, err error) {
	err = scanRecorded(db.q.QueryRowContext(ctx, recorded+`key = $1`, key), &o)
	return o, db.asFault(err, "object")
}

// NewestObjects are up to limit objects whose hash is known, the newest first.
func (db *DB) NewestObjects(ctx context.Context, limit int) ([]runs.Recorded, error) {
	return all(ctx, db, func(r *sql.Rows, o *runs.Recorded) error { return scanRecorded(r, o) },
		recorded+`sha256 <> '' ORDER BY created_at DESC LIMIT $1 + 0`, limit)
}

// OldestAndNewestOutputs are the objects of up to limit outputs, half of them the oldest
// and half the newest.
func (db *DB) OldestAndNewestOutputs(ctx context.Context, limit int) ([]runs.Recorded, error) {
	return all(ctx, db, func(r *sql.Rows, o *runs.Recorded) error { return scanRecorded(r, o) },
		recorded+`key IN (
			SELECT blob_key FROM (SELECT blob_key FROM files WHERE source = 'output' ORDER BY id LIMIT $1 / 2) oldest
			UNION
			SELECT blob_key FROM (SELECT blob_key FROM files WHERE source = 'output' ORDER BY id DESC LIMIT $1 / 2) newest)
		ORDER BY created_at, key`, limit)
}

const recorded = `SELECT key, team_id, size, sha256, mark, rejected_mark FROM blobs WHERE `

func scanRecorded(row scanner, o *runs.Recorded) error {
	return row.Scan(&o.Key, &o.Team, &o.Size, &o.SHA256, &o.Mark, &o.RejectedMark)
}

// RenewMark records that the object with this hash has the mark.
func (db *DB) RenewMark(ctx context.Context, key, sha256, mark string) error {
	_, err := db.changed(ctx, `UPDATE blobs SET mark = $1, rejected_mark = '' WHERE key = $2 AND sha256 = $3`, mark, key, sha256)
	return err
}

// RejectMark records that the object with this mark does not have this hash.
func (db *DB) RejectMark(ctx context.Context, key, sha256, mark string) error {
	_, err := db.changed(ctx, `UPDATE blobs SET rejected_mark = $1 WHERE key = $2 AND sha256 = $3`, mark, key, sha256)
	return err
}

// Unhashed are blobs whose hash nobody has taken yet.
func (db *DB) Unhashed(ctx context.Context, after string, limit int) ([]string, error) {
	return all(ctx, db, func(r *sql.Rows, key *string) error { return r.Scan(key) },
		`SELECT key FROM blobs WHERE sha256 = '' AND key > $1 ORDER BY key LIMIT $2 + 0`, after, limit)
}

// SetHash notes a blob's hash.
func (db *DB) SetHash(ctx context.Context, key, sum string) error {
	_, err := db.changed(ctx, `UPDATE blobs SET sha256 = $1 WHERE key = $2`, sum, key)
	return err
}

// FilesOfRun are what a run that has ended produced and consumed.
func (db *DB) FilesOfRun(ctx context.Context, team ids.Team, run ids.Run) (list []files.File, starter string, err error) {
	r, err := db.Run(ctx, team, run)
	if err != nil {
		return nil, "", err
	}
	if !r.Status.Terminal() {
		return nil, "", fault.Conflict("the run is still %s: cancel it, or wait for its end", r.Status)
	}
	var inputs map[string][]string
	if err := json.Unmarshal(r.Inputs, &inputs); err != nil {
		return nil, "", err
	}
	list, err = all(ctx, db, func(rows *sql.Rows, f *files.File) error {
		f.Team = team
		return scanFile(rows, f)
	}, file+`f.run_id = $2`, team, run)
	given := map[string]bool{} // to several inputs, perhaps
	for _, keys := range inputs {
		for _, key := range keys {
			if given[key] {
				continue
			}
			given[key] = true
			f := files.File{Team: team}
			found := db.asFault(scanFile(db.q.QueryRowContext(ctx, file+`f.key = $2`, team, key), &f), "file")
			switch {
			case found == nil && f.Run != run:
				list = append(list, f)
			case found != nil && !fault.Is(found, fault.KindNotFound):
				return nil, "", found
			}
		}
	}
	return list, r.Starter.ID, err
}
