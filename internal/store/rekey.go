package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/fault"
)

// sealedColumn is where sealed values are, and what each is bound to.
type sealedColumn struct {
	table  string
	key    []string // columns that name a row
	column string
	place  func(key []string) string
}

// sealedColumns are all of them. A test holds the list against the schema.
var sealedColumns = []sealedColumn{
	{"signing_keys", []string{"id"}, "sealed", joined("signing_keys")},
	{"answers", []string{"scope", "key"}, "sealed", joined("answers")},
	{"outbox", []string{"id"}, "sealed", joined("outbox")},
	{"orders", []string{"id"}, "secret", joined("orders")},
	{"second_factors", []string{"user_id"}, "sealed", joined("second_factors")},
	{"secrets", []string{"team_id", "name", "version"}, "sealed", joined("secrets")},
	{"connections", []string{"id"}, "sealed", joined("connections")},
	{"webhooks", []string{"id"}, "sealed", joined("webhooks")},
	{"webhooks", []string{"id"}, "sealed_url", joined("webhook addresses")},
	{"triggers", []string{"id"}, "sealed", joined("triggers")},
	{"attempts", []string{"id"}, "sealed", joined("attempts")},
}

// joined is the place of a row, as the methods that seal spell it.
func joined(table string) func([]string) string {
	return func(key []string) string { return table + "/" + strings.Join(key, "/") }
}

// The rows of secret_check: what proves the key of the installation and, while
// it is being changed, the next one.
const (
	checkCurrent = 1
	checkNext    = 2
)

var errRotating = errors.New("a change of the secret key was not finished, and not everything is sealed with one key: run `millrace admin rotate-key` again, with the same keys, to finish it, or with --undo to go back to the old key")

// mustNotRotate refuses a database in the middle of a change of its key: what
// is sealed is sealed with one key or the other.
func (db *DB) mustNotRotate(ctx context.Context) error {
	var n int
	if err := db.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM secret_check WHERE id = $1`, checkNext).Scan(&n); err != nil {
		return err
	}
	if n > 0 {
		return errRotating
	}
	return nil
}

// HasKey reports whether a database with a current schema was opened with a
// secret key before.
func HasKey(ctx context.Context, url string) (bool, error) {
	db, err := connect(ctx, Options{URL: url})
	if err != nil {
		return false, err
	}
	var n int
	err = db.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM secret_check`).Scan(&n)
	return n > 0, errors.Join(err, db.Close())
}

