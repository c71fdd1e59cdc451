package builtin

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
)

// APIToken is an access token that a person made for a script: of one team,
// with at most one role, until a day.
type APIToken struct {
	ID         string
	Hash       string
	User       ids.User
	Team       identity.Team
	Role       access.Role
	Name       string
	Hint       string // its last characters
	CreatedAt  time.Time
	ExpiresAt  time.Time
	LastUsedAt time.Time // zero: never
}

// NewAPIToken is what a person asks for.
type NewAPIToken struct {
	Name string
	Role access.Role // empty: their own
	Days int
}

const (
	maxAPITokens    = 100
	apiTokenMaxDays = 366
)

// APITokens are what people make for their scripts.
type APITokens struct {
	Store APITokenStore
	Now   func() time.Time
}

// CreateAPIToken makes a token for the team of the membership. The secret is
// shown this once.
func (s *APITokens) CreateAPIToken(ctx context.Context, p identity.Presence, m identity.Membership, in NewAPIToken) (t APIToken, secret string, err error) {
	name, ok := line(in.Name)
	if !ok {
		return t, "", wrongField("name", "needs 1 to 200 characters in one line")
	}
	if in.Days < 1 || in.Days > apiTokenMaxDays {
		return t, "", wrongField("expiresInDays", "must be a whole number from 1 to 366")
	}
	if in.Role == "" {
		in.Role = m.Role
	}
	if !in.Role.Known() {
		return t, "", wrongField("role", "is none of owner, admin, member, viewer")
	}
	if access.Lesser(in.Role, m.Role) != in.Role {
		return t, "", fault.Forbidden("your role in this team is %s: a token of yours cannot be more", m.Role)
	}
	secret = accessPrefix + newSecret()
	now := s.Now()
	t = APIToken{
		ID: ids.NewAccessToken(), Hash: hashed(secret), User: p.User.ID, Team: m.Team, Role: in.Role, Name: name,
		Hint: secret[len(secret)-4:], CreatedAt: now, ExpiresAt: now.AddDate(0, 0, in.Days),
	}
	return t, secret, s.Store.InsertAPIToken(ctx, t, maxAPITokens)
}

// APITokens are the person's own, newest first.
func (s *APITokens) APITokens(ctx context.Context, p identity.Presence) ([]APIToken, error) {
	return s.Store.APITokens(ctx, p.User.ID, s.Now())
}

// RevokeAPIToken ends a token of the person at once.
func (s *APITokens) RevokeAPIToken(ctx context.Context, p identity.Presence, id string) error {
	return s.Store.DeleteAPIToken(ctx, p.User.ID, id)
}
