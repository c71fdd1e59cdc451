// Package builtin is the identity system that Millrace brings along: accounts
// with passwords, sessions as rows, short-lived signed tokens, teams and
// invitations by mail.
package builtin

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/identity"
)

// SignUpPolicy says who may make an account.
type SignUpPolicy string

// The policies of --sign-up.
const (
	SignUpOpen   SignUpPolicy = "open"
	SignUpInvite SignUpPolicy = "invite"
	SignUpClosed SignUpPolicy = "closed"
)

// Post sends letters that were stored with what they tell of.
type Post interface {
	// Hurry tries to deliver what waits at once. It reports nothing: what
	// does not go out now is tried again later.
	Hurry(ctx context.Context)
	// Wake has what waits delivered soon, and returns before that.
	Wake()
}

// Options are what the system is made of.
type Options struct {
	Store     Store
	Post      Post
	Passwords *Passwords
	Origins   []string // the frontends tokens are minted for; the first is the issuer
	SignUp    SignUpPolicy
	Private   bool   // nobody but this machine can reach us: its address is not counted
	FirstPlan string // the plan of a fresh team
	Now       func() time.Time
}

// System is the built-in identity system.
type System struct {
	Options
	Keys    *Keyring
	tokens  *tokens
	touched touches
}

var _ identity.System = (*System)(nil)

// New makes the system. Call Keys.Rotate before the first token is minted.
func New(o Options) *System {
	keys := newKeyring(o.Store, o.Now)
	return &System{Options: o, Keys: keys, tokens: &tokens{keys: keys, issuer: o.Origins[0], parties: o.Origins, now: o.Now}}
}

// Identify says whose credential this is.
func (s *System) Identify(ctx context.Context, c identity.Credential) (identity.Presence, error) {
	if strings.HasPrefix(c.Bearer, accessPrefix) {
		return s.byAccessToken(ctx, c.Bearer)
	}
	if c.Bearer != "" {
		return s.byToken(ctx, c.Bearer)
	}
	if c.Cookie != "" {
		return s.byCookie(ctx, c.Cookie)
	}
	return identity.Presence{}, fault.Unauthenticated("sign in first: send a session cookie or a bearer token").WithCode("not_signed_in")
}

func (s *System) byToken(ctx context.Context, token string) (identity.Presence, error) {
	session, err := s.tokens.session(ctx, token)
	if err != nil {
		return identity.Presence{}, err
	}
	p, err := s.Store.PresenceBySession(ctx, session, s.Now())
	return p, orDead(err)
}

func (s *System) byCookie(ctx context.Context, secret string) (identity.Presence, error) {
	p, err := s.Store.PresenceBySecret(ctx, hashed(secret), s.Now())
	p.ByCookie = true
	return p, orDead(err)
}

// orDead turns a session that is not there into a failed authentication.
func orDead(err error) error {
	if fault.Is(err, fault.KindNotFound) {
		return errToken
	}
	return err
}

// newSecret is a token nobody can guess: 130 bits, letters and digits.
func newSecret() string { return strings.ToLower(rand.Text()) }
