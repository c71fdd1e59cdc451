package clerk

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	clerksdk "github.com/clerk/clerk-sdk-go/v2"
	"github.com/clerk/clerk-sdk-go/v2/organizationinvitation"
	"github.com/clerk/clerk-sdk-go/v2/organizationmembership"
	"github.com/clerk/clerk-sdk-go/v2/user"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// A team is an organization under our own kind of name.
func teamOf(organization string) ids.Team {
	return ids.Team("team_" + strings.TrimPrefix(organization, "org_"))
}

func organizationOf(team ids.Team) string { return "org_" + strings.TrimPrefix(string(team), "team_") }

// roleOf is what a role of Clerk's comes to here. Whoever made the organization
// owns it, for Clerk's own roles know no owner.
func roleOf(role string, isMaker bool) access.Role {
	switch name := strings.TrimPrefix(role, "org:"); {
	case isMaker, name == "owner":
		return access.Owner
	case name == "admin":
		return access.Admin
	case name == "viewer":
		return access.Viewer
	}
	return access.Member
}

const pageSize = 100

func page(offset int) clerksdk.ListParams {
	limit, from := int64(pageSize), int64(offset)
	return clerksdk.ListParams{Limit: &limit, Offset: &from}
}

// person reads somebody with all their memberships, the earliest joined first.
func (s *System) person(ctx context.Context, id string) (person, error) {
	u, err := s.users.Get(ctx, id)
	if err != nil {
		return person{}, refused(err)
	}
	if u.Banned || u.Locked {
		return person{}, fault.Forbidden("this account is disabled: ask the operator of this server").WithCode("account_disabled")
	}
	who := person{User: userOf(u)}
	for {
		list, err := s.users.ListOrganizationMemberships(ctx, id, &user.ListOrganizationMembershipsParams{ListParams: page(len(who.Memberships))})
		if err != nil {
			return person{}, refused(err)
		}
		for _, m := range list.OrganizationMemberships {
			who.Memberships = append(who.Memberships, identity.Membership{
				Team: identity.Team{ID: teamOf(m.Organization.ID), Name: m.Organization.Name, Plan: s.Plans[0]},
				Role: roleOf(m.Role, m.Organization.CreatedBy == id), JoinedAt: time.UnixMilli(m.CreatedAt).UTC(),
			})
		}
		if len(list.OrganizationMemberships) < pageSize {
			break
		}
	}
	slices.SortStableFunc(who.Memberships, func(a, b identity.Membership) int {
		return cmp.Or(a.JoinedAt.Compare(b.JoinedAt), cmp.Compare(a.Team.ID, b.Team.ID))
	})
	return who, nil
}

func userOf(u *clerksdk.User) identity.User {
	out := identity.User{ID: ids.User(u.ID), Name: named(u.FirstName, u.LastName)}
	for _, e := range u.EmailAddresses {
		if u.PrimaryEmailAddressID != nil && e.ID == *u.PrimaryEmailAddressID {
			out.Email = strings.ToLower(e.EmailAddress)
			out.EmailVerified = e.Verification != nil && e.Verification.Status == "verified"
		}
	}
	out.Name = cmp.Or(out.Name, out.Email, u.ID)
	return out
}

