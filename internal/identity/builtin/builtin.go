// Package builtin is the identity system that Millrace brings along: accounts
// with passwords, sessions as rows, short-lived signed tokens, teams and
// invitations by mail. Each of these is a type of its own; System has them all.
package builtin

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
)

// Post sends mails that were stored with what they tell of.
type Post interface {
	// SendNow tries to deliver what waits at once. It reports nothing: what
	// does not go out now is tried again later.
	SendNow(ctx context.Context)
	// SendSoon has what waits delivered soon, and returns before that.
	SendSoon()
}

// Options are what the system is made of.
type Options struct {
	Stores    Stores
	Post      Post
	Passwords *Passwords
	Origins   []string // the frontends tokens are minted for; the first is the issuer
	SignUp    SignUpPolicy
	Newcomers Newcomers // through providers
	Private   bool      // nobody but this machine can reach us: its address is not counted
	FirstPlan string    // the plan of a fresh team
	Now       func() time.Time

	NoPasswords bool // people sign in through a provider alone
}

// System is the built-in identity system.
type System struct {
	Accounts      *Accounts
	Recovery      *Recovery
	Sessions      *Sessions
	SecondFactors *SecondFactors
	Teams         *Teams
	Invitations   *Invitations
	OAuth         *OAuth
	Devices       *Devices
	APITokens     *APITokens
	Programs      *ServiceAccounts
	Keys          *Keyring
	SignUp        SignUpPolicy
	Newcomers     Newcomers
	NoPasswords   bool
}

var _ identity.System = (*System)(nil)

// New makes the system. Call Keys.Rotate before the first token is minted.
func New(o Options) *System {
	db := o.Stores
	rules := policy{signUp: o.SignUp, newcomers: o.Newcomers, private: o.Private, firstPlan: o.FirstPlan, noPasswords: o.NoPasswords}
	limits := limiter{store: db.Limits, private: o.Private, now: o.Now}
	known := credentials{accounts: db.Accounts, policy: rules, passwords: o.Passwords, limiter: limits}
	keys := newKeyring(db.Keys, o.Now)
	s := &System{
		Sessions: &Sessions{
			store: db.Sessions, grants: db.Tokens, now: o.Now,
			tokens: &tokens{keys: keys, issuer: o.Origins[0], parties: o.Origins, now: o.Now},
		},
		SecondFactors: &SecondFactors{store: db.SecondFactors, credentials: known, limiter: limits, now: o.Now},
		Recovery:      &Recovery{tokens: db.OneTimeTokens, credentials: known, limiter: limits, post: o.Post, now: o.Now},
		Teams:         &Teams{store: db.Teams, invitations: db.Invitations, policy: rules, limiter: limits, now: o.Now},
		Invitations:   &Invitations{store: db.Invitations, limiter: limits, post: o.Post, now: o.Now},
		OAuth:         &OAuth{consents: db.Consents, grants: db.Grants, now: o.Now},
		APITokens:     &APITokens{Store: db.APITokens, Now: o.Now},
		Keys:          keys,
		SignUp:        o.SignUp,
		Newcomers:     o.Newcomers,
		NoPasswords:   o.NoPasswords,
	}
	s.Programs = &ServiceAccounts{store: db.Programs, tokens: s.APITokens, now: o.Now}
	s.Devices = &Devices{store: db.Devices, oauth: s.OAuth, limiter: limits, now: o.Now}
	s.Accounts = &Accounts{
		accounts: db.Accounts, first: db.First, external: db.External, groups: db.Groups, tokens: db.OneTimeTokens, sessions: s.Sessions, factors: s.SecondFactors,
		invitations: s.Invitations, credentials: known, policy: rules, limiter: limits, post: o.Post, now: o.Now,
	}
	return s
}

// Identify is Sessions.Identify.
func (s *System) Identify(ctx context.Context, c identity.Credential) (identity.Presence, error) {
	return s.Sessions.Identify(ctx, c)
}

// Present is Sessions.Present.
func (s *System) Present(ctx context.Context, by ids.Session) (identity.Presence, error) {
	return s.Sessions.Present(ctx, by)
}

// Members is Teams.Members.
func (s *System) Members(ctx context.Context, p identity.Presence, team ids.Team) ([]Member, []identity.Invitation, error) {
	return s.Teams.Members(ctx, p, team)
}

// Invite is Invitations.Invite.
func (s *System) Invite(ctx context.Context, caller access.Caller, in identity.NewInvitation) (identity.MadeInvitation, error) {
	return s.Invitations.Invite(ctx, caller, in)
}

// RoleOf is Sessions.RoleOf.
func (s *System) RoleOf(ctx context.Context, by ids.Session, team ids.Team) (access.Role, error) {
	return s.Sessions.RoleOf(ctx, by, team)
}

// newSecret is a token nobody can guess: 130 bits, letters and digits.
func newSecret() string { return strings.ToLower(rand.Text()) }
