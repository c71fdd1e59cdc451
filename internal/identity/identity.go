// Package identity says who is calling: people, their sessions, and the teams
// they belong to. How that is known is an identity system's business: builtin
// keeps accounts itself, others ask a hosted service.
package identity

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/limits"
)

// System is an identity system.
type System interface {
	// Identify says whose credential this is. A missing, tampered, expired or
	// revoked one is fault.KindUnauthenticated, from the very next request.
	Identify(ctx context.Context, c Credential) (Presence, error)

	// Present is who a session or grant (see Presence.By) belongs to at this
	// moment; one that is dead is fault.KindUnauthenticated.
	Present(ctx context.Context, by ids.Session) (Presence, error)

	// Members are the people of one of the person's teams, the earliest joined
	// first, and the open invitations to it.
	Members(ctx context.Context, p Presence, team ids.Team) ([]Member, []Invitation, error)

	// Invite asks somebody into the caller's team, by mail unless the caller's
	// own address is unverified.
	Invite(ctx context.Context, caller access.Caller, in NewInvitation) (MadeInvitation, error)
}

// Credential is what came with a request. A bearer token counts before a
// cookie.
type Credential struct {
	Bearer  string
	Cookie  string
	Address string // where it came from
}

// User is a person with an account.
type User struct {
	ID            ids.User
	Name          string
	Email         string
	EmailVerified bool
}

// Team is an organization that owns workflows, runs and credits.
type Team struct {
	ID   ids.Team
	Name string
	Plan string
}

// Membership is a person's place in a team.
type Membership struct {
	Team     Team
	Role     access.Role
	JoinedAt time.Time
}

// Member is somebody in a team.
type Member struct {
	User
	Role     access.Role
	JoinedAt time.Time
}

// Presence is a person who is here now.
type Presence struct {
	Session     ids.Session     // empty with an access token
	Grant       string          // with an access token: what it was given by
	Most        access.Role     // with an API token: the most its bearer may be
	Scopes      access.ScopeSet // with a token: what of it; none is all
	User        User
	ByCookie    bool
	Active      ids.Team     // the session's chosen team, if any
	Memberships []Membership // the earliest joined first
}

// Narrowed reports whether it is less than the person: through a token for a
// role or for scopes.
func (p Presence) Narrowed() bool { return p.Most != "" || len(p.Scopes) > 0 }

// By is what the presence rests on and ends with: its session or, through a
// program, its grant.
func (p Presence) By() ids.Session {
	if p.Session == "" {
		return ids.Session(p.Grant)
	}
	return p.Session
}

// Place picks the team a request is for: the wanted one (403 unless the
// person belongs to it), else by cookie the session's active one, else the
// earliest joined.
func (p Presence) Place(wanted ids.Team) (Membership, error) {
	if wanted != "" {
		m, ok := p.member(wanted)
		if !ok {
			return Membership{}, fault.Forbidden("you do not belong to the team that X-Team-Id names").WithCode("not_a_member")
		}
		return m, nil
	}
	if len(p.Memberships) == 0 {
		return Membership{}, fault.Forbidden("you belong to no team: create one, or ask for an invitation").WithCode("no_team")
	}
	if p.ByCookie {
		if m, ok := p.member(p.Active); ok {
			return m, nil
		}
	}
	return p.Memberships[0], nil
}

// In is the person's place in a team that a path names. Somebody else's team
// is not found.
func (p Presence) In(team ids.Team) (Membership, error) {
	m, ok := p.member(team)
	if !ok {
		return Membership{}, fault.NotFound("no such team")
	}
	return m, nil
}

// Team is the person's place in a team, if they have one.
func (p Presence) Team(id string) (Membership, bool) { return p.member(ids.Team(id)) }

func (p Presence) member(team ids.Team) (Membership, bool) {
	for _, m := range p.Memberships {
		if m.Team.ID == team {
			return m, true
		}
	}
	return Membership{}, false
}

// Caller is the person in the role of this membership.
func (p Presence) Caller(m Membership) access.Caller {
	return access.Caller{User: p.User.ID, Name: p.User.Name, Team: m.Team.ID, Role: m.Role, Scopes: p.Scopes}
}

// InvitationStatus is what became of an invitation.
type InvitationStatus string

// The states of an invitation; all but pending are final.
const (
	Pending  InvitationStatus = "pending"
	Accepted InvitationStatus = "accepted"
	Revoked  InvitationStatus = "revoked"
	Expired  InvitationStatus = "expired"
)

// Invitation asks the owner of an email address into a team.
type Invitation struct {
	ID            ids.Invitation
	Team          Team
	Email         string
	Role          access.Role
	InvitedBy     ids.User
	InvitedByName string
	CreatedAt     time.Time
	ExpiresAt     time.Time
	EndedAs       InvitationStatus // empty while it is open
	Mailed        bool             // a mail was sent
	Proves        bool             // found by the link of that mail: whoever has it reads the mail of Email
}

// Status is what the invitation is worth at this moment.
func (i Invitation) Status(now time.Time) InvitationStatus {
	switch {
	case i.EndedAs != "":
		return i.EndedAs
	case !now.Before(i.ExpiresAt):
		return Expired
	default:
		return Pending
	}
}

// NewInvitation is what an owner or admin asks for.
type NewInvitation struct {
	Email        string
	Role         access.Role
	Verified     bool   // the inviting person's own address is; who has none sends no mail
	ClientPrefix string // the address they ask from, as it is counted

	// Link turns a secret token into the address of the invitation.
	Link func(token string) string
	// Once records the answer with the effect; nil without an idempotency key.
	Once func(MadeInvitation) (*access.IdempotencyRecord, error)
	// Counted is told where they stand with the limits; may be nil.
	Counted limits.Report
}

// MadeInvitation is an invitation with the link to copy, which opens it as the
// one in the mail does, but proves nobody's address. Whoever invites has it.
type MadeInvitation struct {
	Invitation
	Link string // empty where another service keeps it
}
