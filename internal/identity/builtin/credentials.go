package builtin

import (
	"context"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/identity"
)

// credentials knows whose password this is.
type credentials struct {
	accounts  AccountStore
	policy    policy
	passwords *Passwords
	limiter   limiter
}

var (
	errDisabled    = fault.Forbidden("this account is suspended: ask an operator of this installation").WithCode("account_disabled")
	errCredentials = fault.Unauthenticated("the email address or the password is wrong").WithCode("wrong_credentials")
	errPassword    = fault.Forbidden("the password is wrong").WithCode("wrong_credentials")
)

// match is the account that the password opens.
func (c credentials) match(ctx context.Context, email, password string, v Visit) (Account, error) {
	if err := c.policy.passwords(); err != nil {
		return Account{}, err
	}
	if email == "" || password == "" || len(password) > maxPassword {
		return Account{}, fault.Invalid("give an email address and a password")
	}
	address, isAddress := Email(email)
	var a Account
	err := c.limiter.guess(ctx, guessing("account "+hashed(address), v.ClientPrefix), errCredentials, func() (bool, error) {
		if isAddress {
			var err error
			if a, err = c.accounts.Account(ctx, address); err != nil && !fault.Is(err, fault.KindNotFound) {
				return false, err
			}
		}
		return c.passwords.Match(a.PasswordHash, password) // takes as long when there is nobody
	})
	if err == nil && a.Disabled {
		err = errDisabled
	}
	return a, err
}

// prove asks again for the password before something that a borrowed
// session must not do.
func (c credentials) prove(ctx context.Context, p identity.Presence, password, clientPrefix string) error {
	if err := c.policy.passwords(); err != nil {
		return err
	}
	a, err := c.accounts.Account(ctx, p.User.Email)
	if err != nil {
		return err
	}
	return c.limiter.guess(ctx, guessing("account "+hashed(a.Email), clientPrefix), errPassword, func() (bool, error) {
		return c.passwords.Match(a.PasswordHash, password)
	})
}
