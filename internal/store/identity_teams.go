package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// InsertTeam adds a team with its owner.
func (db *DB) InsertTeam(ctx context.Context, t builtin.NewTeam) error {
	audit.On(ctx, t.ID)
	inTeam(ctx, t.ID)
	return db.inTx(ctx, func(tx *DB) error {
		wait, err := tx.waitFor(ctx, t)
		if err != nil {
			return err
		}
		_, err = tx.q.ExecContext(ctx, `INSERT INTO teams (id, name, plan, created_at, credits_wait_for) VALUES ($1, $2, $3, $4, $5)`,
			t.ID, t.Name, t.Plan, micros(t.CreatedAt), wait)
		if err == nil {
			err = tx.beginWithDefaults(ctx, t.ID)
		}
		if err != nil {
			return err
		}
		return tx.insertMember(ctx, t.ID, t.Owner, access.Owner, t.CreatedAt)
	})
}

// waitFor is whose address must be verified before the team has its monthly
// credits: the owner's, unless that has happened meanwhile.
func (db *DB) waitFor(ctx context.Context, t builtin.NewTeam) (user ids.User, err error) {
	if !t.WaitVerified {
		return "", nil
	}
	err = db.q.QueryRowContext(ctx, `
		SELECT CASE WHEN email_verified_at IS NULL THEN id ELSE '' END FROM users WHERE id = $1 `+db.dialect.forShare, t.Owner).Scan(&user)
	return user, db.asFault(err, "account")
}

// insertMember adds somebody to a team; who is in it stays what they are.
func (db *DB) insertMember(ctx context.Context, team ids.Team, user ids.User, role access.Role, now time.Time) error {
	_, err := db.q.ExecContext(ctx, `
		INSERT INTO memberships (team_id, user_id, role, joined_at)
		VALUES ($1, $2, $3, $4)
		ON CONFLICT (team_id, user_id) DO NOTHING`, team, user, role, micros(now))
	return err
}

// RenameTeam gives a team another name.
func (db *DB) RenameTeam(ctx context.Context, team ids.Team, name string) error {
	return db.mustTouchTeam(ctx, `UPDATE teams SET name = $1 WHERE id = $2`, name, team)
}

func (db *DB) mustTouchTeam(ctx context.Context, query string, args ...any) error {
	n, err := db.changed(ctx, query, args...)
	if err == nil && n == 0 {
		return fault.NotFound("no such team")
	}
	return err
}

// TeamSummary is a team as the operator sees it.
type TeamSummary struct {
	identity.Team
	Members   int
	Owners    string // their email addresses
	CreatedAt time.Time
}

// peopleOf counts the people of a team t.
const peopleOf = `(SELECT COUNT(*) FROM memberships m JOIN users u ON u.id = m.user_id AND u.service_of IS NULL WHERE m.team_id = t.id)`

// Teams lists all teams for the operator, oldest first.
func (db *DB) Teams(ctx context.Context) ([]TeamSummary, error) {
	list, err := all(ctx, db, func(r *sql.Rows, t *TeamSummary) error {
		var created int64
		err := r.Scan(&t.ID, &t.Name, &t.Plan, &created, &t.Members)
		t.CreatedAt = fromMicros(created)
		return err
	}, `
		SELECT t.id, t.name, t.plan, t.created_at, `+peopleOf+`
		FROM teams t
		ORDER BY t.id`)
	if err != nil {
		return nil, err
	}
	return list, db.addOwners(ctx, list)
}

func (db *DB) addOwners(ctx context.Context, list []TeamSummary) error {
	type owner struct {
		team  ids.Team
		email string
	}
	owners, err := all(ctx, db, func(r *sql.Rows, o *owner) error { return r.Scan(&o.team, &o.email) }, `
		SELECT m.team_id, u.email
		FROM memberships m JOIN users u ON u.id = m.user_id
		WHERE m.role = $1
		ORDER BY m.joined_at`, access.Owner)
	if err != nil {
		return err
	}
	byTeam := map[ids.Team]string{}
	for _, o := range owners {
		if byTeam[o.team] != "" {
			byTeam[o.team] += ", "
		}
		byTeam[o.team] += o.email
	}
	for i := range list {
		list[i].Owners = byTeam[list[i].ID]
	}
	return nil
}