// ProveKey reports whether a database was opened with a secret key before, whatever its
// schema, and returns ErrWrongKey if that was another one. An empty key is compared with
// nothing.
func ProveKey(ctx context.Context, url, key string) (sealed bool, err error) {
	d := dialectFor(url)
	if path := strings.TrimPrefix(url, "sqlite://"); d.name == sqliteDialect.name {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
	}
	db, err := connect(ctx, Options{URL: url})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var there int
	if err := db.q.QueryRowContext(ctx, d.hasTable, "secret_check").Scan(&there); err != nil || there == 0 {
		return false, err
	}
	if err := db.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM secret_check`).Scan(&there); err != nil || there == 0 || key == "" {
		return there > 0, err
	}
	if db.sealer, err = newSealer(key); err != nil {
		return true, err
	}
	return true, db.proveSecretKey(ctx)
}

// CheckSecretKey refuses a key that is too short.
func CheckSecretKey(key string) error {
	_, err := newSealer(key)
	return err
}

// CheckRotation returns an error if the secret key cannot be changed: because it is not
// the one of the database, or because a server runs. It writes nothing.
func CheckRotation(ctx context.Context, o Options) (err error) {
	key, err := newSealer(o.SecretKey)
	if err != nil {
		return err
	}
	db, err := connect(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.checkSchema(ctx); err != nil {
		return err
	}
	if err := db.mustNotRotate(ctx); err != nil {
		return err
	}
	current, err := db.secretCheck(ctx, checkCurrent)
	switch {
	case err != nil:
		return fmt.Errorf("this database has no secret key yet: %w", err)
	case !key.proves(current):
		return ErrWrongKey
	}
	return db.mustBeAlone(ctx)
}

// RotateSecretKey seals everything with the new key that is sealed with the old
// one. No server may run; on PostgreSQL it looks for signs of one. It can be killed at any
// moment: until it has ended, no server starts, and with the same keys it goes on where it
// was. With the keys exchanged it undoes what it has done. A second call changes nothing.
func RotateSecretKey(ctx context.Context, o Options, newKey string) (resealed int, err error) {
	ctx = audit.Without(ctx) // it can be on record only when there is one key again
	old, err := newSealer(o.SecretKey)
	if err != nil {
		return 0, err
	}
	next, err := newSealer(newKey)
	if err != nil {
		return 0, fmt.Errorf("the new key: %w", err)
	}
	db, err := connect(ctx, o)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.checkSchema(ctx); err != nil {
		return 0, err
	}
	done, err := db.beginRotation(ctx, old, next)
	if err != nil || done {
		return 0, err
	}
	for _, c := range sealedColumns {
		n, err := db.reseal(ctx, c, old, next)
		resealed += n
		if err != nil {
			return resealed, fmt.Errorf("seal %s anew: %w", c.table, err)
		}
	}
	if err := db.reproveAudit(ctx, old, next); err != nil {
		return resealed, err
	}
	return resealed, db.endRotation(ctx, next)
}

// beginRotation notes which key comes next, unless that is noted, and reports whether it
// is the key already.
func (db *DB) beginRotation(ctx context.Context, old, next *sealer) (done bool, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		if err := tx.lock(ctx, "secret key"); err != nil {
			return err
		}
		current, err := tx.secretCheck(ctx, checkCurrent)
		if err != nil {
			return fmt.Errorf("this database has no secret key yet: %w", err)
		}
		begun, err := tx.secretCheck(ctx, checkNext)
		isNew := fault.Is(err, fault.KindNotFound)
		switch {
		case err != nil && !isNew:
			return err
		case isNew && next.proves(current):
			done = true
			return nil
		case isNew && !old.proves(current):
			return errors.New("the old secret key is not the one this database was made with")
		case isNew:
			return tx.noteNextKey(ctx, old, next, current)
		case old.proves(current) && next.proves(begun), old.proves(begun) && next.proves(current): // forth or back
			return nil
		}
		return errors.New("a change with other keys was begun: finish or undo that one first, with the same keys")
	})
	return done, err
}

// noteNextKey seals what names the installation with the next key.
func (db *DB) noteNextKey(ctx context.Context, old, next *sealer, current []byte) error {
	if err := db.mustBeAlone(ctx); err != nil {
		return err
	}
	random, err := old.open(checkPlace, current)
	if err == nil {
		_, err = db.q.ExecContext(ctx, `INSERT INTO secret_check (id, sealed) VALUES ($1, $2)`, checkNext, next.seal(checkPlace, random))
	}
	return err
}

// proves reports whether a check was made with this key.
func (s *sealer) proves(check []byte) bool {
	_, err := s.open(checkPlace, check)
	return err == nil
}

// mustBeAlone refuses while a server reports that it is there: it would go on
// sealing with the old key. Each worker reports itself; where none runs tasks, one of the
// servers does the chores.
func (db *DB) mustBeAlone(ctx context.Context) error {
	if db.writer != nil { // a SQLite file belongs to whoever has locked its folder
		return nil
	}
	var who string
	now := db.Now()
	err := db.q.QueryRowContext(ctx, `SELECT host FROM workers WHERE seen_at > $1 UNION ALL SELECT owner FROM upkeep_lease WHERE until > $2 LIMIT 1`,
		micros(now.Add(-present)), micros(now)).Scan(&who)
	if err = db.asFault(err, "server"); fault.Is(err, fault.KindNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("a server on %s was there a moment ago: stop all servers and workers first, and try again a minute later", who)
}

func (db *DB) secretCheck(ctx context.Context, id int) (sealed []byte, err error) {
	err = db.q.QueryRowContext(ctx, `SELECT sealed FROM secret_check WHERE id = $1`, id).Scan(&sealed)
	return sealed, db.asFault(err, "check of the secret key")
}

// resealBatch is how many rows are sealed anew in one transaction.
const resealBatch = 200

// reseal goes through a table in the order of its keys. What the new key opens
// was done before.
func (db *DB) reseal(ctx context.Context, c sealedColumn, old, next *sealer) (n int, err error) {
	var after []string
	for ctx.Err() == nil {
		var last []string
		err := db.inTx(ctx, func(tx *DB) error {
			rows, err := tx.sealedAfter(ctx, c, after)
			if err != nil || len(rows) == 0 {
				last = nil
				return err
			}
			for _, r := range rows {
				done, err := tx.resealOne(ctx, c, r, old, next)
				if err != nil {
					return err
				}
				n += done
			}
			last = rows[len(rows)-1].key
			return nil
		})
		if err != nil || last == nil {
			return n, err
		}
		after = last
	}
	return n, ctx.Err()
}

// sealedRow is one value with what names it.
type sealedRow struct {
	key    []string
	sealed []byte
}

func (db *DB) sealedAfter(ctx context.Context, c sealedColumn, after []string) (list []sealedRow, err error) {
	names := make([]string, len(c.key))
	for i, name := range c.key {
		names[i] = "CAST(" + name + " AS TEXT)"
	}
	row := "(" + strings.Join(names, ", ") + ")"
	query, args := `SELECT `+strings.Join(names, ", ")+`, `+c.column+` FROM `+c.table, []any{}
	if after != nil {
		marks := make([]string, len(after))
		for i, text := range after {
			marks[i], args = fmt.Sprintf("$%d", i+1), append(args, text)
		}
		query += ` WHERE ` + row + ` > (` + strings.Join(marks, ", ") + `)`
	}
	rows, err := db.q.QueryContext(ctx, query+` ORDER BY `+strings.Join(names, ", ")+fmt.Sprintf(` LIMIT %d`, resealBatch), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		r := sealedRow{key: make([]string, len(c.key))}
		into := make([]any, 0, len(c.key)+1)
		for i := range r.key {
			into = append(into, &r.key[i])
		}
		if err := rows.Scan(append(into, &r.sealed)...); err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, rows.Err()
}

func (db *DB) resealOne(ctx context.Context, c sealedColumn, r sealedRow, old, next *sealer) (int, error) {
	if len(r.sealed) == 0 { // of an earlier version: sealed when a server starts
		return 0, nil
	}
	place := c.place(r.key)
	if _, err := next.open(place, r.sealed); err == nil {
		return 0, nil
	}
	text, err := old.open(place, r.sealed)
	if err != nil {
		return 0, fmt.Errorf("a row can be opened with neither key: %w", err)
	}
	where, args := make([]string, len(c.key)), []any{next.seal(place, text)}
	for i, name := range c.key {
		where[i], args = fmt.Sprintf("CAST(%s AS TEXT) = $%d", name, i+2), append(args, r.key[i])
	}
	_, err = db.changed(ctx, `UPDATE `+c.table+` SET `+c.column+` = $1 WHERE `+strings.Join(where, " AND "), args...)
	return 1, err
}

// endRotation makes the next key the key. If that is the one it was before, the change is
// undone.
func (db *DB) endRotation(ctx context.Context, next *sealer) error {
	return db.inTx(ctx, func(tx *DB) error {
		begun, err := tx.secretCheck(ctx, checkNext)
		if err != nil {
			return err
		}
		if next.proves(begun) {
			if _, err := tx.changed(ctx, `UPDATE secret_check SET sealed = $1 WHERE id = $2`, begun, checkCurrent); err != nil {
				return err
			}
		}
		_, err = tx.changed(ctx, `DELETE FROM secret_check WHERE id = $1`, checkNext)
		return err
	})
}
