package store

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/millrace/millrace/internal/runs/live"
	"github.com/millrace/millrace/internal/sharing"
)

// Where servers on one PostgreSQL notify each other of editor rooms, and of runs.
const (
	roomsChannel = "millrace_rooms"
	runsChannel  = "millrace_runs"
)

// Bridge joins the rooms of the servers on this database, or is nil where there
// can be only one.
func (db *DB) Bridge() sharing.Bridge {
	if db.writer != nil {
		return nil
	}
	return bridge{db, roomsChannel}
}

// RunsBridge does the same for their runs.
func (db *DB) RunsBridge() live.Bridge {
	if db.writer != nil {
		return nil
	}
	return bridge{db, runsChannel}
}

type bridge struct {
	db      *DB
	channel string
}

// Send notifies the other servers, by the connection that is for leases: a message
// must not wait behind the work that it tells of.
func (b bridge) Send(ctx context.Context, message string) error {
	_, err := b.db.leasing.ExecContext(ctx, `SELECT pg_notify($1, $2)`, b.channel, message)
	return err
}

// Listen receives what is sent, on a connection of its own.
func (b bridge) Listen(ctx context.Context, heard func(string), back func()) error {
	c, err := b.db.pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	err = c.Raw(func(raw any) error {
		own, ok := raw.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("no PostgreSQL connection, but %T", raw)
		}
		if _, err := own.Conn().Exec(ctx, "LISTEN "+b.channel); err != nil {
			return err
		}
		back()
		for {
			n, err := own.Conn().WaitForNotification(ctx)
			if err != nil {
				// It still listens: nobody else may have this connection.
				return fmt.Errorf("%w: %w", driver.ErrBadConn, err)
			}
			heard(n.Payload)
		}
	})
	return err
}
