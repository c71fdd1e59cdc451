package builtin

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"strings"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
)

// mostInvited is how many addresses a list has at most.
const mostInvited = 500

// InvitationList asks many people at once.
type InvitationList struct {
	Text string
	identity.NewInvitation
}

// InvitationResult is what became of one address of a list.
type InvitationResult struct {
	Line    int // from 1
	Email   string
	Role    access.Role
	Result  ListResult
	Message string                  // why it was not invited
	Made    identity.MadeInvitation // of one that was
}

// ListResult is what became of an address.
type ListResult string

// The results.
const (
	ResultInvited        ListResult = "invited"
	ResultAlreadyMember  ListResult = "already_member"
	ResultAlreadyInvited ListResult = "already_invited"
	ResultWrong          ListResult = "wrong"
	ResultLimited        ListResult = "limited"
)

// InviteList invites the addresses of a list into the caller's team. Each is invited by itself:
// the same list again goes on where this one was cut off. The mails wait for the limits.
func (s *Invitations) InviteList(ctx context.Context, caller access.Caller, in InvitationList) ([]InvitationResult, error) {
	if err := caller.Must(access.ManageMembers); err != nil {
		return nil, err
	}
	list, err := ParseInvitations(in.Text, in.Role)
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		if r.Result == ResultWrong {
			continue
		}
		if err := caller.Role.MayTouch(r.Role); err != nil {
			return nil, err
		}
	}
	in.ClientPrefix = s.limiter.mailPrefix(in.ClientPrefix)
	waiting, err := s.store.HeldMails(ctx, caller.Team)
	if err != nil {
		return nil, err
	}
	// A list that was begun is done: who loses the connection would be shown no link of it again.
	ctx = context.WithoutCancel(ctx)
	for i := range list {
		if list[i].Result == ResultWrong {
			continue
		}
		in.Email, in.Role = list[i].Email, list[i].Role
		made, err := s.inviteHeld(ctx, caller, in.NewInvitation, waiting)
		if err := list[i].note(made, err); err != nil {
			return nil, err
		}
		if err == nil {
			waiting++
		}
	}
	s.post.SendSoon()
	return list, nil
}

// inviteHeld invites somebody by a mail that waits for the limits. The more mails wait before
// it, the longer the invitation lives.
func (s *Invitations) inviteHeld(ctx context.Context, caller access.Caller, in identity.NewInvitation, waiting int) (identity.MadeInvitation, error) {
	made := in
	made.Verified = false // what counts at once is that it is made
	if err := s.limiter.count(ctx, made.Rules(caller, in.Email), nil); err != nil {
		return identity.MadeInvitation{}, err
	}
	now := s.now()
	inv := identity.Invitation{
		ID: ids.NewInvitation(), Team: identity.Team{ID: caller.Team}, Email: in.Email, Role: in.Role, InvitedBy: caller.User, InvitedByName: caller.Name,
		CreatedAt: now, ExpiresAt: now.Add(invitationLife + identity.MailWait(waiting)), Mailed: in.Verified,
	}
	out, sent := s.sent(inv, in.Link)
	sent.OfList = true
	if sent.Mail != nil {
		sent.Limits = identity.InvitationMail(caller, in.Email, in.ClientPrefix)
	}
	return out, s.store.InsertInvitation(ctx, sent)
}

// note says what became of the address; an error that is not about it stays one.
func (r *InvitationResult) note(made identity.MadeInvitation, err error) error {
	if err == nil {
		r.Result, r.Made = ResultInvited, made
		return nil
	}
	e, _ := errors.AsType[*fault.Error](err)
	switch {
	case fault.Is(err, fault.KindLimited):
		r.Result = ResultLimited
	case e != nil && e.Code == "already_member":
		r.Result = ResultAlreadyMember
	case e != nil && e.Code == "already_invited":
		r.Result = ResultAlreadyInvited
	default:
		return err
	}
	r.Message = e.Message
	return nil
}

// ParseInvitations reads a list: addresses of lines, between commas, semicolons or tabs, with
// one role a line at most. What is wrong is in the result, with its line.
func ParseInvitations(text string, role access.Role) ([]InvitationResult, error) {
	if role == "" {
		role = access.Member
	}
	if !role.Known() {
		return nil, wrongField("role", "is none of owner, admin, member, viewer")
	}
	var list []InvitationResult
	seen := map[string]int{}
	number := 0
	for line := range strings.Lines(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(text, "\ufeff"))) {
		number++
		list = append(list, parseLine(line, number, role, seen)...)
		if len(list) > mostInvited {
			return nil, wrongField("list", fmt.Sprintf("has more than %d addresses: send it in parts", mostInvited))
		}
	}
	if len(list) == 0 {
		return nil, wrongField("list", "has no email address")
	}
	return list, nil
}

func parseLine(line string, number int, role access.Role, seen map[string]int) (list []InvitationResult) {
	fields := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(",;\t\n", r) })
	for _, field := range fields {
		field = strings.Trim(field, " \"")
		if named := access.Role(strings.ToLower(field)); named.Known() {
			role = named
		} else if field != "" && !(number == 1 && heads[strings.ToLower(field)]) {
			list = append(list, InvitationResult{Line: number, Email: field})
		}
	}
	for i := range list {
		list[i].Role = role
		list[i].check(seen)
	}
	return list
}

// heads are what spreadsheets have in their first line.
var heads = map[string]bool{"email": true, "e-mail": true, "mail": true, "address": true, "email address": true, "role": true}

func (r *InvitationResult) check(seen map[string]int) {
	text := r.Email
	if a, err := mail.ParseAddress(text); err == nil {
		text = a.Address // without the name beside it
	}
	email, ok := Email(text)
	if !ok {
		r.Email = strings.ToValidUTF8(r.Email[:min(len(r.Email), maxEmail)], "")
		r.Result, r.Message = ResultWrong, "is not an email address"
		return
	}
	r.Email = email
	if line, twice := seen[email]; twice {
		r.Result, r.Message = ResultWrong, fmt.Sprintf("is in line %d, too", line)
		return
	}
	seen[email] = r.Line
}
