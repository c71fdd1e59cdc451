package builtin

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/letters"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/identity"
)

// Purpose is what a slip is good for.
type Purpose string

// The purposes of slips.
const (
	ForVerifying    Purpose = "verify"
	ForResetting    Purpose = "reset"
	ForSecondFactor Purpose = "second-factor" // between the password and the code
)

// Slip is a secret that works once and for one thing, such as the link in a
// mail.
type Slip struct {
	Hash      string
	User      ids.User
	Purpose   Purpose
	ExpiresAt time.Time
}

const (
	verifyLife = 7 * 24 * time.Hour
	resetLife  = time.Hour
	stepLife   = 10 * time.Minute
)

// Mails to one address are few, whoever asks for them.
var (
	lettersByAccount = limits.Window{Most: 5, Per: time.Hour}
	lettersByAddress = limits.Window{Most: 50, Per: time.Hour}
)

func (s *System) slip(user ids.User, purpose Purpose, life time.Duration) (secret string, row Slip) {
	secret = newSecret()
	return secret, Slip{Hash: hashed(secret), User: user, Purpose: purpose, ExpiresAt: s.Now().Add(life)}
}

// mayWrite counts a letter that somebody asks for.
func (s *System) mayWrite(ctx context.Context, kind, email, household string) error {
	const wait = "several mails were asked for already; look for them, or wait before you ask again"
	if err := s.take(ctx, "letters "+household, lettersByAddress, wait); err != nil {
		return err
	}
	return s.take(ctx, kind+" letters "+hashed(email), lettersByAccount, wait)
}

var errSlip = fault.NotFound("this link was used, was replaced by another, or has expired: ask for a new one").WithCode("link_invalid")

func orUsed(err error) error {
	if fault.Is(err, fault.KindNotFound) {
		return errSlip
	}
	return err
}

// SendVerification mails the person a link that proves their address; it
// reports false when that is proven already.
func (s *System) SendVerification(ctx context.Context, p identity.Presence, household string, link func(token string) string) (sent bool, err error) {
	if p.User.EmailVerified {
		return false, nil
	}
	if err := s.mayWrite(ctx, "verify", p.User.Email, household); err != nil {
		return false, err
	}
	slip, letter := s.verification(p.User, link)
	if err := s.Store.InsertSlip(ctx, slip, &letter, s.Now()); err != nil {
		return false, err
	}
	s.Post.Hurry(ctx)
	return true, nil
}

func (s *System) verification(u identity.User, link func(token string) string) (Slip, letters.Letter) {
	secret, row := s.slip(u.ID, ForVerifying, verifyLife)
	return row, letters.Letter{
		ID: "verify." + newSecret(), To: u.Email, Subject: "Confirm your e-mail address",
		Text: fmt.Sprintf("Hello %s,\n\nto confirm that this address is yours, open this link within seven days:\n\n%s\n\nIf you made no account on Millrace, ignore this mail.\n",
			oneLine(u.Name), link(secret)),
	}
}

// Verify notes that the person has read the mail.
func (s *System) Verify(ctx context.Context, token string) error {
	return orUsed(s.Store.VerifyEmail(ctx, hashed(token), s.Now()))
}

// RequestReset mails a link to whoever owns the address, if they have an
// account. Whether they do is not told.
func (s *System) RequestReset(ctx context.Context, email, household string, link func(token string) string) error {
	address, ok := Email(email)
	if !ok {
		return fault.Problems([]fault.Detail{{Path: "email", Message: "is not an e-mail address"}}, "email is not an e-mail address")
	}
	if err := s.mayWrite(ctx, "reset", address, household); err != nil {
		return err
	}
	a, err := s.Store.Account(ctx, address)
	if fault.Is(err, fault.KindNotFound) || err == nil && a.Disabled {
		return nil
	}
	if err != nil {
		return err
	}
	secret, row := s.slip(a.ID, ForResetting, resetLife)
	letter := letters.Letter{
		ID: "reset." + newSecret(), To: a.Email, Subject: "Reset your password",
		Text: fmt.Sprintf("Hello %s,\n\nto choose another password, open this link within an hour:\n\n%s\n\nIf you did not ask for this, ignore it: your password stays as it is.\n",
			oneLine(a.Name), link(secret)),
	}
	if err := s.Store.InsertSlip(ctx, row, &letter, s.Now()); err != nil {
		return err
	}
	s.Post.Hurry(ctx)
	return nil
}

// MayReset reports whether a reset link still works, without using it.
func (s *System) MayReset(ctx context.Context, token string) error {
	_, err := s.Store.Slip(ctx, hashed(token), ForResetting, s.Now())
	return orUsed(err)
}

// ResetPassword sets a password by a link from a mail. Everything the account
// is signed in with ends.
func (s *System) ResetPassword(ctx context.Context, token, password string) error {
	if err := s.MayReset(ctx, token); err != nil {
		return err
	}
	if err := CheckPassword(password); err != nil {
		return wrongField("password", err.Error())
	}
	return orUsed(s.Store.ResetPassword(ctx, hashed(token), s.Passwords.Hash(password), s.Now()))
}

func wrongField(name, message string) error {
	return fault.Problems([]fault.Detail{{Path: name, Message: message}}, "%s %s", name, message)
}

// ChangePassword replaces a password that the person knows. Their other
// sessions end; apps and API tokens, which have their own lists, stay.
func (s *System) ChangePassword(ctx context.Context, p identity.Presence, current, fresh, household string) error {
	if err := s.provePassword(ctx, p, current, household); err != nil {
		return err
	}
	if err := CheckPassword(fresh); err != nil {
		return wrongField("newPassword", err.Error())
	}
	return s.Store.ChangePassword(ctx, p.User.ID, s.Passwords.Hash(fresh), p.Session)
}

var errPassword = fault.Forbidden("the password is wrong").WithCode("wrong_credentials")

// provePassword asks again for the password before something that a borrowed
// session must not do.
func (s *System) provePassword(ctx context.Context, p identity.Presence, password, household string) error {
	a, err := s.Store.Account(ctx, p.User.Email)
	if err != nil {
		return err
	}
	return s.guess(ctx, guessing("account "+hashed(a.Email), household), errPassword, func() (bool, error) {
		return s.Passwords.Match(a.PasswordHash, password)
	})
}
