package builtin

import (
	"context"
	"strings"
	"unicode"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
)

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

func (s *System) session(user ids.User, v Visit) (row Session, secret string) {
	secret = newSecret()
	now := s.Now()
	return Session{
		ID: ids.NewSession(), User: user, SecretHash: hashed(secret),
		Origin: v.Origin, UserAgent: agent(v.UserAgent), Address: v.Address,
		CreatedAt: now, LastSeenAt: now, ExpiresAt: now.Add(sessionLife),
	}, secret
}

func (s *System) signedIn(ctx context.Context, u identity.User, row Session, secret string) (SignedIn, error) {
	token, err := s.tokens.mint(ctx, u.ID, row.ID, row.Origin)
	if err != nil {
		return SignedIn{}, err
	}
	p, err := s.Store.PresenceBySession(ctx, row.ID, s.Now())
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
func (s *System) MintToken(ctx context.Context, p identity.Presence, origin string) (Token, error) {
	if err := s.Store.TouchSession(ctx, p.Session, s.Now()); err != nil {
		return Token{}, err
	}
	return s.tokens.mint(ctx, p.User.ID, p.Session, origin)
}

// Present is who a session or grant (see Presence.By) belongs to at this
// moment, if it lives.
func (s *System) Present(ctx context.Context, by ids.Session) (identity.Presence, error) {
	if by.Proper() {
		p, err := s.Store.PresenceBySession(ctx, by, s.Now())
		return p, orDead(err)
	}
	p, err := s.Store.PresenceByGrant(ctx, string(by), s.Now())
	return bounded(p), orDead(err)
}

// RoleOf is what the person of a live session or grant is in a team at this
// moment.
func (s *System) RoleOf(ctx context.Context, by ids.Session, team ids.Team) (access.Role, error) {
	p, err := s.Present(ctx, by)
	if err != nil {
		return "", err
	}
	m, err := p.In(team)
	return m.Role, err
}

// SignOut ends the session; every token of it is dead with the next request.
func (s *System) SignOut(ctx context.Context, p identity.Presence) error {
	return s.Store.DeleteSession(ctx, p.User.ID, p.Session)
}

// Sessions are the person's live sessions, newest first.
func (s *System) Sessions(ctx context.Context, p identity.Presence) ([]Session, error) {
	return s.Store.Sessions(ctx, p.User.ID, s.Now())
}

// RevokeSession ends one of the person's sessions.
func (s *System) RevokeSession(ctx context.Context, p identity.Presence, id ids.Session) error {
	return s.Store.DeleteSession(ctx, p.User.ID, id)
}
