package store

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// InsertDevice adds the request of a terminal.
func (db *DB) InsertDevice(ctx context.Context, d builtin.Device) error {
	_, err := db.changed(ctx, `
		INSERT INTO oauth_devices (device_hash, user_hash, client_id, state, pause, polled_at, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		d.DeviceHash, d.UserHash, d.Client, d.State, d.Pause.Microseconds(), micros(d.PolledAt), micros(d.ExpiresAt))
	return db.asFault(err, "device")
}

func (db *DB) device(ctx context.Context, where string, args ...any) (builtin.Device, error) {
	var d builtin.Device
	var pause, polled, expires int64
	err := db.q.QueryRowContext(ctx, `
		SELECT device_hash, user_hash, client_id, state, user_id, pause, polled_at, expires_at FROM oauth_devices WHERE `+where, args...).
		Scan(&d.DeviceHash, &d.UserHash, &d.Client, &d.State, &d.User, &pause, &polled, &expires)
	d.Pause, d.PolledAt, d.ExpiresAt = time.Duration(pause)*time.Microsecond, fromMicros(polled), fromMicros(expires)
	return d, db.asFault(err, "device")
}

// Device is the open request of a person's code.
func (db *DB) Device(ctx context.Context, userHash string, now time.Time) (builtin.Device, error) {
	return db.device(ctx, `user_hash = $1 AND state = $2 AND expires_at > $3`, userHash, builtin.DeviceOpen, micros(now))
}

// DecideDevice ends the wait of an open request.
func (db *DB) DecideDevice(ctx context.Context, userHash string, user ids.User, allow bool, now time.Time) error {
	state := builtin.DeviceDenied
	if allow {
		state = builtin.DeviceAllowed
	}
	return db.inTx(ctx, func(tx *DB) error {
		d, err := tx.Device(ctx, userHash, now)
		if err != nil {
			return err
		}
		n, err := tx.changed(ctx, `UPDATE oauth_devices SET state = $1, user_id = $2 WHERE device_hash = $3 AND state = $4`,
			state, user, d.DeviceHash, builtin.DeviceOpen)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.NotFound("no such device")
		}
		if !allow {
			return nil
		}
		return tx.consent(ctx, user, d.Client, nil, now)
	})
}

// PollDevice keeps what poll makes of the request, and opens a grant when it
// says nothing against it.
func (db *DB) PollDevice(ctx context.Context, deviceHash, client string, t builtin.NewTokens, poll func(builtin.Device) (builtin.Device, error)) error {
	var answer error
	err := db.inTx(ctx, func(tx *DB) error {
		if err := tx.lock(ctx, "oauth device "+deviceHash); err != nil {
			return err
		}
		d, err := tx.device(ctx, `device_hash = $1 AND client_id = $2`, deviceHash, client)
		if err != nil {
			return err
		}
		if d, answer = poll(d); answer != nil {
			_, err := tx.q.ExecContext(ctx, `UPDATE oauth_devices SET pause = $1, polled_at = $2 WHERE device_hash = $3`,
				d.Pause.Microseconds(), micros(d.PolledAt), deviceHash)
			return err
		}
		if err := tx.openGrant(ctx, d.User, d.Client, t); err != nil {
			return err
		}
		_, err = tx.q.ExecContext(ctx, `DELETE FROM oauth_devices WHERE device_hash = $1`, deviceHash)
		return err
	})
	if err != nil {
		return err
	}
	return answer
}
