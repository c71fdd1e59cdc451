package store

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity/groups"
)

var _ groups.Store = (*DB)(nil)

// GroupMapping are the rules for teams that are not closed.
func (db *DB) GroupMapping(ctx context.Context) (groups.Mapping, error) {
	return all(ctx, db, func(r *sql.Rows, g *groups.Rule) error {
		return r.Scan(&g.Group, (*string)(&g.Team), (*string)(&g.Role))
	}, `
		SELECT g.group_name, g.team_id, g.role
		FROM group_mapping g JOIN teams t ON t.id = g.team_id AND t.closed_at IS NULL
		ORDER BY g.place`)
}

// MapsGroups reports whether there are rules.
func (db *DB) MapsGroups(ctx context.Context) (yes bool, err error) {
	err = db.q.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM group_mapping)`).Scan(&yes)
	return yes, err
}

// ReplaceGroupMapping puts other rules in place of the present ones.
func (db *DB) ReplaceGroupMapping(ctx context.Context, m groups.Mapping, allowed func(groups.Mapping) error) error {
	return db.inTx(ctx, func(tx *DB) error {
		if err := tx.lock(ctx, "group mapping"); err != nil {
			return err
		}
		now, err := tx.GroupMapping(ctx)
		if err != nil {
			return err
		}
		if err := allowed(now); err != nil {
			return err
		}
		if err := tx.mustHaveTeams(ctx, m); err != nil {
			return err
		}
		if _, err := tx.changed(ctx, `DELETE FROM group_mapping`); err != nil {
			return err
		}
		rows := make([][]any, len(m))
		for i, r := range m {
			rows[i] = []any{r.Group, r.Team, r.Role, i}
		}
		return tx.insertRows(ctx, `INSERT INTO group_mapping (group_name, team_id, role, place)`, "", rows)
	})
}

// mustHaveTeams refuses rules for teams that are not there.
func (db *DB) mustHaveTeams(ctx context.Context, m groups.Mapping) error {
	there := map[ids.Team]bool{}
	wanted := map[ids.Team]bool{}
	for _, r := range m {
		wanted[r.Team] = true
	}
	err := inChunks(slices.Sorted(maps.Keys(wanted)), func(some []ids.Team) error {
		found, err := all(ctx, db, func(r *sql.Rows, id *string) error { return r.Scan(id) },
			`SELECT id FROM teams WHERE closed_at IS NULL AND id IN (`+placeholders(1, len(some))+`)`, anys(some)...)
		for _, id := range found {
			there[ids.Team(id)] = true
		}
		return err
	})
	if err != nil {
		return err
	}
	var missing []int
	for i, r := range m {
		if !there[r.Team] {
			missing = append(missing, i)
		}
	}
	return groups.NoTeams(missing)
}

// ApplyGroups gives somebody who has signed in at an issuer the places of the mapping, and
// takes away those that it gave before and gives no longer.
func (db *DB) ApplyGroups(ctx context.Context, user ids.User, issuer string, in []string, now time.Time) error {
	entry := audit.Entry{At: now, Actor: audit.Actor{Type: "system", Name: "group mapping"}, Target: string(user)}
	if p := audit.From(ctx); p != nil {
		entry.Address, entry.RequestID = p.Address, p.RequestID
	}
	ctx = audit.Without(ctx) // the sign-in has an entry of its own
	if rules, before, err := db.mapped(ctx, user); err != nil || len(rules) == 0 && len(before) == 0 {
		return err
	}
	return db.inTx(ctx, func(tx *DB) error {
		rules, before, err := tx.mapped(ctx, user)
		if err != nil {
			return err
		}
		places := rules.Places(issuer, in, before)
		teams := slices.Collect(maps.Keys(places))
		for _, b := range before {
			teams = append(teams, b.Team)
		}
		slices.Sort(teams) // two sign-ins at once wait for each other in one order
		for _, team := range slices.Compact(teams) {
			entry.Chain = string(team)
			if err := tx.place(ctx, team, user, places[team], entry); err != nil {
				return err
			}
		}
		return nil
	})
}

// mapped are the rules, and what they gave somebody.
func (db *DB) mapped(ctx context.Context, user ids.User) (groups.Mapping, []groups.Place, error) {
	rules, err := db.GroupMapping(ctx)
	if err != nil {
		return nil, nil, err
	}
	before, err := all(ctx, db, func(r *sql.Rows, p *groups.Place) error {
		return r.Scan((*string)(&p.Team), &p.Issuer, &p.Group)
	}, `SELECT team_id, issuer, group_name FROM mapped_members WHERE user_id = $1`, user)
	return rules, before, err
}

// place makes somebody in a team what the higher of two roles allows: that of the mapping,
// and that which people gave.
func (db *DB) place(ctx context.Context, team ids.Team, user ids.User, p groups.Place, entry audit.Entry) error {
	if err := db.lock(ctx, "members of "+string(team)); err != nil {
		return err
	}
	var is, kept access.Role
	var lastOwner bool
	err := db.q.QueryRowContext(ctx, `
		SELECT COALESCE(m.role, ''), COALESCE(g.kept_role, m.role, ''),
		       COALESCE(m.role, '') = 'owner' AND (SELECT COUNT(*) FROM memberships o WHERE o.team_id = t.id AND o.role = 'owner') = 1
		FROM teams t
		LEFT JOIN memberships m ON m.team_id = t.id AND m.user_id = $2
		LEFT JOIN mapped_members g ON g.team_id = t.id AND g.user_id = $2
		WHERE t.id = $1 AND t.closed_at IS NULL`, team, user).Scan((*string)(&is), (*string)(&kept), &lastOwner)
	if errors.Is(err, sql.ErrNoRows) { // closed meanwhile
		return nil
	}
	role := groups.Higher(kept, p.Role)
	if err != nil || lastOwner && role != access.Owner {
		return err // a team needs an owner; the next sign-in tries again
	}
	if err := db.changeMember(ctx, team, user, is, role, entry); err != nil || role == "" {
		return err
	}
	if p.Role == "" {
		_, err := db.changed(ctx, `DELETE FROM mapped_members WHERE team_id = $1 AND user_id = $2`, team, user)
		return err
	}
	_, err = db.changed(ctx, `
		INSERT INTO mapped_members (team_id, user_id, issuer, group_name, kept_role) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (team_id, user_id) DO UPDATE SET issuer = excluded.issuer, group_name = excluded.group_name`, team, user, p.Issuer, p.Group, kept)
	return err
}

// changeMember makes a membership from what it is to another role, or none.
func (db *DB) changeMember(ctx context.Context, team ids.Team, user ids.User, is, role access.Role, entry audit.Entry) error {
	switch {
	case is == role:
		return nil
	case is == "":
		entry.Action = "member.joined"
		if err := db.insertMember(ctx, team, user, role, entry.At); err != nil {
			return err
		}
		if _, err := db.changed(ctx, `UPDATE users SET active_team = $1 WHERE id = $2 AND active_team = ''`, team, user); err != nil {
			return err
		}
		return db.appendAudit(ctx, entry)
	case role == "":
		entry.Action = "member.removed"
		if err := db.appendAudit(ctx, entry); err != nil { // while the person has a name in the team
			return err
		}
		return db.RemoveMember(ctx, team, user, func(access.Role) error { return nil })
	}
	entry.Action = "member.role_changed"
	if err := db.setRole(ctx, team, user, role); err != nil {
		return err
	}
	return db.appendAudit(ctx, entry)
}
