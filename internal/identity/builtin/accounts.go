package builtin

import (
	"context"
	"errors"
	"net/mail"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/identity"
)

// Visit is where a sign-in comes from.
type Visit struct {
	Origin    string // the frontend's origin
	UserAgent string
	Address   string
	Household string // the address as it is counted

	// Counted is told where they stand with the limits; may be nil.
	Counted limits.Report
}

// SignUp is what a newcomer fills in.
type SignUp struct {
	Email      string
	Password   string
	Name       string
	Invitation string // the token of an invitation that was followed

	// VerifyLink turns a secret token into the address that the mail carries;
	// without it no mail is sent.
	VerifyLink func(token string) string
}

// SignedIn is a fresh session. Secret goes into the cookie and is kept nowhere.
type SignedIn struct {
	User   identity.User
	Team   identity.Membership
	Token  Token
	Secret string
	Until  time.Time
}

const (
	minPassword = 10
	maxPassword = 1024
	maxName     = 200
	maxEmail    = 254
	sessionLife = 30 * 24 * time.Hour
)

// SignUp makes an account, its own team and a session.
func (s *System) SignUp(ctx context.Context, in SignUp, v Visit) (SignedIn, error) {
	if err := s.maySignUp(in); err != nil {
		return SignedIn{}, err
	}
	if err := identity.Count(ctx, s.Store, s.signUpRules(v.Household, in.Invitation != ""), s.Now(), v.Counted); err != nil {
		return SignedIn{}, err
	}
	a, err := s.account(in)
	if err != nil {
		return SignedIn{}, err
	}
	session, secret := s.session(a.ID, v)
	a.Session = &session
	if in.Invitation != "" {
		inv, err := s.Invitation(ctx, in.Invitation)
		if err != nil {
			return SignedIn{}, signUpFault(err)
		}
		a.Invitation, a.EmailVerified = hashed(in.Invitation), inv.Proves
	}
	if !a.EmailVerified && in.VerifyLink != nil {
		slip, letter := s.verification(a.User, in.VerifyLink)
		a.Slip, a.Letter = &slip, letter
	}
	a.WaitVerified = s.waitsVerified(a.User)
	if err := s.Store.SignUp(ctx, a); err != nil {
		return SignedIn{}, signUpFault(err)
	}
	if a.Slip != nil {
		s.Post.Hurry(ctx)
	}
	return s.signedIn(ctx, a.User, session, secret)
}

// CreateAccount makes an account for somebody, as an operator does, who
// vouches for the address.
func (s *System) CreateAccount(ctx context.Context, in SignUp) (identity.User, error) {
	a, err := s.account(in)
	if err != nil {
		return identity.User{}, err
	}
	a.EmailVerified = true
	return a.User, signUpFault(s.Store.SignUp(ctx, a))
}

func signUpFault(err error) error {
	switch {
	case fault.Is(err, fault.KindConflict):
		return fault.Conflict("an account with this email address exists: sign in, or reset the password").WithCode("email_taken")
	case fault.Is(err, fault.KindNotFound):
		return fault.Forbidden("this invitation is for another email address, or it was used, revoked or has expired").WithCode("invitation_invalid")
	}
	return err
}

func (s *System) maySignUp(in SignUp) error {
	switch {
	case s.Options.SignUp == SignUpClosed:
		return fault.Forbidden("accounts on this server are created by its operator").WithCode("sign_up_closed")
	case s.Options.SignUp == SignUpInvite && in.Invitation == "":
		return fault.Forbidden("signing up needs an invitation: ask a team for one, and open the link in the email").WithCode("sign_up_invite_only")
	}
	return nil
}

// account checks what was filled in and makes the rows.
func (s *System) account(in SignUp) (NewAccount, error) {
	var wrong []fault.Detail
	note := func(path, message string) { wrong = append(wrong, fault.Detail{Path: path, Message: message}) }
	email, ok := Email(in.Email)
	if !ok {
		note("email", "is not an email address")
	}
	if err := CheckPassword(in.Password); err != nil {
		note("password", err.Error())
	}
	name, ok := line(in.Name)
	if !ok {
		note("name", "needs 1 to 200 characters in one line")
	}
	if len(wrong) > 0 {
		return NewAccount{}, fault.Problems(wrong, "%s %s", wrong[0].Path, wrong[0].Message)
	}
	return NewAccount{
		Account: Account{
			User:         identity.User{ID: ids.NewUser(), Name: name, Email: email},
			PasswordHash: s.Passwords.Hash(in.Password),
		},
		Team:      identity.Team{ID: ids.NewTeam(), Name: name + "'s team", Plan: s.FirstPlan},
		CreatedAt: s.Now(),
	}, nil
}

