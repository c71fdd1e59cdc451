package builtin

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/identity"
)

// CreateTeam makes a team with the person as its owner.
func (s *System) CreateTeam(ctx context.Context, p identity.Presence, name string, report limits.Report) (identity.Membership, error) {
	name, err := teamName(name)
	if err != nil {
		return identity.Membership{}, err
	}
	teams := limits.Rule{
		Name: "teams", Bucket: "teams by " + string(p.User.ID), Window: teamsByAccount,
		Why: "you have made several teams within a day; go on tomorrow",
	}
	if err := identity.Count(ctx, s.Store, []limits.Rule{teams}, s.Now(), report); err != nil {
		return identity.Membership{}, err
	}
	t := NewTeam{
		Team: identity.Team{ID: ids.NewTeam(), Name: name, Plan: s.FirstPlan}, Owner: p.User.ID, CreatedAt: s.Now(),
		WaitVerified: s.waitsVerified(p.User),
	}
	return identity.Membership{Team: t.Team, Role: access.Owner, JoinedAt: t.CreatedAt}, s.Store.InsertTeam(ctx, t)
}

// teamsByAccount bounds the credits that come with a team.
var teamsByAccount = limits.Window{Most: 10, Per: 24 * time.Hour}

// waitsVerified reports whether the credits of a person's team wait until
// their address is verified: where anybody may sign up, accounts cost nothing.
func (s *System) waitsVerified(owner identity.User) bool {
	return s.Options.SignUp == SignUpOpen && !s.Private && !owner.EmailVerified
}

// RenameTeam gives a team another name.
func (s *System) RenameTeam(ctx context.Context, p identity.Presence, team ids.Team, name string) (identity.Membership, error) {
	m, err := s.managing(p, team)
	if err != nil {
		return m, err
	}
	if m.Team.Name, err = teamName(name); err != nil {
		return m, err
	}
	return m, s.Store.RenameTeam(ctx, team, m.Team.Name)
}

func teamName(name string) (string, error) {
	name, ok := line(name)
	if !ok {
		return "", fault.Problems([]fault.Detail{{Path: "name", Message: "needs 1 to 200 characters in one line"}}, "a team's name needs 1 to 200 characters in one line")
	}
	return name, nil
}

// ActivateTeam makes a team the session's own choice.
func (s *System) ActivateTeam(ctx context.Context, p identity.Presence, team ids.Team) (identity.Membership, error) {
	m, err := p.In(team)
	if err != nil {
		return m, err
	}
	return m, s.Store.ActivateTeam(ctx, p.Session, team)
}

// LeaveTeam ends the person's own membership.
func (s *System) LeaveTeam(ctx context.Context, p identity.Presence, team ids.Team) error {
	if _, err := p.In(team); err != nil {
		return err
	}
	return s.Store.RemoveMember(ctx, team, p.User.ID, func(access.Role) error { return nil })
}

// Members are the people of a team and, for those who manage them, whom they
// asked to join.
func (s *System) Members(ctx context.Context, p identity.Presence, team ids.Team) ([]Member, []identity.Invitation, error) {
	m, err := p.In(team)
	if err != nil {
		return nil, nil, err
	}
	members, err := s.Store.Members(ctx, team)
	if err != nil || !m.Role.May(access.ManageMembers) {
		return members, nil, err
	}
	pending, err := s.Store.PendingInvitations(ctx, team, s.Now())
	return members, pending, err
}

// ChangeRole gives a member another role. Only owners make or unmake owners.
func (s *System) ChangeRole(ctx context.Context, p identity.Presence, team ids.Team, user ids.User, role access.Role) (Member, error) {
	m, err := s.managing(p, team)
	if err != nil {
		return Member{}, err
	}
	if !role.Known() {
		return Member{}, fault.Problems([]fault.Detail{{Path: "role", Message: "is none of owner, admin, member, viewer"}}, "there is no role %q", role)
	}
	if role == access.Owner && !m.Role.May(access.ManageOwners) {
		return Member{}, onlyOwners()
	}
	return s.Store.ChangeRole(ctx, team, user, role, mayTouch(m.Role))
}

// RemoveMember ends somebody's membership.
func (s *System) RemoveMember(ctx context.Context, p identity.Presence, team ids.Team, user ids.User) error {
	m, err := s.managing(p, team)
	if err != nil {
		return err
	}
	return s.Store.RemoveMember(ctx, team, user, mayTouch(m.Role))
}

// managing is the person's place in a team, if it lets them manage members.
func (s *System) managing(p identity.Presence, team ids.Team) (identity.Membership, error) {
	m, err := p.In(team)
	if err == nil && !m.Role.May(access.ManageMembers) {
		err = fault.Forbidden("only an owner or admin of the team may do this")
	}
	return m, err
}

func mayTouch(mine access.Role) func(access.Role) error {
	return func(theirs access.Role) error {
		if theirs == access.Owner && !mine.May(access.ManageOwners) {
			return onlyOwners()
		}
		return nil
	}
}

func onlyOwners() error { return fault.Forbidden("only an owner may make, change or remove an owner") }
