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
	Origin       string // the frontend's origin
	UserAgent    string
	Address      string
	ClientPrefix string // the address as it is counted
	Direct       bool   // from this very machine, and through no proxy

	// Counted is told where they stand with the limits; may be nil.
	Counted limits.Report
}

// SignUp is what a newcomer fills in.
type SignUp struct {
	Email      string
	Password   string
	Name       string
	Invitation string // the token of an invitation that was followed
	FirstToken string // of the link for the first account, if it was followed

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

// Accounts lets people sign up and in.
type Accounts struct {
	accounts    AccountStore
	first       FirstAccountStore
	external    ExternalIdentityStore
	groups      GroupStore
	tokens      OneTimeTokenStore
	sessions    *Sessions
	factors     *SecondFactors
	invitations *Invitations
	credentials credentials
	policy      policy
	limiter     limiter
	post        Post
	now         func() time.Time
}

// SignUp makes an account, its own team and a session.
func (s *Accounts) SignUp(ctx context.Context, in SignUp, v Visit) (SignedIn, error) {
	if err := s.policy.passwords(); err != nil {
		return SignedIn{}, err
	}
	if in.FirstToken == "" {
		if err := s.policy.maySignUp(in); err != nil {
			return SignedIn{}, err
		}
	}
	if err := s.limiter.count(ctx, s.signUpRules(v.ClientPrefix, in.Invitation != ""), v.Counted); err != nil {
		return SignedIn{}, err
	}
	first, err := s.asFirst(ctx, in.FirstToken, v)
	if err != nil {
		return SignedIn{}, err
	}
	a, err := s.account(in)
	if err != nil {
		return SignedIn{}, err
	}
	a.First = first
	session, secret := s.sessions.session(a.ID, v)
	a.Session = &session
	if in.Invitation != "" {
		inv, err := s.invitations.Find(ctx, in.Invitation)
		if err != nil {
			return SignedIn{}, signUpFault(err)
		}
		a.Invitation, a.EmailVerified = hashed(in.Invitation), inv.Proves
	}
	if !a.EmailVerified && in.VerifyLink != nil {
		oneTime, message := verification(a.User, in.VerifyLink, s.now())
		a.OneTimeToken, a.Mail = &oneTime, message
	}
	a.WaitVerified = s.policy.waitsVerified(a.User)
	if err := s.accounts.SignUp(ctx, a); err != nil {
		return SignedIn{}, signUpFault(err)
	}
	if a.OneTimeToken != nil {
		s.post.SendNow(ctx)
	}
	return s.sessions.signedIn(ctx, a.User, session, secret)
}

// Create makes an account for somebody, as an operator does, who
// vouches for the address.
func (s *Accounts) Create(ctx context.Context, in SignUp) (identity.User, error) {
	a, err := s.account(in)
	if err != nil {
		return identity.User{}, err
	}
	a.EmailVerified = true
	return a.User, signUpFault(s.accounts.SignUp(ctx, a))
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

// account checks what was filled in and makes the rows.
func (s *Accounts) account(in SignUp) (NewAccount, error) {
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
			PasswordHash: s.credentials.passwords.Hash(in.Password),
		},
		Team:      identity.Team{ID: ids.NewTeam(), Name: name + "'s team", Plan: s.policy.firstPlan},
		CreatedAt: s.now(),
	}, nil
}

// line is a name as we keep it: one line of 1 to 200 characters.
func line(text string) (string, bool) {
	text = strings.TrimSpace(text)
	n := utf8.RuneCountInString(text)
	return text, n > 0 && n <= maxName && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp) // which end lines, too
	})
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
	if err != nil || a.Address != text || len(text) > maxEmail || strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) || r > unicode.MaxASCII && unicode.ToLower(r) <= unicode.MaxASCII // such as the Kelvin sign: another address would be this one
	}) {
		return "", false
	}
	return strings.ToLower(text), true
}