func named(parts ...*string) string {
	var words []string
	for _, p := range parts {
		if p != nil && *p != "" {
			words = append(words, *p)
		}
	}
	return strings.Join(words, " ")
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

// Members are the people of a team and who is invited, as Clerk knows them.
func (s *System) Members(ctx context.Context, p identity.Presence, team ids.Team) ([]identity.Member, []identity.Invitation, error) {
	at, err := p.In(team)
	if err != nil {
		return nil, nil, err
	}
	var members []identity.Member
	for read := 0; ; read += pageSize { // of which some may be about nobody
		list, err := s.members.List(ctx, &organizationmembership.ListParams{OrganizationID: organizationOf(team), ListParams: page(read)})
		if err != nil {
			return nil, nil, refused(err)
		}
		for _, m := range list.OrganizationMemberships {
			if d := m.PublicUserData; d != nil {
				members = append(members, identity.Member{
					User: identity.User{ID: ids.User(d.UserID), Name: cmp.Or(named(d.FirstName, d.LastName), d.Identifier), Email: d.Identifier},
					Role: roleOf(m.Role, m.Organization != nil && m.Organization.CreatedBy == d.UserID), JoinedAt: time.UnixMilli(m.CreatedAt).UTC(),
				})
			}
		}
		if len(list.OrganizationMemberships) < pageSize {
			break
		}
	}
	pending, err := s.pending(ctx, p, at.Team)
	return members, pending, err
}

// pending are the open invitations to a team.
func (s *System) pending(ctx context.Context, p identity.Presence, team identity.Team) (all []identity.Invitation, err error) {
	for {
		list, err := s.invites.List(ctx, &organizationinvitation.ListParams{OrganizationID: organizationOf(team.ID), Statuses: &[]string{"pending"}, ListParams: page(len(all))})
		if err != nil {
			return nil, refused(err)
		}
		for _, i := range list.OrganizationInvitations {
			all = append(all, invitationOf(i, team, p.User.ID, ""))
		}
		if len(list.OrganizationInvitations) < pageSize {
			return all, nil
		}
	}
}

const invitationLife = 30 * 24 * time.Hour // where Clerk does not say

func invitationOf(i *clerksdk.OrganizationInvitation, team identity.Team, by ids.User, byName string) identity.Invitation {
	out := identity.Invitation{
		ID: ids.Invitation(i.ID), Team: team, Email: i.EmailAddress, Role: roleOf(i.Role, false), InvitedBy: by, InvitedByName: byName, Mailed: true,
		CreatedAt: time.UnixMilli(i.CreatedAt).UTC(),
	}
	out.ExpiresAt = out.CreatedAt.Add(invitationLife)
	if i.ExpiresAt != nil {
		out.ExpiresAt = time.UnixMilli(*i.ExpiresAt).UTC()
	}
	return out
}

// Invite lets Clerk ask somebody into the caller's organization. Clerk refuses
// to do so twice, which stands in for the recorded answer.
func (s *System) Invite(ctx context.Context, caller access.Caller, in identity.NewInvitation) (made identity.MadeInvitation, err error) {
	if !caller.May(access.ManageMembers) {
		return made, fault.Forbidden("only admins and owners can invite people")
	}
	email, err := builtin.CheckInvitation(in)
	if err != nil {
		return made, err
	}
	if err := identity.Count(ctx, s.Store, identity.InvitationMail(caller, email, in.ClientPrefix), s.Now(), in.Counted); err != nil {
		return made, err
	}
	role, by := "org:"+string(in.Role), string(caller.User)
	i, err := s.invites.Create(ctx, &organizationinvitation.CreateParams{
		EmailAddress: &email, Role: &role, InviterUserID: &by, OrganizationID: organizationOf(caller.Team),
	})
	if e, ok := errors.AsType[*clerksdk.APIErrorResponse](err); ok && len(e.Errors) > 0 {
		switch e.Errors[0].Code {
		case "already_a_member_in_organization":
			return made, fault.Conflict("%s belongs to the team already", email).WithCode("already_member")
		case "duplicate_record":
			return made, fault.Conflict("%s has an open invitation to this team", email).WithCode("already_invited")
		}
	}
	if err != nil {
		return made, unavailable(err)
	}
	made.Invitation = invitationOf(i, identity.Team{ID: caller.Team}, caller.User, caller.Name)
	return made, nil
}

// sealed begins what stands for an access token in what we hand out.
const sealed = "oat."

func (s *System) aead() (cipher.AEAD, error) {
	block, err := aes.NewCipher(s.Key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func (s *System) seal(token string) (string, error) {
	a, err := s.aead()
	if err != nil {
		return "", err
	}
	return sealed + base64.RawURLEncoding.EncodeToString(a.Seal(nil, nil, []byte(token), nil)), nil
}

func (s *System) unseal(text string) (string, error) {
	body, ours := strings.CutPrefix(text, sealed)
	raw, err := base64.RawURLEncoding.DecodeString(body)
	if !ours || err != nil {
		return "", errToken
	}
	a, err := s.aead()
	if err != nil {
		return "", err
	}
	token, err := a.Open(nil, nil, raw, nil)
	return string(token), err
}
