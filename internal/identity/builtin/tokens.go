package builtin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// tokenLife is how long a session token works; a fresh one is one request
// away.
const tokenLife = 5 * time.Minute

// Token is a session JWT.
type Token struct {
	Text      string
	ExpiresAt time.Time
}

type claims struct {
	jwt.RegisteredClaims
	Session string `json:"sid"`
	Party   string `json:"azp"` // the frontend it was minted for
}

// tokens mints and verifies session JWTs. Verifying says that we signed it
// for one of our frontends and that it has not expired; whether its session
// still lives is asked of the database each time.
type tokens struct {
	keys    *Keyring
	issuer  string
	parties []string
	now     func() time.Time
	seen    seenTokens
}

func (t *tokens) mint(ctx context.Context, user ids.User, session ids.Session, origin string) (Token, error) {
	key, err := t.keys.signer(ctx)
	if err != nil {
		return Token{}, err
	}
	now := t.now()
	exp := now.Add(tokenLife).Truncate(time.Second)
	signed := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Issuer: t.issuer, Subject: string(user),
			IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(exp),
		},
		Session: string(session), Party: origin,
	})
	signed.Header["kid"] = key.ID
	text, err := signed.SignedString(key.Private)
	return Token{Text: text, ExpiresAt: exp}, err
}

var errToken = fault.Unauthenticated("the session token is missing, invalid, expired or revoked: sign in again").WithCode("invalid_token")

// session is the session that the token speaks for.
func (t *tokens) session(ctx context.Context, text string) (ids.Session, error) {
	c, known := t.seen.get(text)
	if !known {
		var err error
		if c, err = t.verify(ctx, text); err != nil {
			return "", err
		}
		t.seen.put(text, c)
	}
	if !t.now().Before(c.ExpiresAt.Time) {
		return "", errToken
	}
	return ids.Session(c.Session), nil
}

func (t *tokens) verify(ctx context.Context, text string) (*claims, error) {
	var c claims
	var lookup error // a database that is down is no bad token
	_, err := jwt.ParseWithClaims(text, &c, func(parsed *jwt.Token) (any, error) {
		id, _ := parsed.Header["kid"].(string)
		key, ok, err := t.keys.verifier(ctx, id)
		if err != nil {
			lookup = err
			return nil, err
		}
		if !ok {
			return nil, jwt.ErrTokenUnverifiable
		}
		return key, nil
	},
		jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}), jwt.WithIssuer(t.issuer),
		jwt.WithExpirationRequired(), jwt.WithTimeFunc(t.now), jwt.WithStrictDecoding())
	switch {
	case lookup != nil:
		return nil, lookup
	case err != nil, c.Session == "", !slices.Contains(t.parties, c.Party):
		return nil, errToken
	}
	return &c, nil
}

// seenTokens remembers signatures that were verified, because a client sends
// the same token many times in its five minutes. It says nothing of sessions.
type seenTokens struct {
	mu   sync.Mutex
	byID map[string]*claims
}

const maxSeenTokens = 4096

func (s *seenTokens) get(text string) (*claims, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.byID[hashed(text)]
	return c, ok
}

func (s *seenTokens) put(text string, c *claims) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byID) >= maxSeenTokens || s.byID == nil {
		s.byID = make(map[string]*claims) // forgetting costs a verification each
	}
	s.byID[hashed(text)] = c
}

// hashed is how a secret is kept: enough to recognise it, useless to a thief.
func hashed(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
