package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/files"
)

var _ files.LargeStore = (*DB)(nil)

const largeUpload = `
	SELECT id, key, team_id, file_id, name, content_type, size, manifest, part_size, storage_id, done, created_by, created_at, touched_at FROM large_uploads WHERE `

func scanLargeUpload(row scanner, u *files.LargeUpload) error {
	var created, touched int64
	err := row.Scan(&u.ID, &u.Key, (*string)(&u.Team), &u.FileID, &u.Name, &u.ContentType, &u.Size, &u.Manifest, &u.PartSize, &u.StorageID, &u.Done, (*string)(&u.CreatedBy), &created, &touched)
	u.CreatedAt, u.TouchedAt = fromMicros(created), fromMicros(touched)
	return err
}

// OpenUpload counts an upload in parts, and the manifest of a folder, against the quota and remembers it.
func (db *DB) OpenUpload(ctx context.Context, u files.LargeUpload, limit int64, most int) error {
	audit.On(ctx, u.Key)
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.lock(ctx, "large uploads "+string(u.Team)); err != nil { // two new ones count each other
			return err
		}
		if err := tx.mustBeOpen(ctx, u.Team); err != nil {
			return err
		}
		var n int
		if err := tx.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM large_uploads WHERE team_id = $1 AND NOT done`, u.Team).Scan(&n); err != nil {
			return err
		}
		if n >= most {
			return fault.Conflict("the team has %d uploads that are not complete: finish one, or list them with `millrace files uploads` and cancel one", n).WithCode("too_many_uploads")
		}
		if err := tx.fitStorage(ctx, u.Team, u.Size+u.Manifest, limit); err != nil {
			return err
		}
		_, err := tx.q.ExecContext(ctx, `
			INSERT INTO large_uploads (id, key, team_id, file_id, name, content_type, size, manifest, part_size, storage_id, created_by, created_at, touched_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, '', $10, $11, $12)`,
			u.ID, u.Key, u.Team, u.FileID, u.Name, u.ContentType, u.Size, u.Manifest, u.PartSize, u.CreatedBy, micros(u.CreatedAt), micros(u.TouchedAt))
		return err
	})
}

// SetStorageID notes what the object store calls an upload.
func (db *DB) SetStorageID(ctx context.Context, id, storageID string) error {
	n, err := db.changed(audit.Without(ctx), `UPDATE large_uploads SET storage_id = $1 WHERE id = $2 AND storage_id = ''`, storageID, id)
	if err == nil && n == 0 {
		return fault.Conflict("somebody else has just begun this upload, or called it off: ask again").WithCode("upload_busy")
	}
	return err
}

// LargeUpload is one of a team's.
func (db *DB) LargeUpload(ctx context.Context, team ids.Team, id string) (u files.LargeUpload, err error) {
	err = scanLargeUpload(db.q.QueryRowContext(ctx, largeUpload+`team_id = $1 AND id = $2`, team, id), &u)
	return u, db.asFault(err, "upload")
}

// OpenUploads are a team's uploads in parts that are not complete, the oldest first.
func (db *DB) OpenUploads(ctx context.Context, team ids.Team) ([]files.LargeUpload, error) {
	return all(ctx, db, func(r *sql.Rows, u *files.LargeUpload) error {
		var created, touched int64
		err := r.Scan(&u.ID, &u.Name, &u.Size, &created, &touched, (*string)(&u.CreatedBy), &u.CreatorName)
		u.CreatedAt, u.TouchedAt = fromMicros(created), fromMicros(touched)
		return err
	}, `
		SELECT l.id, l.name, l.size, l.created_at, l.touched_at, l.created_by, COALESCE(u.name, '')
		FROM large_uploads l LEFT JOIN users u ON u.id = l.created_by
		WHERE l.team_id = $1 AND NOT l.done ORDER BY l.created_at, l.id`, team)
}

// touchedAgain is how long an upload that was touched need not be: it goes after
// days, and each note is on disk before a part is taken.
const touchedAgain = time.Minute

// TouchUpload notes that something happens to an open upload. One of somebody who may not
// upload any more is fault.KindNotFound.
func (db *DB) TouchUpload(ctx context.Context, key string, now time.Time) (u files.LargeUpload, err error) {
	ctx = audit.Without(ctx)
	err = scanLargeUpload(db.q.QueryRowContext(ctx, largeUpload+`key = $1 AND NOT done AND `+stillMayUpload("large_uploads"), key), &u)
	if err != nil || now.Sub(u.TouchedAt) < touchedAgain {
		return u, db.asFault(err, "upload")
	}
	err = db.inTx(ctx, func(tx *DB) error {
		if _, err := tx.changed(ctx, `UPDATE large_uploads SET touched_at = $1 WHERE key = $2 AND NOT done`, micros(now), key); err != nil {
			return err
		}
		return tx.asFault(scanLargeUpload(tx.q.QueryRowContext(ctx, largeUpload+`key = $1 AND NOT done`, key), &u), "upload")
	})
	return u, err
}

// KeepUpload turns an upload into a file; what it counts stays counted.
func (db *DB) KeepUpload(ctx context.Context, key string, b files.Blob, now time.Time) error {
	return db.finishUpload(ctx, key, now, func(tx *DB, u files.LargeUpload) error { return tx.keepFile(ctx, becomes(u), b, now) })
}

// KeepFolder turns an upload into a folder. The manifest counts already, unless the upload
// was begun by an earlier version.
func (db *DB) KeepFolder(ctx context.Context, key string, data, manifest files.Blob, inIt int, now time.Time) error {
	return db.finishUpload(ctx, key, now, func(tx *DB, u files.LargeUpload) error {
		_, err := tx.changed(ctx, `
			INSERT INTO blobs (key, team_id, size, sha256, mark, refs, created_at) VALUES ($1, $2, $3, $4, $5, 1, $6)`,
			data.Key, u.Team, data.Size, data.SHA256, data.Mark, micros(now))
		if err != nil {
			return err
		}
		_, err = tx.changed(ctx, `
			INSERT INTO blobs (key, team_id, size, sha256, mark, refs, created_at, data_key, folder_files) VALUES ($1, $2, $3, $4, $5, 1, $6, $7, $8)`,
			manifest.Key, u.Team, manifest.Size, manifest.SHA256, manifest.Mark, micros(now), data.Key, inIt)
		if err != nil {
			return err
		}
		if _, err := tx.addStorage(ctx, u.Team, manifest.Size-u.Manifest, 0); err != nil {
			return err
		}
		r := becomes(u)
		r.ContentType = files.ManifestType
		return tx.keepRow(ctx, r, manifest, now)
	})
}

// finishUpload ends an upload that becomes a file by what keep adds, unless it has
// become one before.
func (db *DB) finishUpload(ctx context.Context, key string, now time.Time, keep func(tx *DB, u files.LargeUpload) error) error {
	audit.On(ctx, key)
	return db.inTx(ctx, func(tx *DB) error {
		var u files.LargeUpload
		err := scanLargeUpload(tx.q.QueryRowContext(ctx, largeUpload+`key = $1 `+tx.dialect.forUpdate, key), &u)
		if err != nil {
			return tx.asFault(err, "upload")
		}
		if u.Done {
			return nil
		}
		if _, err := tx.changed(ctx, `UPDATE large_uploads SET done = TRUE, touched_at = $1 WHERE key = $2`, micros(now), key); err != nil {
			return err
		}
		return keep(tx, u)
	})
}

// becomes is the file that an upload becomes.
func becomes(u files.LargeUpload) files.Reservation {
	return files.Reservation{Key: u.Key, Team: u.Team, ID: u.FileID, Name: u.Name, ContentType: u.ContentType, CreatedBy: u.CreatedBy}
}

// DropUpload ends an upload and what it counts.
func (db *DB) DropUpload(ctx context.Context, key string) error {
	ctx = audit.Without(ctx)
	return db.inTx(ctx, func(tx *DB) error {
		var team ids.Team
		var size int64
		var done bool
		err := tx.q.QueryRowContext(ctx, `DELETE FROM large_uploads WHERE key = $1 RETURNING team_id, size + manifest, done`, key).Scan((*string)(&team), &size, &done)
		if err = tx.asFault(err, "upload"); fault.Is(err, fault.KindNotFound) {
			return nil
		}
		if err != nil || done {
			return err
		}
		_, err = tx.addStorage(ctx, team, -size, 0)
		return err
	})
}

// StaleUploads are those that nobody has touched since.
func (db *DB) StaleUploads(ctx context.Context, touchedBy time.Time, after string, limit int) ([]files.LargeUpload, error) {
	return all(ctx, db, func(r *sql.Rows, u *files.LargeUpload) error { return scanLargeUpload(r, u) },
		largeUpload+`touched_at <= $1 AND key > $2 ORDER BY key LIMIT $3 + 0`, micros(touchedBy), after, limit)
}
