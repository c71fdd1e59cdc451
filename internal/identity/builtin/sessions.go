package builtin

import (
	"context"
	"strings"
	"time"
	"unicode"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
)

// Sessions are who is signed in, and what proves it.
type Sessions struct {
	store   SessionStore
	grants  TokenStore
	tokens  *tokens
	touched touches
	now     func() time.Time
}

// Identify says whose credential this is.
func (s *Sessions) Identify(ctx context.Context, c identity.Credential) (identity.Presence, error) {
	if strings.HasPrefix(c.Bearer, accessPrefix) {
		return s.byAccessToken(ctx, c.Bearer, c.Address)
	}
	if c.Bearer != "" {
		return s.byToken(ctx, c.Bearer)
	}
	if c.Cookie != "" {
		return s.byCookie(ctx, c.Cookie)
	}
	return identity.Presence{}, fault.Unauthenticated("sign in first: send a session cookie or a bearer token").WithCode("not_signed_in")
}

func (s *Sessions) byToken(ctx context.Context, token string) (identity.Presence, error) {
	session, err := s.tokens.session(ctx, token)
	if err != nil {
		return identity.Presence{}, err
	}
	p, err := s.store.PresenceBySession(ctx, session, s.now())
	return p, orDead(err)
}

func (s *Sessions) byCookie(ctx context.Context, secret string) (identity.Presence, error) {
	p, err := s.store.PresenceBySecret(ctx, hashed(secret), s.now())
	p.ByCookie = true
	return p, orDead(err)
}

// byAccessToken asks the database each time: a token that has expired or was
// revoked is dead on every server with the next request.
func (s *Sessions) byAccessToken(ctx context.Context, token, address string) (identity.Presence, error) {
	p, err := s.grants.PresenceByAccess(ctx, hashed(token), s.now())
	if err != nil {
		return p, orDead(err)
	}
	if p.Most != "" && s.touched.due(p.Grant, s.now()) {
		err = s.grants.TouchAPIToken(ctx, p.Grant, address, s.now())
	}
	return bounded(p), err
}

// orDead turns a session that is not there into a failed authentication.
func orDead(err error) error {
	if fault.Is(err, fault.KindNotFound) {
		return errToken
	}
	return err
}

// agent is what a browser calls itself, cut to a size we keep.
func agent(text string) string {
	const most = 400
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return strings.ToValidUTF8(clean[:min(len(clean), most)], "")
}

func (s *Sessions) session(user ids.User, v Visit) (row Session, secret string) {
	secret = newSecret()
	now := s.now()
	return Session{
		ID: ids.NewSession(), User: user, SecretHash: hashed(secret),
		Origin: v.Origin, UserAgent: agent(v.UserAgent), Address: v.Address,
		CreatedAt: now, LastSeenAt: now, ExpiresAt: now.Add(sessionLife),
	}, secret
}

func (s *Sessions) open(ctx context.Context, u identity.User, v Visit) (SignedIn, error) {
	session, secret := s.session(u.ID, v)
	if err := s.store.InsertSession(ctx, session); err != nil {
		return SignedIn{}, err
	}
	return s.signedIn(ctx, u, session, secret)
}

func (s *Sessions) signedIn(ctx context.Context, u identity.User, row Session, secret string) (SignedIn, error) {
	token, err := s.tokens.mint(ctx, u.ID, row.ID, row.Origin)
	if err != nil {
		return SignedIn{}, err
	}
	p, err := s.store.PresenceBySession(ctx, row.ID, s.now())
	if err != nil {
		return SignedIn{}, err
	}
	out := SignedIn{User: p.User, Token: token, Secret: secret, Until: row.ExpiresAt}
	if len(p.Memberships) > 0 {
		out.Team = p.Memberships[0]
	}
	return out, nil
}

// MintToken makes a fresh session token for a frontend.
func (s *Sessions) MintToken(ctx context.Context, p identity.Presence, origin string) (Token, error) {
	if err := s.store.TouchSession(ctx, p.Session, s.now()); err != nil {
		return Token{}, err
	}
	return s.tokens.mint(ctx, p.User.ID, p.Session, origin)
}

// Present is who a session or grant (see Presence.By) belongs to at this
// moment, if it lives.
func (s *Sessions) Present(ctx context.Context, by ids.Session) (identity.Presence, error) {
	if by.Proper() {
		p, err := s.store.PresenceBySession(ctx, by, s.now())
		return p, orDead(err)
	}
	p, err := s.grants.PresenceByGrant(ctx, string(by), s.now())
	return bounded(p), orDead(err)
}

// RoleOf is what the person of a live session or grant is in a team at this
// moment.
func (s *Sessions) RoleOf(ctx context.Context, by ids.Session, team ids.Team) (access.Role, error) {
	p, err := s.Present(ctx, by)
	if err != nil {
		return "", err
	}
	m, err := p.In(team)
	return m.Role, err
}

// SignOut ends the session; every token of it is dead with the next request.
func (s *Sessions) SignOut(ctx context.Context, p identity.Presence) error {
	return s.store.DeleteSession(ctx, p.User.ID, p.Session)
}

// List is the person's live sessions, newest first.
func (s *Sessions) List(ctx context.Context, p identity.Presence) ([]Session, error) {
	return s.store.Sessions(ctx, p.User.ID, s.now())
}

// Revoke ends one of the person's sessions.
func (s *Sessions) Revoke(ctx context.Context, p identity.Presence, id ids.Session) error {
	return s.store.DeleteSession(ctx, p.User.ID, id)
}
