package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/account"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// ofPeople are the tables with what is a person's own, besides what endAccessOf deletes. A test
// holds the list against the schema.
var ofPeople = []string{
	"second_factors", "user_identities", "operators", "favorite_runs", "favorite_workflows", "saved_filters", "notifications", "notification_choices", "notification_mails",
}

// place is somebody's place in a team.
type place struct {
	team           ids.Team
	name           string
	role           access.Role
	people, owners int // of the team, with them
}

// DeletePerson takes an account away: its address is free from then on. The teams that nobody
// else belongs to are closed, and erased by whoever erases teams. Their row keeps the name, for
// what they made in other teams.
func (db *DB) DeletePerson(ctx context.Context, id ids.User, l account.Lifetimes, now time.Time) (closed []ids.Team, err error) {
	err = db.ofPerson(ctx, id, func(tx *DB, a lockedAccount) error {
		closed = []ids.Team{}
		if err := tx.mustNotBeLastOperator(ctx, id); err != nil {
			return err
		}
		places, err := tx.lockedPlaces(ctx, id)
		if err != nil {
			return err
		}
		if err := mayGo(places); err != nil {
			return err
		}
		for _, p := range places {
			if p.people == 1 {
				closed = append(closed, p.team)
				err = tx.CloseTeam(ctx, p.team, l, now)
			} else {
				err = tx.leave(ctx, p.team, id)
			}
			if err != nil {
				return err
			}
		}
		return tx.forget(ctx, a, now)
	})
	return closed, err
}

// lockedPlaces are somebody's open teams, whose members stay as they are until the
// transaction ends. The locks are taken in one order, so that two never wait in a circle.
func (db *DB) lockedPlaces(ctx context.Context, id ids.User) ([]place, error) {
	teams, err := all(ctx, db, func(r *sql.Rows, team *string) error { return r.Scan(team) },
		`SELECT team_id FROM memberships WHERE user_id = $1 ORDER BY team_id`, id)
	if err != nil {
		return nil, err
	}
	for _, team := range teams {
		if err := db.lock(ctx, "members of "+team); err != nil {
			return nil, err
		}
	}
	return all(ctx, db, func(r *sql.Rows, p *place) error {
		return r.Scan((*string)(&p.team), &p.name, (*string)(&p.role), &p.people, &p.owners)
	}, `
		SELECT t.id, t.name, mine.role, `+peopleOf+`, (SELECT COUNT(*) FROM memberships o WHERE o.team_id = t.id AND o.role = 'owner')
		FROM memberships mine JOIN teams t ON t.id = mine.team_id AND t.closed_at IS NULL WHERE mine.user_id = $1 ORDER BY t.id`, id)
}

// mayGo refuses to leave people in a team without an owner.
func mayGo(places []place) error {
	var names []string
	for _, p := range places {
		if p.role == access.Owner && p.owners == 1 && p.people > 1 {
			names = append(names, fmt.Sprintf("%q", p.name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fault.Conflict("the account is the last owner of %s, which others belong to: make somebody else an owner there, or erase the team, first", strings.Join(names, ", ")).WithCode("last_owner")
}

// leave ends a membership because the account ends, and has it in the team's log, too.
func (db *DB) leave(ctx context.Context, team ids.Team, id ids.User) error {
	if p := audit.From(ctx); p != nil {
		left := p.Entry
		left.Chain, left.Action = audit.ChainOf(team), "member.left"
		if err := db.appendAudit(ctx, left); err != nil {
			return err
		}
	}
	if _, err := db.changed(ctx, `DELETE FROM memberships WHERE team_id = $1 AND user_id = $2`, team, id); err != nil {
		return err
	}
	return db.pauseSchedulesOf(ctx, team, id)
}

// forget deletes what is known of a person but their name.
func (db *DB) forget(ctx context.Context, a lockedAccount, now time.Time) error {
	if err := db.endAccessOf(ctx, a.email); err != nil {
		return err
	}
	for _, table := range ofPeople {
		if _, err := db.changed(ctx, `DELETE FROM `+table+` WHERE user_id = $1`, a.id); err != nil {
			return err
		}
	}
	// Open invitations stay: whoever invited the address meant it.
	if _, err := db.changed(ctx, `UPDATE invitations SET email = '' WHERE email = $1 AND ended_as <> ''`, a.email); err != nil {
		return err
	}
	_, err := db.changed(ctx, `
		UPDATE users SET email = id, password_hash = '', email_verified_at = NULL, active_team = '', seen_at = NULL, disabled_at = $1, deleted_at = $1 WHERE id = $2`,
		micros(now), a.id)
	return err
}
