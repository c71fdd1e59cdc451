package builtin

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/domain/mails"
	"github.com/millrace/millrace/internal/identity"
)

const invitationLife = 7 * 24 * time.Hour

// resends keeps an invitation from becoming a way to bother somebody.
var resends = limits.Window{Most: 5, Per: time.Hour}

// Invitations ask people into teams.
type Invitations struct {
	store   InvitationStore
	limiter limiter
	post    Post
	now     func() time.Time
}

// Invite asks somebody into the caller's team. The mail is stored with the
// invitation, so that neither is ever there alone. Who has not verified their
// own address gets a link to copy, and no mail is sent.
func (s *Invitations) Invite(ctx context.Context, caller access.Caller, in identity.NewInvitation) (identity.MadeInvitation, error) {
	if !caller.May(access.ManageMembers) {
		return identity.MadeInvitation{}, fault.Forbidden("only admins and owners can invite people")
	}
	email, err := CheckInvitation(in)
	if err != nil {
		return identity.MadeInvitation{}, err
	}
	return s.invite(ctx, caller, email, in)
}

// InviteTo is Invite into a team that a path names, in any role that the
// person may give.
func (s *Invitations) InviteTo(ctx context.Context, p identity.Presence, team ids.Team, in identity.NewInvitation) (identity.MadeInvitation, error) {
	m, err := managing(p, team)
	if err != nil {
		return identity.MadeInvitation{}, err
	}
	if !in.Role.Known() {
		return identity.MadeInvitation{}, wrongField("role", "is none of owner, admin, member, viewer")
	}
	email, ok := Email(in.Email)
	if !ok {
		return identity.MadeInvitation{}, wrongField("email", "is not an email address")
	}
	if err := m.Role.MayTouch(in.Role); err != nil {
		return identity.MadeInvitation{}, err
	}
	return s.invite(ctx, p.Caller(m), email, in)
}

func (s *Invitations) invite(ctx context.Context, caller access.Caller, email string, in identity.NewInvitation) (identity.MadeInvitation, error) {
	in.ClientPrefix = s.limiter.mailPrefix(in.ClientPrefix)
	if err := s.limiter.count(ctx, in.Rules(caller, email), in.Counted); err != nil {
		return identity.MadeInvitation{}, err
	}
	now := s.now()
	inv := identity.Invitation{
		ID: ids.NewInvitation(), Team: identity.Team{ID: caller.Team}, Email: email, Role: in.Role,
		InvitedBy: caller.User, InvitedByName: caller.Name, CreatedAt: now, ExpiresAt: now.Add(invitationLife), Mailed: in.Verified,
	}
	made, sent := s.sent(inv, in.Link)
	if in.Once != nil {
		var err error
		if sent.Once, err = in.Once(made); err != nil {
			return made, err
		}
	}
	if err := s.store.InsertInvitation(ctx, sent); err != nil {
		return made, err
	}
	if inv.Mailed {
		s.post.SendNow(ctx)
	}
	return made, nil
}

// CheckInvitation says everything that is wrong with what was asked for, or
// where it goes.
func CheckInvitation(in identity.NewInvitation) (email string, err error) {
	var wrong []fault.Detail
	email, ok := Email(in.Email)
	if !ok {
		wrong = append(wrong, fault.Detail{Path: "email", Message: "is not an email address"})
	}
	if in.Role != access.Member && in.Role != access.Admin {
		wrong = append(wrong, fault.Detail{Path: "role", Message: "is neither member nor admin"})
	}
	if len(wrong) > 0 {
		return "", fault.Problems(wrong, "%s %s", wrong[0].Path, wrong[0].Message)
	}
	return email, nil
}

// sent gives the invitation fresh secrets: one for the mail, which proves
// who reads the mail, and another to copy, which does not.
func (s *Invitations) sent(inv identity.Invitation, link func(token string) string) (identity.MadeInvitation, SentInvitation) {
	mailed, copied := newSecret(), newSecret()
	made := identity.MadeInvitation{Invitation: inv, Link: link(copied)}
	sent := SentInvitation{Invitation: inv, TokenHash: hashed(mailed), LinkHash: hashed(copied), SentAt: s.now()}
	if inv.Mailed {
		sent.Mail = &mails.Message{
			ID: string(inv.ID) + "." + newSecret()[:8], To: inv.Email, Team: inv.Team.ID, Subject: "You're invited to a team on Millrace",
			Text: fmt.Sprintf("Hello,\n\n%s invited you to join a team on Millrace as %s.\nTo accept, open this link before %s:\n\n%s\n\nIf you didn't expect this, you can ignore this email.\n",
				mails.QuotedName(inv.InvitedByName), inv.Role, inv.ExpiresAt.UTC().Format("2 January 2006, 15:04 MST"), link(mailed)),
		}
	}
	return made, sent
}

