package builtin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/letters"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/identity"
)

const invitationLife = 7 * 24 * time.Hour

// resends keeps an invitation from becoming a way to bother somebody.
var resends = limits.Window{Most: 5, Per: time.Hour}

// Invite asks somebody into the caller's team. The letter is stored with the
// invitation, so that neither is ever there alone.
func (s *System) Invite(ctx context.Context, caller access.Caller, in identity.NewInvitation) (identity.Invitation, error) {
	if !caller.May(access.ManageMembers) {
		return identity.Invitation{}, fault.Forbidden("only an owner or admin may invite people")
	}
	email, err := CheckInvitation(in)
	if err != nil {
		return identity.Invitation{}, err
	}
	now := s.Now()
	inv := identity.Invitation{
		ID: ids.NewInvitation(), Team: identity.Team{ID: caller.Team}, Email: email, Role: in.Role,
		InvitedBy: caller.User, InvitedByName: caller.Name, CreatedAt: now, ExpiresAt: now.Add(invitationLife),
	}
	sent := s.sent(inv, in.Link)
	if in.Once != nil {
		if sent.Once, err = in.Once(inv); err != nil {
			return inv, err
		}
	}
	if err := s.Store.InsertInvitation(ctx, sent); err != nil {
		return inv, err
	}
	s.Post.Hurry(ctx)
	return inv, nil
}

// CheckInvitation says everything that is wrong with what was asked for, or
// where it goes.
func CheckInvitation(in identity.NewInvitation) (email string, err error) {
	var wrong []fault.Detail
	email, ok := Email(in.Email)
	if !ok {
		wrong = append(wrong, fault.Detail{Path: "email", Message: "is not an e-mail address"})
	}
	if in.Role != access.Member && in.Role != access.Admin {
		wrong = append(wrong, fault.Detail{Path: "role", Message: "is neither member nor admin"})
	}
	if len(wrong) > 0 {
		return "", fault.Problems(wrong, "%s %s", wrong[0].Path, wrong[0].Message)
	}
	return email, nil
}

// sent gives the invitation a fresh secret and the letter that carries it.
func (s *System) sent(inv identity.Invitation, link func(token string) string) SentInvitation {
	token := newSecret()
	return SentInvitation{
		Invitation: inv,
		TokenHash:  hashed(token),
		SentAt:     s.Now(),
		Letter: letters.Letter{
			ID: string(inv.ID) + "." + newSecret()[:8], To: inv.Email, Team: inv.Team.ID,
			Subject: oneLine(inv.InvitedByName) + " invites you to a team on Millrace",
			Text: fmt.Sprintf("Hello,\n\n%s invites you to join a team on Millrace as %s.\nTo accept, open this link until %s:\n\n%s\n\nIf you did not expect this, ignore it: nothing happens without you.\n",
				oneLine(inv.InvitedByName), inv.Role, inv.ExpiresAt.UTC().Format("2 January 2006, 15:04 MST"), link(token)),
		},
	}
}

// oneLine keeps a name from writing its own letter.
func oneLine(name string) string { return strings.Join(strings.Fields(name), " ") }

// ResendInvitation sends the letter again, with another link that lives anew;
// the one before is dead.
func (s *System) ResendInvitation(ctx context.Context, p identity.Presence, team ids.Team, id ids.Invitation, link func(string) string) (identity.Invitation, error) {
	if _, err := s.managing(p, team); err != nil {
		return identity.Invitation{}, err
	}
	inv, err := s.Store.Invitation(ctx, team, id)
	if err != nil {
		return inv, err
	}
	if inv.EndedAs != "" {
		return inv, ended(inv.EndedAs)
	}
	if err := s.take(ctx, "resend "+hashed(string(id)), resends, "this invitation was sent several times already; wait before you send it again"); err != nil {
		return inv, err
	}
	inv.ExpiresAt = s.Now().Add(invitationLife)
	if err := s.Store.RenewInvitation(ctx, s.sent(inv, link)); err != nil {
		return inv, err
	}
	s.Post.Hurry(ctx)
	return inv, nil
}

// RevokeInvitation makes the link worthless at once.
func (s *System) RevokeInvitation(ctx context.Context, p identity.Presence, team ids.Team, id ids.Invitation) error {
	if _, err := s.managing(p, team); err != nil {
		return err
	}
	return s.Store.RevokeInvitation(ctx, team, id, s.Now())
}

// Invitation is what a link is for. Whoever has the link may know.
func (s *System) Invitation(ctx context.Context, token string) (identity.Invitation, error) {
	return s.Store.InvitationByToken(ctx, hashed(token))
}

// AcceptInvitation joins the team, if the invitation is for this person.
func (s *System) AcceptInvitation(ctx context.Context, p identity.Presence, token string) (identity.Membership, error) {
	inv, err := s.Invitation(ctx, token)
	if err != nil {
		return identity.Membership{}, err
	}
	if inv.Email != p.User.Email {
		return identity.Membership{}, fault.Forbidden("this invitation was sent to another e-mail address than yours: sign in with that one").WithCode("email_mismatch")
	}
	if status := inv.Status(s.Now()); status != identity.Pending {
		return identity.Membership{}, ended(status)
	}
	now := s.Now()
	if err := s.Store.AcceptInvitation(ctx, inv.ID, p.User.ID, now); err != nil {
		return identity.Membership{}, s.why(ctx, token, err)
	}
	return identity.Membership{Team: inv.Team, Role: inv.Role, JoinedAt: now}, nil
}

// why tells somebody whose invitation ended in the same moment what ended it.
func (s *System) why(ctx context.Context, token string, err error) error {
	if !fault.Is(err, fault.KindConflict) {
		return err
	}
	inv, again := s.Invitation(ctx, token)
	if again != nil {
		return again
	}
	return ended(inv.Status(s.Now()))
}

// ended says why an invitation no longer works.
func ended(as identity.InvitationStatus) error {
	if as == identity.Accepted {
		return fault.Conflict("this invitation has been accepted already").WithCode("accepted")
	}
	return fault.Forbidden("this invitation is %s: ask for another one", as).WithCode(string(as))
}
