package builtin

import (
	"context"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
)

// APIToken is an access token that a person made for a script: of one team,
// with at most one role, until a day.
type APIToken struct {
	ID           string
	Hash         string
	User         ids.User
	Team         identity.Team
	Role         access.Role
	Scopes       access.ScopeSet // none: all of the role
	Name         string
	Hint         string // its last characters
	CreatedAt    time.Time
	ExpiresAt    time.Time
	LastUsedAt   time.Time // zero: never
	LastUsedFrom string    // an address
}

// NewAPIToken is what a person asks for.
type NewAPIToken struct {
	Name   string
	Role   access.Role // empty: the least that the scopes need
	Scopes access.ScopeSet
	Days   int
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
func (s *APITokens) CreateAPIToken(ctx context.Context, p identity.Presence, m identity.Membership, in NewAPIToken) (APIToken, string, error) {
	return s.makeToken(ctx, p.User.ID, m, in)
}

func (s *APITokens) makeToken(ctx context.Context, user ids.User, m identity.Membership, in NewAPIToken) (t APIToken, secret string, err error) {
	name, ok := line(in.Name)
	if !ok {
		return t, "", wrongField("name", "needs 1 to 200 characters in one line")
	}
	if in.Days < 1 || in.Days > apiTokenMaxDays {
		return t, "", wrongField("expiresInDays", "must be a whole number from 1 to 366")
	}
	for i, scope := range in.Scopes {
		if !slices.Contains(access.Scopes(), scope) || slices.Contains(in.Scopes[:i], scope) {
			return t, "", wrongField("scopes", "are report, read, run, write and admin, each at most once")
		}
	}
	if in.Role == "" {
		in.Role = access.Lesser(in.Scopes.Needs(), m.Role)
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
		ID: ids.NewAccessToken(), Hash: hashed(secret), User: user, Team: m.Team, Role: in.Role, Scopes: in.Scopes, Name: name,
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

// maxOverlap is how long a token may work beside the one that replaces it.
const maxOverlap = 30 * 24 * time.Hour

// RotateAPIToken replaces a token of the person by one that may do the same for
// as many days. The old one works on for the overlap, so that nothing stands
// still while programs learn the new one.
func (s *APITokens) RotateAPIToken(ctx context.Context, p identity.Presence, id string, overlap time.Duration) (APIToken, string, error) {
	return s.rotate(ctx, p.User.ID, id, overlap)
}

func (s *APITokens) rotate(ctx context.Context, user ids.User, id string, overlap time.Duration) (t APIToken, secret string, err error) {
	if overlap < 0 || overlap > maxOverlap {
		return t, "", wrongField("overlapHours", "must be a whole number from 0 to 720")
	}
	now := s.Now()
	secret = accessPrefix + newSecret()
	t = APIToken{ID: ids.NewAccessToken(), Hash: hashed(secret), User: user, Hint: secret[len(secret)-4:], CreatedAt: now}
	t, err = s.Store.RotateAPIToken(ctx, id, t, now.Add(overlap), maxAPITokens)
	return t, secret, err
}
