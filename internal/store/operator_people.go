package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/operator"
)

var _ operator.People = (*DB)(nil)

// PeopleBefore are the newest accounts before one, or the newest, that have a text in their
// name, address or id.
func (db *DB) PeopleBefore(ctx context.Context, text string, before ids.User, limit int) ([]operator.Person, error) {
	list, err := all(ctx, db, scanPerson, `
		SELECT u.id, u.name, `+emailOf+`, u.email_verified_at IS NOT NULL, u.created_at, u.disabled_at, u.seen_at, (SELECT MAX(g.last_used_at) FROM oauth_grants g WHERE g.user_id = u.id),
			EXISTS (SELECT 1 FROM operators o WHERE o.user_id = u.id), EXISTS (SELECT 1 FROM second_factors f WHERE f.user_id = u.id AND f.enabled)
		FROM users u
		WHERE u.service_of IS NULL AND u.deleted_at IS NULL AND (u.id < $1 OR $1 = '')
			AND (u.id = $2 OR lower(u.name) LIKE $3 ESCAPE '\' OR u.email LIKE $3 ESCAPE '\')
		ORDER BY u.id DESC LIMIT $4 + 0`, before, text, "%"+likeText(strings.ToLower(text))+"%", limit)
	if err != nil || len(list) == 0 {
		return list, err
	}
	return list, db.addTeams(ctx, list)
}

// likeText is a text in which LIKE finds nothing to expand.
func likeText(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}

func scanPerson(r *sql.Rows, p *operator.Person) error {
	var created int64
	var suspended, seen, used sql.NullInt64 // itself, and by an app
	err := r.Scan((*string)(&p.ID), &p.Name, &p.Email, &p.EmailVerified, &created, &suspended, &seen, &used, &p.Operator, &p.SecondFactor)
	p.CreatedAt, p.SuspendedAt, p.SeenAt, p.Teams = fromMicros(created), fromNull(suspended), latest(fromNull(seen), fromNull(used)), []operator.PersonTeam{}
	return err
}

func (db *DB) addTeams(ctx context.Context, list []operator.Person) error {
	at, args := map[string]int{}, make([]any, len(list))
	for i, p := range list {
		at[string(p.ID)], args[i] = i, p.ID
	}
	_, err := all(ctx, db, func(r *sql.Rows, _ *struct{}) error {
		var user string
		var t operator.PersonTeam
		err := r.Scan(&user, (*string)(&t.ID), &t.Name, (*string)(&t.Role))
		list[at[user]].Teams = append(list[at[user]].Teams, t)
		return err
	}, `
		SELECT m.user_id, t.id, t.name, m.role FROM memberships m JOIN teams t ON t.id = m.team_id AND t.closed_at IS NULL
		WHERE m.user_id IN (`+placeholders(1, len(list))+`) ORDER BY m.joined_at, m.team_id`, args...)
	return err
}

// account is what is locked of a person whose account changes.
type lockedAccount struct {
	id          ids.User
	email, name string
}

// ofPerson changes an account that is there, and has it on record who that is.
func (db *DB) ofPerson(ctx context.Context, id ids.User, fn func(*DB, lockedAccount) error) error {
	return db.inTx(ctx, func(tx *DB) error {
		a := lockedAccount{id: id}
		err := tx.q.QueryRowContext(ctx, `SELECT email, name FROM users WHERE id = $1 AND service_of IS NULL AND deleted_at IS NULL `+tx.dialect.forUpdate, id).Scan(&a.email, &a.name)
		if errors.Is(err, sql.ErrNoRows) {
			return fault.NotFound("there is no such account")
		}
		if err != nil {
			return err
		}
		if p := audit.From(ctx); p != nil {
			p.Target, p.TargetName = string(id), a.name
		}
		return fn(tx, a)
	})
}

// mustNotBeLastOperator refuses to take the last operator away. Operators who leave take turns.
func (db *DB) mustNotBeLastOperator(ctx context.Context, id ids.User) error {
	if err := db.lock(ctx, "operators"); err != nil {
		return err
	}
	var is bool
	var others int
	err := db.q.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM operators WHERE user_id = $1),
			(SELECT COUNT(*) FROM operators o JOIN users u ON u.id = o.user_id WHERE o.user_id <> $1 AND u.disabled_at IS NULL)`, id).Scan(&is, &others)
	if err == nil && is && others == 0 {
		err = fault.Conflict("this is the last operator of the installation: make another account one first, with millrace admin user set-operator").WithCode("last_operator")
	}
	return err
}

// SuspendPerson shuts somebody out, at once and until ResumePerson. Their schedules are paused.
func (db *DB) SuspendPerson(ctx context.Context, id ids.User, now time.Time) error {
	return db.ofPerson(ctx, id, func(tx *DB, a lockedAccount) error {
		if err := tx.mustNotBeLastOperator(ctx, id); err != nil {
			return err
		}
		if _, err := tx.changed(ctx, `UPDATE users SET disabled_at = COALESCE(disabled_at, $1) WHERE id = $2`, micros(now), id); err != nil {
			return err
		}
		teams, err := all(ctx, tx, func(r *sql.Rows, team *ids.Team) error { return r.Scan((*string)(team)) },
			`SELECT team_id FROM memberships WHERE user_id = $1 ORDER BY team_id`, id)
		if err != nil {
			return err
		}
		for _, team := range teams {
			if err := tx.pauseSchedulesOf(ctx, team, id); err != nil {
				return err
			}
		}
		return tx.endAccessOf(ctx, a.email)
	})
}

// ResumePerson lets somebody sign in again. What they signed in with while they were being
// suspended stays dead.
func (db *DB) ResumePerson(ctx context.Context, id ids.User) error {
	return db.ofPerson(ctx, id, func(tx *DB, a lockedAccount) error {
		n, err := tx.changed(ctx, `UPDATE users SET disabled_at = NULL WHERE id = $1 AND disabled_at IS NOT NULL`, id)
		if err != nil || n == 0 {
			return err
		}
		return tx.endAccessOf(ctx, a.email)
	})
}

// ResetSecondFactor turns somebody's second factor off.
func (db *DB) ResetSecondFactor(ctx context.Context, id ids.User) error {
	return db.ofPerson(ctx, id, func(tx *DB, _ lockedAccount) error { return tx.DeleteSecondFactor(ctx, id) })
}

// PersonID is the account of an address, or of an id.
func (db *DB) PersonID(ctx context.Context, text string) (id ids.User, err error) {
	err = db.q.QueryRowContext(ctx, `SELECT id FROM users WHERE (email = $1 OR id = $2) AND service_of IS NULL AND deleted_at IS NULL`, strings.ToLower(text), text).Scan((*string)(&id))
	if errors.Is(err, sql.ErrNoRows) {
		err = fault.NotFound("no account has the email address or id %s", text)
	}
	return id, err
}
