package store

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/connections"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

var _ connections.Store = (*DB)(nil)

func connectionPlace(id ids.Connection) string { return "connections/" + string(id) }

const connectionRow = `
	SELECT c.id, c.team_id, c.name, c.type, c.settings, c.hint, c.created_by, COALESCE(u.name, ''), c.created_at, c.test_ok, c.test_message, c.tested_at, c.sealed
	FROM connections c LEFT JOIN users u ON u.id = c.created_by WHERE c.team_id = $1 `

func scanConnection(row scanner, c *connections.Connection, sealed *[]byte) error {
	var settings string
	var created, tested int64
	err := row.Scan((*string)(&c.ID), (*string)(&c.Team), &c.Name, (*string)(&c.Type), &settings, &c.Hint, (*string)(&c.CreatedBy), &c.CreatorName,
		&created, &c.Test.OK, &c.Test.Message, &tested, sealed)
	if err != nil {
		return err
	}
	c.CreatedAt, c.Test.At = fromMicros(created), fromMicros(tested)
	return json.Unmarshal([]byte(settings), &c.Settings)
}

// Connections are a team's, newest first, without their credentials.
func (db *DB) Connections(ctx context.Context, team ids.Team) ([]connections.Connection, error) {
	var sealed []byte
	return all(ctx, db, func(r *sql.Rows, c *connections.Connection) error { return scanConnection(r, c, &sealed) },
		connectionRow+`ORDER BY c.id DESC`, team)
}

// OpenConnection is one of a team's with its credentials.
func (db *DB) OpenConnection(ctx context.Context, team ids.Team, id ids.Connection) (c connections.Connection, secret connections.Credentials, err error) {
	var sealed []byte
	err = scanConnection(db.q.QueryRowContext(ctx, connectionRow+`AND c.id = $2`, team, id), &c, &sealed)
	if err != nil {
		return c, secret, db.asFault(err, "connection")
	}
	text, err := db.sealer.open(connectionPlace(id), sealed)
	if err != nil {
		return c, secret, err
	}
	return c, secret, json.Unmarshal(text, &secret)
}

// ConnectionOf is the connection that a run's code comes by. A guest's run gets
// none unless its link allows it.
func (db *DB) ConnectionOf(ctx context.Context, run ids.Run, id ids.Connection) (c connections.Connection, secret connections.Credentials, err error) {
	team, err := db.teamOfTrusted(ctx, run)
	if err == nil {
		c, secret, err = db.OpenConnection(ctx, team, id)
	}
	if fault.Is(err, fault.KindNotFound) {
		err = fault.Invalid("the team has no connection %s any more", id)
	}
	return c, secret, err
}

// AddConnection keeps one, its credentials sealed.
func (db *DB) AddConnection(ctx context.Context, c connections.Connection, secret connections.Credentials, most int) (connections.Connection, error) {
	audit.On(ctx, c.ID)
	settings, err := json.Marshal(c.Settings)
	if err != nil {
		return c, err
	}
	text, err := json.Marshal(secret)
	if err != nil {
		return c, err
	}
	err = db.inTx(ctx, func(tx *DB) error {
		if err := tx.lock(ctx, "connections "+string(c.Team)); err != nil { // two new ones count each other
			return err
		}
		if err := tx.mustBeOpen(ctx, c.Team); err != nil {
			return err
		}
		var n int
		if err := tx.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM connections WHERE team_id = $1`, c.Team).Scan(&n); err != nil {
			return err
		}
		if n >= most {
			return fault.Conflict("a team has at most %d connections: delete one that is not used any more", most).WithCode("too_many_connections")
		}
		_, err := tx.q.ExecContext(ctx, `
			INSERT INTO connections (id, team_id, name, type, settings, sealed, hint, created_by, created_at, test_ok, test_message, tested_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
			c.ID, c.Team, c.Name, c.Type, string(settings), tx.sealer.seal(connectionPlace(c.ID), text), c.Hint, c.CreatedBy, micros(c.CreatedAt),
			c.Test.OK, c.Test.Message, micros(c.Test.At))
		return err
	})
	return c, err
}

// SetTested notes how a test went.
func (db *DB) SetTested(ctx context.Context, c connections.Connection) error {
	settings, err := json.Marshal(c.Settings)
	if err != nil {
		return err
	}
	_, err = db.changed(ctx, `UPDATE connections SET test_ok = $1, test_message = $2, tested_at = $3, settings = $4 WHERE team_id = $5 AND id = $6`,
		c.Test.OK, c.Test.Message, micros(c.Test.At), string(settings), c.Team, c.ID)
	return err
}

// namesConnection finds the workflows of a team whose definition, repository,
// schedules or triggers name a connection. An id is one word between quotes, and no other text is
// like it.
const namesConnection = `
	SELECT w.name FROM workflows w JOIN workflow_revisions r ON r.workflow_id = w.id AND r.revision = w.revision
	WHERE w.team_id = $1 AND (r.definition LIKE $2
		OR EXISTS (SELECT 1 FROM followed_repositories f WHERE f.workflow_id = w.id AND f.source LIKE $2)
		OR EXISTS (SELECT 1 FROM schedules s WHERE s.workflow_id = w.id AND s.given LIKE $2)
		OR EXISTS (SELECT 1 FROM triggers t WHERE t.workflow_id = w.id AND t.given LIKE $2)) LIMIT 1`

// DeleteConnection forgets one that nothing names.
func (db *DB) DeleteConnection(ctx context.Context, team ids.Team, id ids.Connection) error {
	return db.inTx(ctx, func(tx *DB) error {
		n, err := tx.changed(ctx, `DELETE FROM connections WHERE team_id = $1 AND id = $2`, team, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.NotFound("no such connection")
		}
		var user string
		err = tx.asFault(tx.q.QueryRowContext(ctx, namesConnection, team, `%"`+string(id)+`"%`).Scan(&user), "workflow")
		if fault.Is(err, fault.KindNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return fault.Conflict("the workflow %s, or a schedule or trigger of it, uses this connection: change that first", user).WithCode("connection_in_use")
	})
}
