package builtin

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/domain/mails"
	"github.com/millrace/millrace/internal/identity"
)

// Purpose is what a one-time token is good for.
type Purpose string

// The purposes of one-time tokens.
const (
	ForVerifying    Purpose = "verify"
	ForResetting    Purpose = "reset"
	ForSecondFactor Purpose = "second-factor" // between the password and the code
)

// OneTimeToken is a secret that works once and for one thing, such as the link in a
// mail.
type OneTimeToken struct {
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
	mailsAnHour = limits.Window{Most: 5, Per: time.Hour}
	mailsADay   = limits.Window{Most: 20, Per: 24 * time.Hour}
)

func newOneTimeToken(user ids.User, purpose Purpose, until time.Time) (secret string, row OneTimeToken) {
	secret = newSecret()
	return secret, OneTimeToken{Hash: hashed(secret), User: user, Purpose: purpose, ExpiresAt: until}
}

// Recovery proves addresses by links in mails, and gives people who forgot
// theirs another password.
type Recovery struct {
	tokens      OneTimeTokenStore
	credentials credentials
	limiter     limiter
	post        Post
	now         func() time.Time
}

// countMail counts a mail that somebody asks for.
func (s *Recovery) countMail(ctx context.Context, kind Purpose, email string, v Visit) error {
	const wait = "several emails were already sent; check your inbox, or wait before you request another"
	bucket := string(kind) + " letters " + hashed(email)
	// Not told: it would say what others asked for.
	rules := append(identity.MailFrom(s.limiter.mailPrefix(v.ClientPrefix)),
		limits.Rule{Bucket: bucket, Window: mailsAnHour, Why: wait},
		limits.Rule{Bucket: bucket + " a day", Window: mailsADay, Why: wait})
	return s.limiter.count(ctx, rules, v.Counted)
}

var errLinkUsed = fault.NotFound("this link has expired or was already used: ask for a new one").WithCode("link_invalid")

func orUsed(err error) error {
	if fault.Is(err, fault.KindNotFound) {
		return errLinkUsed
	}
	return err
}

// SendVerification mails the person a link that proves their address; it
// reports false when that is proven already.
func (s *Recovery) SendVerification(ctx context.Context, p identity.Presence, v Visit, link func(token string) string) (sent bool, err error) {
	if p.User.EmailVerified {
		return false, nil
	}
	if err := s.countMail(ctx, ForVerifying, p.User.Email, v); err != nil {
		return false, err
	}
	oneTime, message := verification(p.User, link, s.now())
	if err := s.tokens.InsertOneTimeToken(ctx, oneTime, &message, s.now()); err != nil {
		return false, err
	}
	s.post.SendNow(ctx)
	return true, nil
}

func verification(u identity.User, link func(token string) string, now time.Time) (OneTimeToken, mails.Message) {
	secret, row := newOneTimeToken(u.ID, ForVerifying, now.Add(verifyLife))
	return row, mails.Message{
		ID: "verify." + newSecret(), To: u.Email, Subject: "Confirm your email address",
		// Whoever made the account chose its name, and maybe the address of
		// somebody else.
		Text: fmt.Sprintf("Hello,\n\nto confirm your email address, open this link within seven days:\n\n%s\n\nIf you didn't create a Millrace account, ignore this email.\n", link(secret)),
	}
}

// Verify notes that the person has read the mail.
func (s *Recovery) Verify(ctx context.Context, token string) error {
	return orUsed(s.tokens.VerifyEmail(ctx, hashed(token), s.now()))
}

// Offered refuses where nobody signs in by a password.
func (s *Recovery) Offered() error { return s.credentials.policy.passwords() }

// RequestReset mails a link to whoever owns the address, if they have an
// account. Whether they do is not told, neither by the answer nor by the time
// it takes: the same work is done, and the mail goes out afterwards.
func (s *Recovery) RequestReset(ctx context.Context, email string, v Visit, link func(token string) string) error {
	if err := s.Offered(); err != nil {
		return err
	}
	address, ok := Email(email)
	if !ok {
		return fault.Problems([]fault.Detail{{Path: "email", Message: "is not an email address"}}, "email is not an email address")
	}
	if err := s.countMail(ctx, ForResetting, address, v); err != nil {
		return err
	}
	secret, row := newOneTimeToken("", ForResetting, s.now().Add(resetLife))
	message := mails.Message{
		ID: "reset." + newSecret(), To: address, Subject: "Reset your password",
		Text: fmt.Sprintf("Hello,\n\nto choose a new password, open this link within one hour:\n\n%s\n\nIf you didn't request this, ignore this email: your password stays the same.\n", link(secret)),
	}
	if err := s.tokens.InsertResetToken(ctx, row, message, s.now()); err != nil {
		return err
	}
	s.post.SendSoon()
	return nil
}

// MayReset reports whether a reset link still works, without using it.
func (s *Recovery) MayReset(ctx context.Context, token string) error {
	if err := s.Offered(); err != nil {
		return err
	}
	_, err := s.tokens.OneTimeToken(ctx, hashed(token), ForResetting, s.now())
	return orUsed(err)
}

// ResetPassword sets a password by a link from a mail. Everything the account
// is signed in with ends.
func (s *Recovery) ResetPassword(ctx context.Context, token, password string) error {
	if err := s.MayReset(ctx, token); err != nil {
		return err
	}
	if err := CheckPassword(password); err != nil {
		return wrongField("password", err.Error())
	}
	return orUsed(s.tokens.ResetPassword(ctx, hashed(token), s.credentials.passwords.Hash(password), s.now()))
}

func wrongField(name, message string) error {
	return fault.Problems([]fault.Detail{{Path: name, Message: message}}, "%s %s", name, message)
}

// ChangePassword replaces a password that the person knows. Their other
// sessions end; apps and API tokens, which have their own lists, stay.
func (s *Recovery) ChangePassword(ctx context.Context, p identity.Presence, current, fresh, clientPrefix string) error {
	if err := s.credentials.prove(ctx, p, current, clientPrefix); err != nil {
		return err
	}
	if err := CheckPassword(fresh); err != nil {
		return wrongField("newPassword", err.Error())
	}
	return s.tokens.ChangePassword(ctx, p.User.ID, s.credentials.passwords.Hash(fresh), p.Session)
}
