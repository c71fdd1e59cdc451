package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/mails"
	"github.com/millrace/millrace/internal/notifications"
	"github.com/millrace/millrace/internal/runs"
)

var (
	_ notifications.Store     = (*DB)(nil)
	_ notifications.MailStore = (*DB)(nil)
)

// ofInbox are the notifications n of a person, $1, in a team, $2. Whoever has
// left the team sees no more of it.
const ofInbox = `
	n.user_id = $1 AND n.in_app AND (n.topic = 'invitations' OR n.team_id = $2 AND EXISTS (
		SELECT 1 FROM memberships m WHERE m.team_id = n.team_id AND m.user_id = n.user_id))`

// Notifications are somebody's before one of them, newest first.
func (db *DB) Notifications(ctx context.Context, team ids.Team, user ids.User, unread bool, before string, limit int) ([]notifications.Notification, error) {
	before = orAfterAll(db, before)
	return all(ctx, db, scanNotification, notificationRow+`WHERE `+ofInbox+` AND n.id < $3 AND (NOT $4 OR n.read_at IS NULL) ORDER BY n.id DESC LIMIT $5 + 0`,
		user, team, before, unread, limit)
}

const notificationRow = `
	SELECT n.id, n.user_id, n.team_id, t.name, n.topic, n.type, n.title, n.text, n.path, n.created_at, n.read_at
	FROM notifications n JOIN teams t ON t.id = n.team_id `

func scanNotification(r *sql.Rows, n *notifications.Notification) error {
	var created int64
	var read sql.NullInt64
	err := r.Scan(&n.ID, (*string)(&n.User), (*string)(&n.Team), &n.TeamName, (*string)(&n.Topic), &n.Type, &n.Title, &n.Text, &n.Path, &created, &read)
	n.CreatedAt, n.ReadAt = fromMicros(created), fromNull(read)
	return err
}

