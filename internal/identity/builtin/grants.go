package builtin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

const (
	accessPrefix  = "oat_"
	refreshPrefix = "ort_"
	accessLife    = time.Hour
	grantLife     = 30 * 24 * time.Hour // without being used
)

// Tokens are what a client gets. They are kept nowhere in clear.
type Tokens struct {
	Access  string
	Refresh string
	Life    time.Duration // of the access token
	Scopes  access.ScopeSet
}

// NewTokens is a pair of tokens as it is kept.
type NewTokens struct {
	Grant       string // of the family, when these are its first
	AccessID    string
	AccessHash  string
	AccessUntil time.Time
	RefreshHash string
	GrantUntil  time.Time
	Scopes      access.ScopeSet
	Now         time.Time
}

func newTokens(now time.Time) (Tokens, NewTokens) {
	t := Tokens{Access: accessPrefix + newSecret(), Refresh: refreshPrefix + newSecret(), Life: accessLife}
	return t, NewTokens{
		Grant: ids.NewGrant(), AccessID: ids.NewAccessToken(), AccessHash: hashed(t.Access), AccessUntil: now.Add(accessLife),
		RefreshHash: hashed(t.Refresh), GrantUntil: now.Add(grantLife), Now: now,
	}
}

var (
	errGrant    = fault.Invalid("the code or token is wrong, has expired or was used before: start again").WithCode("invalid_grant")
	errVerifier = fault.Invalid("code_verifier does not belong to the code_challenge of this code").WithCode("invalid_grant")
	errRedirect = fault.Invalid("redirect_uri is not the one that the code was asked for with").WithCode("invalid_grant")
	errWider    = fault.Invalid("scope asks for more than was granted: start again to ask the person for it").WithCode("invalid_scope")
)

// RedeemCode gives tokens for an authorization code. One that comes a second
// time has been stolen from somebody: what it gave ends.
func (s *OAuth) RedeemCode(ctx context.Context, client Client, code, verifier, redirect string) (Tokens, error) {
	t, row := newTokens(s.now())
	err := s.grants.RedeemCode(ctx, hashed(code), func(c Code) error {
		switch {
		case c.Client != client.ID:
			return errGrant
		case redirect != "" && redirect != c.RedirectURI:
			return errRedirect
		case !verifies(c.Challenge, verifier):
			return errVerifier
		}
		t.Scopes = c.Scopes
		return nil
	}, row)
	return t, orRefused(err)
}

// verifies checks PKCE: the challenge is the verifier's hash.
func verifies(challenge, verifier string) bool {
	if len(verifier) < 43 || len(verifier) > 128 {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	made := base64.RawURLEncoding.EncodeToString(sum[:])
	return subtle.ConstantTimeCompare([]byte(made), []byte(challenge)) == 1
}

// Refresh gives fresh tokens for a refresh token, which works once. One that
// comes a second time ends its whole family. A client may ask for fewer scopes
// than it was granted, for this access token alone (RFC 6749, section 6).
func (s *OAuth) Refresh(ctx context.Context, client Client, token, scope string) (Tokens, error) {
	if err := CheckScope(scope); err != nil {
		return Tokens{}, err
	}
	t, row := newTokens(s.now())
	err := s.grants.Rotate(ctx, hashed(token), client.ID, func(granted access.ScopeSet) (access.ScopeSet, error) {
		t.Scopes = granted
		if strings.TrimSpace(scope) == "" {
			return granted, nil
		}
		if t.Scopes = ScopesAsked(scope); !t.Scopes.Within(granted) {
			return nil, errWider
		}
		return t.Scopes, nil
	}, row)
	return t, orRefused(err)
}

// orRefused words what the store does not find.
func orRefused(err error) error {
	if fault.Is(err, fault.KindNotFound) {
		return errGrant
	}
	return err
}

// Revoke ends the grant that a token belongs to. A token that nobody knows is
// dead already. With a client, only that client's tokens are its to end.
func (s *OAuth) Revoke(ctx context.Context, client, token string) error {
	return s.grants.EndGrant(ctx, hashed(token), client)
}