var (
	// Of a machine that only itself can reach; and for those who were invited,
	// since a class or a lab comes from one address.
	manySignUps = limits.Window{Most: 1000, Per: time.Hour}
	// Of strangers.
	fewSignUps = limits.Window{Most: 10, Per: time.Hour}
)

// signUpRules are what a sign-up counts by.
func (s *Accounts) signUpRules(clientPrefix string, invited bool) []limits.Rule {
	r := limits.Rule{
		Name: "sign-ups", Bucket: "sign-up " + clientPrefix, Window: fewSignUps,
		Why: "too many accounts were created from your address within an hour; wait, or ask a team for an invitation",
	}
	if s.policy.private || invited {
		r.Window = manySignUps
	}
	return []limits.Rule{r}
}

// SignIn makes a session for whoever knows the password and, where the
// account has a second factor, a code.
func (s *Accounts) SignIn(ctx context.Context, email, password, code string, v Visit) (SignedIn, error) {
	a, err := s.credentials.match(ctx, email, password, v)
	if err != nil {
		return SignedIn{}, err
	}
	if err := s.factors.require(ctx, a.ID, code, v.ClientPrefix); err != nil {
		return SignedIn{}, err
	}
	if err := s.takeSignIn(ctx, a.ID); err != nil {
		return SignedIn{}, err
	}
	return s.sessions.open(ctx, a.User, v)
}

// signInsByAccount bounds the sessions, and entries of the audit log, that an account can make.
var signInsByAccount = limits.Window{Most: 5000, Per: time.Hour}

// takeSignIn counts a sign-in of who has proven who they are: nobody else can use it up.
func (s *Accounts) takeSignIn(ctx context.Context, user ids.User) error {
	return s.limiter.take(ctx, "sign-ins "+string(user), signInsByAccount, "you have signed in 5,000 times within an hour; wait and try again")
}

// BeginSignIn is SignIn in two steps: where the account has a second factor it
// gives a one-time token in place of a session, which FinishSignIn takes with the code.
func (s *Accounts) BeginSignIn(ctx context.Context, email, password string, v Visit) (in SignedIn, oneTime string, err error) {
	a, err := s.credentials.match(ctx, email, password, v)
	if err != nil {
		return in, "", err
	}
	return s.admit(ctx, a, v)
}

// admit lets in whom we know by now, or gives them a one-time token for the second step.
func (s *Accounts) admit(ctx context.Context, a Account, v Visit) (in SignedIn, oneTime string, err error) {
	if err = s.factors.require(ctx, a.ID, "", v.ClientPrefix); errors.Is(err, errSecondFactor) {
		oneTime, row := newOneTimeToken(a.ID, ForSecondFactor, s.now().Add(stepLife))
		return in, oneTime, s.tokens.InsertOneTimeToken(ctx, row, nil, s.now())
	}
	if err == nil {
		err = s.takeSignIn(ctx, a.ID)
	}
	if err == nil {
		in, err = s.sessions.open(ctx, a.User, v)
	}
	return in, "", err
}

// FinishSignIn makes a session for who has a one-time token and a code.
func (s *Accounts) FinishSignIn(ctx context.Context, oneTime, code string, v Visit) (SignedIn, error) {
	row, err := s.tokens.OneTimeToken(ctx, hashed(oneTime), ForSecondFactor, s.now())
	if err != nil {
		return SignedIn{}, orUsed(err)
	}
	if err := s.factors.require(ctx, row.User, code, v.ClientPrefix); err != nil {
		return SignedIn{}, err
	}
	if err := s.takeSignIn(ctx, row.User); err != nil {
		return SignedIn{}, err
	}
	session, secret := s.sessions.session(row.User, v)
	if err := s.tokens.Complete(ctx, row.Hash, session); err != nil {
		return SignedIn{}, orUsed(err)
	}
	return s.sessions.signedIn(ctx, identity.User{ID: row.User}, session, secret)
}
