package store

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/millrace/millrace/internal/domain/fault"
)

// sealer encrypts what must not be readable in a stolen copy of the database:
// private keys, waiting mail, recorded answers.
type sealer struct {
	aead   cipher.AEAD
	secret []byte
}

const minSecretKey = 16

func newSealer(secret string) (*sealer, error) {
	if len(secret) < minSecretKey {
		return nil, fmt.Errorf("the secret key has %d characters; use at least %d random ones", len(secret), minSecretKey)
	}
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "millrace sealed columns", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &sealer{aead: aead, secret: []byte(secret)}, nil
}

// Key is a key for one purpose, the same on every server that has the secret
// key.
func (db *DB) Key(purpose string) []byte { return db.sealer.key(purpose) }

func (s *sealer) key(purpose string) []byte {
	key, err := hkdf.Key(sha256.New, s.secret, nil, "millrace "+purpose, 32)
	if err != nil { // only for lengths that no hash can give
		panic(err)
	}
	return key
}

// seal binds the text to its place, so that a sealed value cannot be moved to
// another row.
func (s *sealer) seal(place string, text []byte) []byte {
	return s.aead.Seal(nil, nil, text, []byte(place))
}

var errSealed = errors.New("this value was sealed with another secret key")

func (s *sealer) open(place string, sealed []byte) ([]byte, error) {
	text, err := s.aead.Open(nil, nil, sealed, []byte(place))
	if err != nil {
		return nil, errSealed
	}
	return text, nil
}

const checkPlace = "check"

// checkSecretKey refuses a secret key that is not the one this database was
// made with, before anything is sealed with the wrong one.
func (db *DB) checkSecretKey(ctx context.Context) error {
	var sealed []byte
	err := db.q.QueryRowContext(ctx, `SELECT sealed FROM secret_check WHERE id = 1`).Scan(&sealed)
	if fault.Is(db.asFault(err, "check"), fault.KindNotFound) {
		return db.writeSecretCheck(ctx)
	}
	if err != nil {
		return err
	}
	if err := db.mustNotRotate(ctx); err != nil {
		return err
	}
	if _, err := db.sealer.open(checkPlace, sealed); err != nil {
		return errors.New("the secret key is not the one this database was made with: give every server the same --secret-key (or the secret.key of the first one's data folder)")
	}
	return nil
}

func (db *DB) writeSecretCheck(ctx context.Context) error {
	random := make([]byte, 16)
	rand.Read(random)
	_, err := db.changed(ctx, `INSERT INTO secret_check (id, sealed) VALUES (1, $1) ON CONFLICT (id) DO NOTHING`,
		db.sealer.seal(checkPlace, random))
	if err != nil {
		return err
	}
	var sealed []byte // another server may have been first, with another key
	if err := db.q.QueryRowContext(ctx, `SELECT sealed FROM secret_check WHERE id = 1`).Scan(&sealed); err != nil {
		return err
	}
	if _, err := db.sealer.open(checkPlace, sealed); err != nil {
		return fmt.Errorf("two servers started on this database with different secret keys: %w", err)
	}
	return nil
}
