package store

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// FirstAccountToken is the token of the link for the first account: the same on every server
// and after every start. It is fault.KindNotFound once there is an account.
func (db *DB) FirstAccountToken(ctx context.Context) (string, error) {
	if _, err := db.changed(ctx, `UPDATE first_account SET nonce = $1 WHERE nonce = '' AND taken_at IS NULL`, rand.Text()); err != nil {
		return "", err
	}
	var nonce string
	err := db.q.QueryRowContext(ctx, `SELECT nonce FROM first_account WHERE taken_at IS NULL`).Scan(&nonce)
	if err != nil {
		return "", db.asFault(err, "first account")
	}
	mac := hmac.New(sha256.New, db.Key("first account"))
	mac.Write([]byte(nonce))
	return hex.EncodeToString(mac.Sum(nil)[:16]), nil
}

// takeFirst notes that there is an account. The first one becomes an operator if it may. Of
// two at the same time one waits for the other, and is not the first then.
func (db *DB) takeFirst(ctx context.Context, a builtin.NewAccount) error {
	n, err := db.changed(ctx, `UPDATE first_account SET taken_at = $1 WHERE taken_at IS NULL`, micros(a.CreatedAt))
	switch {
	case err != nil:
		return err
	case n == 0 && a.First == builtin.FirstOnly:
		return fault.Forbidden("this link was for the first account of the installation, and there is an account: sign up without it").WithCode("first_account_exists")
	case n == 0 || a.First == builtin.NeverFirst:
		return nil
	}
	return db.addOperator(ctx, a.Email, a.CreatedAt)
}

func (db *DB) addOperator(ctx context.Context, email string, now time.Time) error {
	_, err := db.changed(ctx, `
		INSERT INTO operators (user_id, created_at) SELECT id, $1 FROM users WHERE email = $2 ON CONFLICT (user_id) DO NOTHING`, micros(now), email)
	return err
}
