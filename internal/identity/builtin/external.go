package builtin

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
)

// ExternalIdentity is somebody as another provider knows them.
type ExternalIdentity struct {
	Issuer        string
	Subject       string // the provider's own name for them: it never changes
	Email         string
	EmailVerified bool
	Name          string
	Groups        []string // that the provider says they are in
	NoGroups      string   // why it says none, where it did not answer
}

// SignInExternal makes a session for somebody who has signed in at another
// provider: whoever is linked to them, else whoever has the address that the
// provider has verified, else a newcomer where those may come in. As in
// BeginSignIn, who has a second factor gets a one-time token first.
func (s *Accounts) SignInExternal(ctx context.Context, e ExternalIdentity, invitation string, v Visit) (in SignedIn, oneTime string, err error) {
	a, err := s.external.AccountByExternalIdentity(ctx, e)
	if fault.Is(err, fault.KindNotFound) {
		if e, err = verified(e); err != nil {
			return in, "", err
		}
		a, err = s.external.LinkExternalIdentity(ctx, e, s.now())
	}
	if fault.Is(err, fault.KindNotFound) {
		in, err = s.signUpExternal(ctx, e, invitation, v)
		return in, "", err
	}
	if err == nil && a.Disabled {
		err = errDisabled
	}
	if err == nil {
		err = s.groups.ApplyGroups(ctx, a.ID, e.Issuer, e.Groups, s.now())
	}
	if err != nil {
		return in, "", err
	}
	return s.admit(ctx, a, v)
}

// verified refuses an address that the provider has not verified: anybody
// could have written it there.
func verified(e ExternalIdentity) (ExternalIdentity, error) {
	email, ok := Email(e.Email)
	if !ok || !e.EmailVerified {
		return e, fault.Forbidden("the provider has not verified your email address: verify it there, or sign in another way").WithCode("email_unverified")
	}
	e.Email = email
	return e, nil
}

func (s *Accounts) signUpExternal(ctx context.Context, e ExternalIdentity, invitation string, v Visit) (SignedIn, error) {
	if err := s.policy.mayComeFrom(e, invitation); err != nil {
		return SignedIn{}, err
	}
	expected := invitation != "" || s.policy.newcomers.admit(e)
	if err := s.limiter.count(ctx, s.signUpRules(v.ClientPrefix, expected), v.Counted); err != nil {
		return SignedIn{}, err
	}
	name, ok := line(e.Name)
	if !ok {
		name = e.Email
	}
	a := NewAccount{
		Account:  Account{User: identity.User{ID: ids.NewUser(), Name: name, Email: e.Email, EmailVerified: true}},
		Team:     identity.Team{ID: ids.NewTeam(), Name: name + "'s team", Plan: s.policy.firstPlan},
		External: &e, CreatedAt: s.now(),
	}
	if v.Direct {
		a.First = MayBeFirst
	}
	if invitation != "" {
		a.Invitation = hashed(invitation)
	}
	if err := s.accounts.SignUp(ctx, a); err != nil {
		return SignedIn{}, signUpFault(err)
	}
	// Their own team is the one they joined first. The session begins in one that they were brought into.
	if err := s.groups.ApplyGroups(ctx, a.ID, e.Issuer, e.Groups, a.CreatedAt.Add(2*time.Microsecond)); err != nil {
		return SignedIn{}, err
	}
	return s.sessions.open(ctx, a.User, v)
}
