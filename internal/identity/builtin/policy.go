package builtin

import (
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/identity"
)

// SignUpPolicy says who may make an account.
type SignUpPolicy string

// The policies of --sign-up.
const (
	SignUpOpen   SignUpPolicy = "open"
	SignUpInvite SignUpPolicy = "invite"
	SignUpClosed SignUpPolicy = "closed"
)

// policy is what the operator has decided about newcomers.
type policy struct {
	signUp    SignUpPolicy
	newcomers Newcomers // by providers
	private   bool
	firstPlan string

	noPasswords bool // people sign in through a provider alone
}

var errNoPasswords = fault.Forbidden("people sign in to this server through a provider, without a password: open the sign-in page in a browser").WithCode("password_sign_in_off")

// passwords refuses whoever wants to sign up, in, or to recover by a password where
// --password-sign-in is off.
func (p policy) passwords() error {
	if p.noPasswords {
		return errNoPasswords
	}
	return nil
}

func (p policy) maySignUp(in SignUp) error {
	switch {
	case p.signUp == SignUpClosed:
		return fault.Forbidden("accounts on this server are created by its operator (--sign-up closed)").WithCode("sign_up_closed")
	case p.signUp == SignUpInvite && in.Invitation == "":
		return fault.Forbidden("signing up needs an invitation: ask a team for one, and open the link in the email").WithCode("sign_up_invite_only")
	}
	return nil
}

// mayComeFrom refuses a newcomer through a provider whom neither --sign-up nor
// --oidc-sign-up admits.
func (p policy) mayComeFrom(e ExternalIdentity, invitation string) error {
	err := p.maySignUp(SignUp{Invitation: invitation})
	switch {
	case err == nil || p.newcomers.admit(e):
		return nil
	case p.newcomers.Any():
		return p.newcomers.refusal(e)
	}
	return err
}

// waitsVerified reports whether the credits of a person's team wait until
// their address is verified: where anybody may sign up, accounts cost nothing.
func (p policy) waitsVerified(owner identity.User) bool {
	return p.signUp == SignUpOpen && !p.private && !owner.EmailVerified
}
