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
	private   bool
	firstPlan string
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

// waitsVerified reports whether the credits of a person's team wait until
// their address is verified: where anybody may sign up, accounts cost nothing.
func (p policy) waitsVerified(owner identity.User) bool {
	return p.signUp == SignUpOpen && !p.private && !owner.EmailVerified
}
