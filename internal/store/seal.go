package store

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

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
	err := db.proveSecretKey(ctx)
	if fault.Is(err, fault.KindNotFound) {
		return db.writeSecretCheck(ctx)
	}
	return err
}

// proveSecretKey is fault.KindNotFound where the database has had no key yet.
func (db *DB) proveSecretKey(ctx context.Context) error {
	current, err := db.secretCheck(ctx, checkCurrent)
	if err != nil {
		return err
	}
	if err := db.mustNotRotate(ctx); err != nil {
		return err
	}
	if !db.sealer.proves(current) {
		return ErrWrongKey
	}
	return nil
}

// keyCheck is how often a process looks whether it still has the key of the database.
const keyCheck = 5 * time.Second

// WatchSecretKey returns an error once the secret key of the database is being changed or
// differs from the key of this process. It returns nil when ctx ends. Without it, a process
// that was stopped, or did not reach the database, for longer than mustBeAlone looks back
// would go on sealing with the old key.
func (db *DB) WatchSecretKey(ctx context.Context) error {
	tick := time.NewTicker(keyCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := db.proveSecretKey(ctx)
		if errors.Is(err, ErrWrongKey) || errors.Is(err, errRotating) {
			return fmt.Errorf("the secret key was changed while this process ran: %w", err)
		}
	}
}

// ErrWrongKey is that the secret key is another than the database's.
var ErrWrongKey = errors.New("the secret key is not the one this database was made with: give every server the same --secret-key (or the secret.key of the first one's data folder)")

// Installation names the installation, also after a change of its key. Only a copy of the
// database has the same name.
func (db *DB) Installation(ctx context.Context) (string, error) {
	current, err := db.secretCheck(ctx, checkCurrent)
	if err != nil {
		return "", err
	}
	random, err := db.sealer.open(checkPlace, current)
	sum := sha256.Sum256(append([]byte("installation\x00"), random...))
	return hex.EncodeToString(sum[:]), err
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
	if !db.sealer.proves(sealed) {
		return fmt.Errorf("two servers started on this database with different secret keys: %w", errSealed)
	}
	return nil
}
