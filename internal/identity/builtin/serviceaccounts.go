package builtin

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
)

// ServiceAccount is a program's own place in a team. It belongs to the team and
// outlives whoever made it; it acts by its tokens alone.
type ServiceAccount struct {
	ID        ids.User
	Team      ids.Team
	Name      string
	Role      access.Role
	MadeBy    string // the name of a person
	CreatedAt time.Time
	Tokens    []APIToken // newest first
}

// ServiceAccounts are the places of programs in teams.
type ServiceAccounts struct {
	store  ServiceAccountStore
	tokens *APITokens
	now    func() time.Time
}

// ServiceAccountStore keeps service accounts.
type ServiceAccountStore interface {
	// InsertServiceAccount refuses more than most with fault.KindConflict.
	InsertServiceAccount(ctx context.Context, a ServiceAccount, most int) error
	// ServiceAccounts are a team's, with their live tokens.
	ServiceAccounts(ctx context.Context, team ids.Team, now time.Time) ([]ServiceAccount, error)
	// DeleteServiceAccount ends one and its tokens; what it made keeps its name.
	DeleteServiceAccount(ctx context.Context, team ids.Team, id ids.User, now time.Time) error
}

const maxServiceAccounts = 50

// ServiceAccounts are those of the caller's team, newest first.
func (s *ServiceAccounts) ServiceAccounts(ctx context.Context, caller access.Caller) ([]ServiceAccount, error) {
	if err := caller.Must(access.ManagePrograms); err != nil {
		return nil, err
	}
	return s.store.ServiceAccounts(ctx, caller.Team, s.now())
}

// CreateServiceAccount makes one, as a member unless told otherwise.
func (s *ServiceAccounts) CreateServiceAccount(ctx context.Context, caller access.Caller, name string, role access.Role) (ServiceAccount, error) {
	if err := caller.Must(access.ManagePrograms); err != nil {
		return ServiceAccount{}, err
	}
	name, ok := line(name)
	if !ok {
		return ServiceAccount{}, wrongField("name", "needs 1 to 200 characters in one line")
	}
	if role == "" {
		role = access.Member
	}
	if !role.Known() || role == access.Owner {
		return ServiceAccount{}, wrongField("role", "is none of admin, member, viewer: a program owns no team")
	}
	if access.Lesser(role, caller.Role) != role {
		return ServiceAccount{}, fault.Forbidden("your role in this team is %s: what you make cannot be more", caller.Role)
	}
	a := ServiceAccount{ID: ids.NewUser(), Team: caller.Team, Name: name, Role: role, MadeBy: caller.Name, CreatedAt: s.now()}
	return a, s.store.InsertServiceAccount(ctx, a, maxServiceAccounts)
}

// DeleteServiceAccount ends a service account and all its tokens at once.
func (s *ServiceAccounts) DeleteServiceAccount(ctx context.Context, caller access.Caller, id ids.User) error {
	if err := caller.Must(access.ManagePrograms); err != nil {
		return err
	}
	return s.store.DeleteServiceAccount(ctx, caller.Team, id, s.now())
}

// ServiceAccount finds one of the caller's team.
func (s *ServiceAccounts) ServiceAccount(ctx context.Context, caller access.Caller, id ids.User) (ServiceAccount, error) {
	list, err := s.ServiceAccounts(ctx, caller)
	if i := slices.IndexFunc(list, func(a ServiceAccount) bool { return a.ID == id }); err == nil && i >= 0 {
		return list[i], nil
	}
	return ServiceAccount{}, cmp.Or(err, error(fault.NotFound("no such service account")))
}

// CreateServiceToken makes a token of a service account. Who makes it through a
// token of their own can give no scope that they have not.
func (s *ServiceAccounts) CreateServiceToken(ctx context.Context, caller access.Caller, team identity.Team, id ids.User, in NewAPIToken) (APIToken, string, error) {
	a, err := s.ServiceAccount(ctx, caller, id)
	if err != nil {
		return APIToken{}, "", err
	}
	if !access.ScopeSet(in.Scopes).Within(caller.Scopes) {
		return APIToken{}, "", fault.Forbidden("your token has the scopes %s: what you make cannot have more", caller.Scopes)
	}
	if in.Role == "" {
		in.Role = a.Role
	}
	return s.tokens.makeToken(ctx, a.ID, identity.Membership{Team: team, Role: a.Role}, in)
}

// RevokeServiceToken ends a token of a service account.
func (s *ServiceAccounts) RevokeServiceToken(ctx context.Context, caller access.Caller, id ids.User, token string) error {
	a, err := s.ServiceAccount(ctx, caller, id)
	if err != nil {
		return err
	}
	return s.tokens.Store.DeleteAPIToken(ctx, a.ID, token)
}

// RotateServiceToken is RotateAPIToken for a service account's. Who gets its secret has
// all its scopes.
func (s *ServiceAccounts) RotateServiceToken(ctx context.Context, caller access.Caller, id ids.User, token string, overlap time.Duration) (APIToken, string, error) {
	a, err := s.ServiceAccount(ctx, caller, id)
	if err != nil {
		return APIToken{}, "", err
	}
	if slices.ContainsFunc(a.Tokens, func(t APIToken) bool { return t.ID == token && !t.Scopes.Within(caller.Scopes) }) {
		return APIToken{}, "", fault.Forbidden("your token has the scopes %s: what you rotate cannot have more", caller.Scopes)
	}
	return s.tokens.rotate(ctx, a.ID, token, overlap)
}
