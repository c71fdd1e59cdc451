package builtin

import (
	"context"
	"crypto/subtle"

	"github.com/millrace/millrace/internal/domain/fault"
)

// First says whether an account becomes the installation's operator if no account was ever
// made before it.
type First int

// What an account may be.
const (
	NeverFirst First = iota
	MayBeFirst       // from the machine itself
	FirstOnly        // by the link for the first account, and by nothing else
)

// FirstAccountStore knows whether there is an account.
type FirstAccountStore interface {
	// FirstAccountToken is what the link for the first account has in it: fault.KindNotFound
	// once an account was made.
	FirstAccountToken(ctx context.Context) (string, error)
}

var errFirstToken = fault.Forbidden("this link for the first account is wrong, or there is an account: look for the newest link in the log of the server, or sign up without it").WithCode("first_account_exists")

// asFirst says what an account of this visit may be. A token that does not fit is refused.
func (s *Accounts) asFirst(ctx context.Context, token string, v Visit) (First, error) {
	if token == "" {
		if v.Direct {
			return MayBeFirst, nil
		}
		return NeverFirst, nil
	}
	fits, err := s.FitsFirst(ctx, token)
	if err == nil && !fits {
		err = errFirstToken
	}
	return FirstOnly, err
}

// FitsFirst reports whether a token is the one for the first account, and there is none yet.
func (s *Accounts) FitsFirst(ctx context.Context, token string) (bool, error) {
	want, err := s.first.FirstAccountToken(ctx)
	if fault.Is(err, fault.KindNotFound) {
		return false, nil
	}
	return err == nil && subtle.ConstantTimeCompare([]byte(want), []byte(token)) == 1, err
}

// FirstLink is the address that makes the first account of an installation its operator;
// empty where there is an account.
func (s *Accounts) FirstLink(ctx context.Context, base string) (string, error) {
	token, err := s.first.FirstAccountToken(ctx)
	if fault.Is(err, fault.KindNotFound) {
		return "", nil
	}
	return base + "/sign-up?first=" + token, err
}
