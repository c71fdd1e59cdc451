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

// Teams are who works together, and who may do what there.
type Teams struct {
	store       TeamStore
	invitations InvitationStore
	policy      policy
	limiter     limiter
	now         func() time.Time
}

// Create makes a team with the person as its owner.
func (s *Teams) Create(ctx context.Context, p identity.Presence, name string, report limits.Report) (identity.Membership, error) {
	name, err := teamName(name)
	if err != nil {
		return identity.Membership{}, err
	}
	teams := limits.Rule{
		Name: "teams", Bucket: "teams by " + string(p.User.ID), Window: teamsByAccount,
		Why: "you have created too many teams within a day; try again tomorrow",
	}
	if err := s.limiter.count(ctx, []limits.Rule{teams}, report); err != nil {
		return identity.Membership{}, err
	}
	t := NewTeam{
		Team: identity.Team{ID: ids.NewTeam(), Name: name, Plan: s.policy.firstPlan}, Owner: p.User.ID, CreatedAt: s.now(),
		WaitVerified: s.policy.waitsVerified(p.User),
	}
	return identity.Membership{Team: t.Team, Role: access.Owner, JoinedAt: t.CreatedAt}, s.store.InsertTeam(ctx, t)
}

// teamsByAccount bounds the credits that come with a team.
var teamsByAccount = limits.Window{Most: 10, Per: 24 * time.Hour}

// Rename gives a team another name.
func (s *Teams) Rename(ctx context.Context, p identity.Presence, team ids.Team, name string) (identity.Membership, error) {
	m, err := managing(p, team)
	if err != nil {
		return m, err
	}
	if m.Team.Name, err = teamName(name); err != nil {
		return m, err
	}
	return m, s.store.RenameTeam(ctx, team, m.Team.Name)
}

func teamName(name string) (string, error) {
	name, ok := line(name)
	if !ok {
		return "", fault.Problems([]fault.Detail{{Path: "name", Message: "needs 1 to 200 characters in one line"}}, "a team's name needs 1 to 200 characters in one line")
	}
	return name, nil
}

// Activate makes a team the session's own choice.
func (s *Teams) Activate(ctx context.Context, p identity.Presence, team ids.Team) (identity.Membership, error) {
	m, err := p.In(team)
	if err != nil {
		return m, err
	}
	return m, s.store.ActivateTeam(ctx, p.Session, team)
}

// Leave ends the person's own membership.
func (s *Teams) Leave(ctx context.Context, p identity.Presence, team ids.Team) error {
	if _, err := p.In(team); err != nil {
		return err
	}
	return s.store.RemoveMember(ctx, team, p.User.ID, func(access.Role) error { return nil })
}

// Members are the people of a team and, for those who manage them, whom they
// asked to join.
func (s *Teams) Members(ctx context.Context, p identity.Presence, team ids.Team) ([]Member, []identity.Invitation, error) {
	m, err := p.In(team)
	if err != nil {
		return nil, nil, err
	}
	members, err := s.store.Members(ctx, team)
	if err != nil || !m.Role.May(access.ManageMembers) {
		return members, nil, err
	}
	pending, err := s.invitations.PendingInvitations(ctx, team, s.now())
	return members, pending, err
}

// ChangeRole gives a member another role. Only owners make or unmake owners.
func (s *Teams) ChangeRole(ctx context.Context, p identity.Presence, team ids.Team, user ids.User, role access.Role) (Member, error) {
	m, err := managing(p, team)
	if err != nil {
		return Member{}, err
	}
	if !role.Known() {
		return Member{}, fault.Problems([]fault.Detail{{Path: "role", Message: "is none of owner, admin, member, viewer"}}, "there is no role %q", role)
	}
	if err := m.Role.MayTouch(role); err != nil {
		return Member{}, err
	}
	return s.store.ChangeRole(ctx, team, user, role, m.Role.MayTouch)
}

// RemoveMember ends somebody's membership.
func (s *Teams) RemoveMember(ctx context.Context, p identity.Presence, team ids.Team, user ids.User) error {
	m, err := managing(p, team)
	if err != nil {
		return err
	}
	return s.store.RemoveMember(ctx, team, user, m.Role.MayTouch)
}

// managing is the person's place in a team, if it lets them manage members.
func managing(p identity.Presence, team ids.Team) (identity.Membership, error) {
	m, err := p.In(team)
	if err == nil && !m.Role.May(access.ManageMembers) {
		err = fault.Forbidden("only an owner or admin of the team may do this")
	}
	return m, err
}