// line is a name as we keep it: one line of 1 to 200 characters.
func line(text string) (string, bool) {
	text = strings.TrimSpace(text)
	n := utf8.RuneCountInString(text)
	return text, n > 0 && n <= maxName && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// CheckPassword says what is wrong with a new password.
func CheckPassword(password string) error {
	switch {
	case utf8.RuneCountInString(password) < minPassword:
		return errors.New("needs at least 10 characters")
	case len(password) > maxPassword:
		return errors.New("is longer than 1024 bytes")
	}
	return nil
}

// Email is the address in the form we keep: lower case, without a name.
func Email(text string) (email string, ok bool) {
	text = strings.TrimSpace(text)
	a, err := mail.ParseAddress(text)
	if err != nil || a.Address != text || len(text) > maxEmail || strings.ContainsFunc(text, unicode.IsControl) {
		return "", false
	}
	return strings.ToLower(text), true
}

// Guessing is slowed per account and per address; failures count, successes
// do not. Live sessions are not touched by it.
var (
	guessesByAccount = limits.Window{Most: 10, Per: 5 * time.Minute}
	guessesByAddress = limits.Window{Most: 100, Per: 5 * time.Minute}

	// Of a machine that only itself can reach; and for those who were invited,
	// since a class or a lab comes from one address.
	manySignUps = limits.Window{Most: 1000, Per: time.Hour}
	// Of strangers.
	fewSignUps = limits.Window{Most: 10, Per: time.Hour}
)

// signUpRules are what a sign-up counts by.
func (s *System) signUpRules(household string, invited bool) []limits.Rule {
	r := limits.Rule{
		Name: "sign-ups", Bucket: "sign-up " + household, Window: fewSignUps,
		Why: "several accounts were made from your address within an hour; wait, or ask a team for an invitation",
	}
	if s.Private || invited {
		r.Window = manySignUps
	}
	return []limits.Rule{r}
}

// SignIn makes a session for whoever knows the password and, where the
// account has a second factor, a code.
func (s *System) SignIn(ctx context.Context, email, password, code string, v Visit) (SignedIn, error) {
	a, err := s.known(ctx, email, password, v)
	if err != nil {
		return SignedIn{}, err
	}
	if err := s.passFactor(ctx, a.ID, code, v.Household); err != nil {
		return SignedIn{}, err
	}
	return s.open(ctx, a.User, v)
}

func (s *System) open(ctx context.Context, u identity.User, v Visit) (SignedIn, error) {
	session, secret := s.session(u.ID, v)
	if err := s.Store.InsertSession(ctx, session); err != nil {
		return SignedIn{}, err
	}
	return s.signedIn(ctx, u, session, secret)
}

// BeginSignIn is SignIn in two steps: where the account has a second factor it
// gives a slip in place of a session, which FinishSignIn takes with the code.
func (s *System) BeginSignIn(ctx context.Context, email, password string, v Visit) (in SignedIn, slip string, err error) {
	a, err := s.known(ctx, email, password, v)
	if err != nil {
		return in, "", err
	}
	return s.admit(ctx, a, v)
}

// admit lets in whom we know by now, or gives them a slip for the second step.
func (s *System) admit(ctx context.Context, a Account, v Visit) (in SignedIn, slip string, err error) {
	if err = s.passFactor(ctx, a.ID, "", v.Household); errors.Is(err, errSecondFactor) {
		slip, row := s.slip(a.ID, ForSecondFactor, stepLife)
		return in, slip, s.Store.InsertSlip(ctx, row, nil, s.Now())
	}
	if err == nil {
		in, err = s.open(ctx, a.User, v)
	}
	return in, "", err
}

// FinishSignIn makes a session for who has a slip and a code.
func (s *System) FinishSignIn(ctx context.Context, slip, code string, v Visit) (SignedIn, error) {
	row, err := s.Store.Slip(ctx, hashed(slip), ForSecondFactor, s.Now())
	if err != nil {
		return SignedIn{}, orUsed(err)
	}
	if err := s.passFactor(ctx, row.User, code, v.Household); err != nil {
		return SignedIn{}, err
	}
	session, secret := s.session(row.User, v)
	if err := s.Store.Complete(ctx, row.Hash, session); err != nil {
		return SignedIn{}, orUsed(err)
	}
	return s.signedIn(ctx, identity.User{ID: row.User}, session, secret)
}

// known is the account that the password opens.
func (s *System) known(ctx context.Context, email, password string, v Visit) (Account, error) {
	if email == "" || password == "" || len(password) > maxPassword {
		return Account{}, fault.Invalid("give an email address and a password")
	}
	address, isAddress := Email(email)
	var a Account
	err := s.guess(ctx, guessing("account "+hashed(address), v.Household), errCredentials, func() (bool, error) {
		if isAddress {
			var err error
			if a, err = s.Store.Account(ctx, address); err != nil && !fault.Is(err, fault.KindNotFound) {
				return false, err
			}
		}
		return s.Passwords.Match(a.PasswordHash, password) // takes as long when there is nobody
	})
	if err == nil && a.Disabled {
		err = errDisabled
	}
	return a, err
}

var errDisabled = fault.Forbidden("this account is disabled: ask the operator of this server").WithCode("account_disabled")

var errCredentials = fault.Unauthenticated("the email address or the password is wrong").WithCode("wrong_credentials")

// guessing is what guesses at one thing from one address count against.
func guessing(what, household string) map[string]limits.Window {
	return map[string]limits.Window{"guess " + what: guessesByAccount, "guess address " + household: guessesByAddress}
}

// guess counts the attempt before it is made, so that a burst of parallel
// guesses cannot slip through, and takes it back when it was right.
func (s *System) guess(ctx context.Context, buckets map[string]limits.Window, wrong error, right func() (bool, error)) error {
	const wait = "too many failed attempts; wait and try again"
	at := s.Now()
	for bucket, w := range buckets {
		if err := s.takeAt(ctx, bucket, w, at, wait); err != nil {
			return err
		}
	}
	ok, err := right()
	if err != nil {
		return err
	}
	if !ok {
		return wrong
	}
	for bucket := range buckets {
		if err := s.Store.ReturnHit(ctx, bucket, at); err != nil {
			return err
		}
	}
	return nil
}

func (s *System) take(ctx context.Context, bucket string, w limits.Window, message string) error {
	return s.takeAt(ctx, bucket, w, s.Now(), message)
}

func (s *System) takeAt(ctx context.Context, bucket string, w limits.Window, at time.Time, message string) error {
	standing, err := s.Store.TakeHit(ctx, bucket, w, at)
	if err != nil {
		return err
	}
	if !standing.Allowed {
		return fault.Limited(standing.Reset, "%s", message)
	}
	return nil
}