var errUnverified = fault.Forbidden("confirm your own email address before you send email to others: open the link in the email we sent you, or request another one under Account").WithCode("email_unverified")

// Resend sends the mail again, with another link that lives anew;
// the one before is dead.
func (s *Invitations) Resend(ctx context.Context, p identity.Presence, team ids.Team, id ids.Invitation, v Visit, link func(string) string) (identity.MadeInvitation, error) {
	m, inv, err := s.managed(ctx, p, team, id)
	switch {
	case err != nil:
		return identity.MadeInvitation{}, err
	case !p.User.EmailVerified:
		return identity.MadeInvitation{}, errUnverified
	case inv.EndedAs != "":
		return identity.MadeInvitation{}, ended(inv.EndedAs)
	}
	again := limits.Rule{
		Name: "resends", Bucket: "resend " + hashed(string(id)), Window: resends,
		Why: "this invitation was sent several times already; wait before you send it again",
	}
	rules := append(identity.InvitationMail(p.Caller(m), inv.Email, s.limiter.mailPrefix(v.ClientPrefix)), again)
	if err := s.limiter.count(ctx, rules, v.Counted); err != nil {
		return identity.MadeInvitation{}, err
	}
	inv.ExpiresAt, inv.Mailed = s.now().Add(invitationLife), true
	made, sent := s.sent(inv, link)
	if err := s.store.RenewInvitation(ctx, sent); err != nil {
		return made, err
	}
	s.post.SendNow(ctx)
	return made, nil
}

// managed is an invitation that the person may send again or take back, by their place
// in its team. That of an owner is for owners alone.
func (s *Invitations) managed(ctx context.Context, p identity.Presence, team ids.Team, id ids.Invitation) (identity.Membership, identity.Invitation, error) {
	m, err := managing(p, team)
	if err != nil {
		return m, identity.Invitation{}, err
	}
	inv, err := s.store.Invitation(ctx, team, id)
	return m, inv, cmp.Or(err, m.Role.MayTouch(inv.Role))
}

// Revoke makes the link worthless at once.
func (s *Invitations) Revoke(ctx context.Context, p identity.Presence, team ids.Team, id ids.Invitation) error {
	if _, _, err := s.managed(ctx, p, team, id); err != nil {
		return err
	}
	return s.store.RevokeInvitation(ctx, team, id, s.now())
}

// Find is what a link is for. Whoever has the link may know.
func (s *Invitations) Find(ctx context.Context, token string) (identity.Invitation, error) {
	return s.store.InvitationByToken(ctx, hashed(token))
}

// Accept joins the team, if the invitation is for this person, and makes it the
// active one of their session.
func (s *Invitations) Accept(ctx context.Context, p identity.Presence, token string) (identity.Membership, error) {
	inv, err := s.Find(ctx, token)
	if err != nil {
		return identity.Membership{}, err
	}
	if inv.Email != p.User.Email {
		return identity.Membership{}, fault.Forbidden("this invitation was sent to another email address than yours: sign in with that one").WithCode("email_mismatch")
	}
	if status := inv.Status(s.now()); status != identity.Pending {
		return identity.Membership{}, ended(status)
	}
	now := s.now()
	if err := s.store.AcceptInvitation(ctx, inv, p.User.ID, p.Session, now); err != nil {
		return identity.Membership{}, s.why(ctx, token, err)
	}
	return identity.Membership{Team: inv.Team, Role: inv.Role, JoinedAt: now}, nil
}

// why tells somebody whose invitation ended in the same moment what ended it.
func (s *Invitations) why(ctx context.Context, token string, err error) error {
	if !fault.Is(err, fault.KindConflict) {
		return err
	}
	inv, again := s.Find(ctx, token)
	if again != nil {
		return again
	}
	return ended(inv.Status(s.now()))
}

// ended says why an invitation no longer works.
func ended(as identity.InvitationStatus) error {
	if as == identity.Accepted {
		return fault.Conflict("this invitation has been accepted already").WithCode("accepted")
	}
	return fault.Forbidden("this invitation is %s: ask for another one", as).WithCode(string(as))
}
