package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/secrets"
)

var _ secrets.Store = (*DB)(nil)

func secretPlace(team ids.Team, name string, version int) string {
	return fmt.Sprintf("secrets/%s/%s/%d", team, name, version)
}

// Secrets are a team's, by name, without their values.
func (db *DB) Secrets(ctx context.Context, team ids.Team) ([]secrets.Secret, error) {
	return all(ctx, db, func(r *sql.Rows, s *secrets.Secret) error { return scanSecret(r, s) },
		secretRow+`WHERE team_id = $1 ORDER BY name`, team)
}

const secretRow = `SELECT name, hint, version, created_at, updated_at, last_used_at FROM secrets `

func scanSecret(row scanner, s *secrets.Secret) error {
	var created, updated int64
	var used sql.NullInt64
	err := row.Scan(&s.Name, &s.Hint, &s.Version, &created, &updated, &used)
	s.CreatedAt, s.UpdatedAt, s.LastUsedAt = fromMicros(created), fromMicros(updated), fromNull(used)
	return err
}

// PutSecret keeps a value under a name, sealed.
func (db *DB) PutSecret(ctx context.Context, team ids.Team, s secrets.Secret, value string, most int) (kept secrets.Secret, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		if err := tx.lock(ctx, "secrets "+string(team)); err != nil { // two new names count each other
			return err
		}
		if err := tx.mustBeOpen(ctx, team); err != nil {
			return err
		}
		kept = s
		var created int64
		err := tx.q.QueryRowContext(ctx, `SELECT version, created_at FROM secrets WHERE team_id = $1 AND name = $2`, team, s.Name).Scan(&kept.Version, &created)
		kept.Version++
		if err = tx.asFault(err, "secret"); err == nil {
			kept.CreatedAt = fromMicros(created)
			_, err = tx.changed(ctx, `UPDATE secrets SET sealed = $1, hint = $2, version = $3, updated_at = $4 WHERE team_id = $5 AND name = $6`,
				tx.sealer.seal(secretPlace(team, s.Name, kept.Version), []byte(value)), s.Hint, kept.Version, micros(s.UpdatedAt), team, s.Name)
			return err
		}
		if !fault.Is(err, fault.KindNotFound) {
			return err
		}
		var n int
		if err := tx.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM secrets WHERE team_id = $1`, team).Scan(&n); err != nil {
			return err
		}
		if n >= most {
			return fault.Conflict("a team keeps at most %d secrets: delete one that is not used any more", most).WithCode("too_many_secrets")
		}
		_, err = tx.q.ExecContext(ctx, `
			INSERT INTO secrets (team_id, name, sealed, hint, version, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			team, s.Name, tx.sealer.seal(secretPlace(team, s.Name, kept.Version), []byte(value)), s.Hint, kept.Version, micros(s.CreatedAt), micros(s.UpdatedAt))
		return err
	})
	return kept, err
}

// DeleteSecret forgets a secret.
func (db *DB) DeleteSecret(ctx context.Context, team ids.Team, name string) error {
	n, err := db.changed(ctx, `DELETE FROM secrets WHERE team_id = $1 AND name = $2`, team, name)
	if err == nil && n == 0 {
		return fault.NotFound("no such secret")
	}
	return err
}

// MissingSecrets are those of the names that the team has no secret for.
func (db *DB) MissingSecrets(ctx context.Context, team ids.Team, names []string) ([]string, error) {
	list, err := db.Secrets(ctx, team)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, s := range list {
		known[s.Name] = true
	}
	var missing []string
	for _, name := range names {
		if !known[name] {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// usedEvery is how exactly the last use of a secret is known.
const usedEvery = time.Minute

// SecretsOf are the values that a node of a run gets. A guest's run gets none
// unless its link allows it, whatever was checked when it started.
func (db *DB) SecretsOf(ctx context.Context, id ids.Run, names []string, now time.Time) (map[string]runs.Secret, error) {
	team, err := db.teamOfTrusted(ctx, id)
	if err != nil {
		return nil, err
	}
	found := map[string]runs.Secret{}
	var stale []string
	for _, name := range names {
		var sealed []byte
		var version int
		var updated int64
		var used sql.NullInt64
		err := db.q.QueryRowContext(ctx, `SELECT sealed, version, updated_at, last_used_at FROM secrets WHERE team_id = $1 AND name = $2`, team, name).
			Scan(&sealed, &version, &updated, &used)
		if err = db.asFault(err, "secret"); fault.Is(err, fault.KindNotFound) {
			return nil, fault.Invalid("the team has no secret %s any more", name)
		}
		if err != nil {
			return nil, err
		}
		value, err := db.sealer.open(secretPlace(team, name, version), sealed)
		if err != nil {
			return nil, err
		}
		found[name] = runs.Secret{Value: string(value), Version: fmt.Sprintf("version %d of %s", version, fromMicros(updated).Format(time.RFC3339Nano))}
		if now.Sub(fromNull(used)) >= usedEvery {
			stale = append(stale, name)
		}
	}
	return found, db.noteUsed(ctx, team, stale, now)
}

// teamOfTrusted is the team of a run that may have what is secret.
func (db *DB) teamOfTrusted(ctx context.Context, id ids.Run) (team ids.Team, err error) {
	var invite string
	var allowed bool
	err = db.q.QueryRowContext(ctx, `
		SELECT r.team_id, r.invite_id, COALESCE(i.allow_secrets, FALSE)
		FROM runs r LEFT JOIN share_invites i ON i.id = r.invite_id WHERE r.id = $1`, id).Scan((*string)(&team), &invite, &allowed)
	if err == nil && invite != "" && !allowed {
		err = fault.Invalid("it uses secrets or connections, and the share link that started the run does not allow that")
	}
	return team, db.asFault(err, "run")
}

func (db *DB) noteUsed(ctx context.Context, team ids.Team, names []string, now time.Time) error {
	ctx = audit.Without(ctx)
	if len(names) == 0 {
		return nil
	}
	args, marks := []any{micros(now), team}, make([]string, len(names))
	for i, name := range names {
		args, marks[i] = append(args, name), fmt.Sprintf("$%d", i+3)
	}
	_, err := db.changed(ctx, `UPDATE secrets SET last_used_at = $1 WHERE team_id = $2 AND name IN (`+strings.Join(marks, ", ")+`)`, args...)
	return err
}