// ActivateTeam makes a team the session's choice.
func (db *DB) ActivateTeam(ctx context.Context, session ids.Session, team ids.Team) error {
	return db.inTx(ctx, func(tx *DB) error {
		var user ids.User
		err := tx.q.QueryRowContext(ctx, `UPDATE sessions SET active_team = $1 WHERE id = $2 RETURNING user_id`, team, session).Scan((*string)(&user))
		if err != nil {
			return tx.asFault(err, "session")
		}
		return tx.beginIn(ctx, user, team)
	})
}

// beginIn has somebody's next sessions begin in a team.
func (db *DB) beginIn(ctx context.Context, user ids.User, team ids.Team) error {
	_, err := db.changed(ctx, `UPDATE users SET active_team = $1 WHERE id = $2`, team, user)
	return err
}

const members = `
	SELECT u.id, u.name, u.email, u.email_verified_at IS NOT NULL, m.role, m.joined_at
	FROM memberships m JOIN users u ON u.id = m.user_id
	WHERE m.team_id = $1 AND u.service_of IS NULL `

func scanMember(row scanner, m *builtin.Member) error {
	var joined int64
	err := row.Scan(&m.ID, &m.Name, &m.Email, &m.EmailVerified, &m.Role, &joined)
	m.JoinedAt = fromMicros(joined)
	return err
}

// Members are the people of a team, the earliest joined first.
func (db *DB) Members(ctx context.Context, team ids.Team) ([]builtin.Member, error) {
	return all(ctx, db, func(r *sql.Rows, m *builtin.Member) error { return scanMember(r, m) },
		members+`ORDER BY m.joined_at, u.id`, team)
}

// ChangeRole gives a member another role.
func (db *DB) ChangeRole(ctx context.Context, team ids.Team, user ids.User, role access.Role, allowed func(access.Role) error) (m builtin.Member, err error) {
	err = db.asMember(ctx, team, user, allowed, role == access.Owner, func(tx *DB) error {
		if err := tx.setRole(ctx, team, user, role); err != nil {
			return err
		}
		// The mapping of groups takes away no role that people gave.
		if _, err := tx.changed(ctx, `UPDATE mapped_members SET kept_role = $1 WHERE team_id = $2 AND user_id = $3`, role, team, user); err != nil {
			return err
		}
		return scanMember(tx.q.QueryRowContext(ctx, members+`AND m.user_id = $2`, team, user), &m)
	})
	return m, err
}

// setRole changes a membership, and pauses the schedules of who may start no runs by it.
func (db *DB) setRole(ctx context.Context, team ids.Team, user ids.User, role access.Role) error {
	_, err := db.changed(ctx, `UPDATE memberships SET role = $1 WHERE team_id = $2 AND user_id = $3`, role, team, user)
	if err != nil || role.May(access.StartRuns) {
		return err
	}
	return db.pauseSchedulesOf(ctx, team, user)
}

// RemoveMember ends a membership.
func (db *DB) RemoveMember(ctx context.Context, team ids.Team, user ids.User, allowed func(access.Role) error) error {
	return db.asMember(ctx, team, user, allowed, false, func(tx *DB) error {
		if _, err := tx.changed(ctx, `DELETE FROM memberships WHERE team_id = $1 AND user_id = $2`, team, user); err != nil {
			return err
		}
		return tx.pauseSchedulesOf(ctx, team, user)
	})
}

// asMember changes one membership. Changes to a team's members take turns, so
// that two owners cannot step down at once and leave nobody.
func (db *DB) asMember(ctx context.Context, team ids.Team, user ids.User, allowed func(access.Role) error, staysOwner bool, change func(*DB) error) error {
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.lock(ctx, "members of "+string(team)); err != nil {
			return err
		}
		var role access.Role
		var owners int
		err := tx.q.QueryRowContext(ctx, `
			SELECT m.role, (SELECT COUNT(*) FROM memberships o WHERE o.team_id = $1 AND o.role = 'owner')
			FROM memberships m JOIN users u ON u.id = m.user_id AND u.service_of IS NULL
			WHERE m.team_id = $1 AND m.user_id = $2`, team, user).Scan(&role, &owners)
		if err != nil {
			return tx.asFault(err, "member")
		}
		if err := allowed(role); err != nil {
			return err
		}
		if role == access.Owner && owners == 1 && !staysOwner {
			return fault.Conflict("a team needs an owner: make somebody else owner first").WithCode("last_owner")
		}
		return change(tx)
	})
}