// Unread is how many of somebody's nobody has read.
func (db *DB) Unread(ctx context.Context, team ids.Team, user ids.User) (n int, err error) {
	err = db.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM notifications n WHERE `+ofInbox+` AND n.read_at IS NULL`, user, team).Scan(&n)
	return n, err
}

// MarkRead marks some as read; none: all.
func (db *DB) MarkRead(ctx context.Context, team ids.Team, user ids.User, list []string, now time.Time) error {
	mark := `UPDATE notifications SET read_at = $3 WHERE read_at IS NULL AND id IN (SELECT n.id FROM notifications n WHERE ` + ofInbox
	if len(list) == 0 {
		_, err := db.changed(ctx, mark+`)`, user, team, micros(now))
		return err
	}
	return db.inTx(ctx, func(tx *DB) error {
		return inChunks(list, func(some []string) error {
			_, err := tx.changed(ctx, mark+` AND n.id IN (`+placeholders(4, len(some))+`))`, append([]any{user, team, micros(now)}, anys(some)...)...)
			return err
		})
	})
}

// Choices are those that somebody has made.
func (db *DB) Choices(ctx context.Context, user ids.User) ([]notifications.Choice, error) {
	return all(ctx, db, func(r *sql.Rows, c *notifications.Choice) error { return r.Scan((*string)(&c.Topic), &c.App, &c.Mail) },
		`SELECT topic, app, mail FROM notification_choices WHERE user_id = $1`, user)
}

// SetChoices changes some.
func (db *DB) SetChoices(ctx context.Context, user ids.User, list []notifications.Choice) error {
	return db.inTx(ctx, func(tx *DB) error {
		rows := make([][]any, len(list))
		for i, c := range list {
			rows[i] = []any{user, string(c.Topic), c.App, c.Mail}
		}
		return tx.insertRows(ctx, `INSERT INTO notification_choices (user_id, topic, app, mail)`,
			`ON CONFLICT (user_id, topic) DO UPDATE SET app = excluded.app, mail = excluded.mail`, rows)
	})
}

// wantsAllRuns is whether anybody of a team wants to know of all its runs, as
// part of the statement that ends one.
const wantsAllRuns = `EXISTS (
	SELECT 1 FROM memberships m JOIN notification_choices c ON c.user_id = m.user_id AND c.topic = 'allRuns'
	WHERE m.team_id = runs.team_id AND (c.app OR c.mail))`

// notifyOfRun tells those who want to know how a run ended: everybody who asked
// for all runs, and whoever started it when it did not go well. Like notify, it
// tells nothing to whom the operator has shut out.
func (db *DB) notifyOfRun(ctx context.Context, r runs.Run, now time.Time) error {
	owner := spenderOf(r, 0).user
	if !failed(r.Status) {
		owner = ""
	}
	_, err := db.changed(ctx, `
		INSERT INTO notifications (id, user_id, team_id, topic, type, title, text, path, in_app, mail_due, created_at)
		SELECT CAST($1 AS TEXT) || m.user_id, m.user_id, m.team_id, CASE WHEN m.user_id = $2 THEN 'ownRuns' ELSE 'allRuns' END,
		       CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS TEXT), CAST($6 AS TEXT),
		       COALESCE(a.app, FALSE) OR m.user_id = $2 AND COALESCE(o.app, TRUE),
		       u.email_verified_at IS NOT NULL AND (COALESCE(a.mail, FALSE) OR m.user_id = $2 AND COALESCE(o.mail, FALSE)), CAST($7 AS BIGINT)
		FROM memberships m JOIN users u ON u.id = m.user_id
		LEFT JOIN notification_choices a ON a.user_id = m.user_id AND a.topic = 'allRuns'
		LEFT JOIN notification_choices o ON o.user_id = m.user_id AND o.topic = 'ownRuns'
		WHERE m.team_id = $8 AND u.service_of IS NULL AND u.disabled_at IS NULL
			AND (COALESCE(a.app, FALSE) OR COALESCE(a.mail, FALSE) OR m.user_id = $2 AND (COALESCE(o.app, TRUE) OR COALESCE(o.mail, FALSE)))
		ON CONFLICT (id) DO NOTHING`,
		ids.NewNotification()+"_", owner, string(lifecycle.Ended(r.Status)), fmt.Sprintf("Run #%d of %s: %s", r.Number, mails.QuotedName(r.WorkflowName), r.Status),
		r.ErrorMessage, "/runs/"+string(r.ID), micros(now), r.Team)
	return err
}

func failed(s lifecycle.Status) bool { return s == lifecycle.Failed || s == lifecycle.Interrupted }

// notify tells some members of a team, if they want to know of the topic, and
// returns the addresses of those who want it by mail, too.
func (db *DB) notify(ctx context.Context, n notifications.Notification, admins bool) (mail []string, err error) {
	d := notifications.Default(n.Topic)
	type wanting struct {
		user      string
		email     string
		app, mail bool
	}
	list, err := all(ctx, db, func(r *sql.Rows, w *wanting) error { return r.Scan(&w.user, &w.email, &w.app, &w.mail) }, `
		SELECT u.id, u.email, COALESCE(c.app, $1), COALESCE(c.mail, $2) AND u.email_verified_at IS NOT NULL
		FROM memberships m JOIN users u ON u.id = m.user_id LEFT JOIN notification_choices c ON c.user_id = u.id AND c.topic = $3
		WHERE m.team_id = $4 AND u.service_of IS NULL AND u.disabled_at IS NULL AND (u.id = $5 OR $6 AND m.role IN ($7, $8))
		ORDER BY u.id LIMIT 100`, d.App, d.Mail, string(n.Topic), n.Team, n.User, admins, access.Owner, access.Admin)
	if err != nil {
		return nil, err
	}
	id := ids.NewNotification() + "_"
	var rows [][]any
	for _, w := range list {
		if w.app {
			rows = append(rows, []any{id + w.user, w.user, n.Team, string(n.Topic), n.Type, n.Title, n.Text, n.Path, true, false, micros(n.CreatedAt)})
		}
		if w.mail {
			mail = append(mail, w.email)
		}
	}
	return mail, db.insertRows(ctx, `
		INSERT INTO notifications (id, user_id, team_id, topic, type, title, text, path, in_app, mail_due, created_at)`, "", rows)
}

// notifyOfBudget tells owners and admins, and the person whose budget it is.
func (db *DB) notifyOfBudget(ctx context.Context, team ids.Team, b billing.Budget, percent int, now time.Time) error {
	var name string
	if err := db.q.QueryRowContext(ctx, `SELECT name FROM teams WHERE id = $1`, team).Scan(&name); err != nil {
		return err
	}
	l := billing.AlertMail(b, team, name, percent)
	n := notifications.Notification{Team: team, Topic: notifications.Budgets, Type: "budget.alert", Title: l.Subject, Text: l.Text, Path: "/billing", CreatedAt: now}
	if b.Scope == billing.UserBudget {
		n.User = ids.User(b.Subject)
	}
	to, err := db.notify(ctx, n, true)
	for _, email := range to {
		l.ID, l.To = ids.NewMail(), email
		if err := db.insertMail(ctx, l, now); err != nil {
			return err
		}
	}
	return err
}

// notifyOfInvitation tells somebody who has an account that they were invited.
func (db *DB) notifyOfInvitation(ctx context.Context, team ids.Team, email, title string, now time.Time) error {
	_, err := db.changed(ctx, `
		INSERT INTO notifications (id, user_id, team_id, topic, type, title, text, path, in_app, mail_due, created_at)
		SELECT CAST($1 AS TEXT) || u.id, u.id, CAST($2 AS TEXT), 'invitations', 'invitation.received', CAST($3 AS TEXT), 'The mail to your address has the link.', '/account',
		       TRUE, FALSE, CAST($4 AS BIGINT)
		FROM users u LEFT JOIN notification_choices c ON c.user_id = u.id AND c.topic = 'invitations'
		WHERE u.email = $5 AND u.email_verified_at IS NOT NULL AND u.service_of IS NULL AND COALESCE(c.app, TRUE)`,
		ids.NewNotification()+"_", team, title, micros(now), email)
	return err
}

// SendMail leaves one mail for somebody whose notifications have been
// gathered long enough. They are marked in the transaction that leaves it.
func (db *DB) SendMail(ctx context.Context, gathered, before, now time.Time, mail func([]notifications.Notification) mails.Message) (bool, error) {
	var user ids.User
	err := db.q.QueryRowContext(ctx, `
		SELECT n.user_id FROM notifications n
		WHERE n.mail_due AND n.created_at <= $1 AND NOT EXISTS (SELECT 1 FROM notification_mails l WHERE l.user_id = n.user_id AND l.sent_at > $2)
		ORDER BY n.created_at LIMIT 1`, micros(gathered), micros(before)).Scan((*string)(&user))
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, db.inTx(audit.Without(ctx), func(tx *DB) error { return tx.sendMail(ctx, user, now, mail) })
}

func (db *DB) sendMail(ctx context.Context, user ids.User, now time.Time, mail func([]notifications.Notification) mails.Message) error {
	if err := db.lock(ctx, "mails to "+string(user)); err != nil {
		return err
	}
	list, err := all(ctx, db, scanNotification, notificationRow+`
		WHERE n.user_id = $1 AND n.mail_due AND EXISTS (
			SELECT 1 FROM memberships m JOIN users u ON u.id = m.user_id WHERE m.team_id = n.team_id AND m.user_id = n.user_id AND u.disabled_at IS NULL)
		ORDER BY n.id LIMIT 5000`, user)
	if err != nil {
		return err
	}
	if _, err := db.changed(ctx, `UPDATE notifications SET mail_due = FALSE WHERE user_id = $1 AND mail_due`, user); err != nil || len(list) == 0 {
		return err
	}
	_, err = db.changed(ctx, `
		INSERT INTO notification_mails (user_id, sent_at) VALUES ($1, $2)
		ON CONFLICT (user_id) DO UPDATE SET sent_at = excluded.sent_at`, user, micros(now))
	if err != nil {
		return err
	}
	l := mail(list)
	if err := db.q.QueryRowContext(ctx, `SELECT email FROM users WHERE id = $1`, user).Scan(&l.To); err != nil {
		return err
	}
	return db.insertMail(ctx, l, now)
}
