package builtin

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/domain/mails"
	"github.com/millrace/millrace/internal/identity"
)

// Stores are what this room asks of the database, by subject. One database is
// all of them.
type Stores struct {
	Accounts      AccountStore
	First         FirstAccountStore
	External      ExternalIdentityStore
	Groups        GroupStore
	Sessions      SessionStore
	Tokens        TokenStore
	Teams         TeamStore
	Invitations   InvitationStore
	Consents      ConsentStore
	Grants        GrantStore
	Devices       DeviceStore
	OneTimeTokens OneTimeTokenStore
	SecondFactors SecondFactorStore
	APITokens     APITokenStore
	Programs      ServiceAccountStore
	Keys          KeyStore
	Limits        LimitStore
}

// AccountStore keeps people.
type AccountStore interface {
	// SignUp adds an account with its own team and first session, and takes
	// up the invitation it names, all or nothing. A taken email address is
	// fault.KindConflict, a token that does not open for this address
	// fault.KindNotFound.
	SignUp(ctx context.Context, a NewAccount) error
	// Account finds a person by email address; nobody is fault.KindNotFound.
	Account(ctx context.Context, email string) (Account, error)
}

// ExternalIdentityStore knows who people are at other providers.
type ExternalIdentityStore interface {
	// AccountByExternalIdentity finds who is linked; nobody is fault.KindNotFound.
	AccountByExternalIdentity(ctx context.Context, e ExternalIdentity) (Account, error)
	// LinkExternalIdentity links whoever has the address, which the provider has
	// verified; nobody is fault.KindNotFound. An account that never proved its
	// address loses its password, second factor, sessions and tokens.
	LinkExternalIdentity(ctx context.Context, e ExternalIdentity, now time.Time) (Account, error)
}

// GroupStore gives people places in teams by their groups at a provider.
type GroupStore interface {
	// ApplyGroups gives somebody who has signed in at an issuer what the operator's
	// mapping gives for these groups, and takes away what it gave and gives no longer.
	ApplyGroups(ctx context.Context, user ids.User, issuer string, groups []string, now time.Time) error
}

// SessionStore keeps sessions. A session that is not there is dead.
type SessionStore interface {
	InsertSession(ctx context.Context, s Session) error
	// PresenceBySecret and PresenceBySession find who a live session belongs
	// to, with all memberships, in one look.
	PresenceBySecret(ctx context.Context, secretHash string, now time.Time) (identity.Presence, error)
	PresenceBySession(ctx context.Context, id ids.Session, now time.Time) (identity.Presence, error)
	TouchSession(ctx context.Context, id ids.Session, now time.Time) error
	Sessions(ctx context.Context, user ids.User, now time.Time) ([]Session, error)
	DeleteSession(ctx context.Context, user ids.User, id ids.Session) error
}

// TeamStore keeps teams and who is in them.
type TeamStore interface {
	InsertTeam(ctx context.Context, t NewTeam) error
	RenameTeam(ctx context.Context, team ids.Team, name string) error
	ActivateTeam(ctx context.Context, session ids.Session, team ids.Team) error
	Members(ctx context.Context, team ids.Team) ([]Member, error)
	// ChangeRole and RemoveMember ask allowed about the member's present role
	// inside the transaction, and refuse with fault.KindConflict to leave a
	// team without an owner.
	ChangeRole(ctx context.Context, team ids.Team, user ids.User, role access.Role, allowed func(access.Role) error) (Member, error)
	RemoveMember(ctx context.Context, team ids.Team, user ids.User, allowed func(access.Role) error) error
}

// InvitationStore keeps invitations with the mails that carry them.
type InvitationStore interface {
	InsertInvitation(ctx context.Context, in SentInvitation) error
	// HeldMails is how many mails of a team wait for limits.
	HeldMails(ctx context.Context, team ids.Team) (int, error)
	// RenewInvitation gives an open invitation another token and mail.
	RenewInvitation(ctx context.Context, in SentInvitation) error
	RevokeInvitation(ctx context.Context, team ids.Team, id ids.Invitation, now time.Time) error
	Invitation(ctx context.Context, team ids.Team, id ids.Invitation) (identity.Invitation, error)
	InvitationByToken(ctx context.Context, tokenHash string) (identity.Invitation, error)
	PendingInvitations(ctx context.Context, team ids.Team, now time.Time) ([]identity.Invitation, error)
	// AcceptInvitation makes the user a member if the invitation is still
	// open, and the team the active one of the session and of the user's later
	// ones; a member stays what they are. One that proves an address verifies
	// the user's.
	AcceptInvitation(ctx context.Context, inv identity.Invitation, user ids.User, session ids.Session, now time.Time) error
}

// ConsentStore keeps what people allow programs.
type ConsentStore interface {
	Client(ctx context.Context, id string) (Client, error)
	InsertClient(ctx context.Context, c Client) error
	Consented(ctx context.Context, user ids.User, client string) (bool, error)
	// InsertCode adds a code and the consent it rests on.
	InsertCode(ctx context.Context, c Code, now time.Time) error
	Apps(ctx context.Context, user ids.User, now time.Time) ([]App, error)
	DeleteConsent(ctx context.Context, user ids.User, client string) error
}

// GrantStore keeps the tokens that came of a consent.
type GrantStore interface {
	// RedeemCode opens a grant for a code that lives and fits. One that was
	// redeemed before ends its grant; that and one nobody knows are
	// fault.KindNotFound.
	RedeemCode(ctx context.Context, codeHash string, fits func(Code) error, t NewTokens) error
	// Rotate replaces a grant's tokens; narrowed says which of its scopes the access
	// token gets. A refresh token that was used before ends its grant; that and one
	// nobody knows are fault.KindNotFound.
	Rotate(ctx context.Context, refreshHash, client string, narrowed func(granted access.ScopeSet) (access.ScopeSet, error), t NewTokens) error
	// EndGrant ends the grant of an access or refresh token, or an API token.
	EndGrant(ctx context.Context, tokenHash, client string) error
}

// TokenStore knows who is behind an access token or an API token.
type TokenStore interface {
	// PresenceByAccess and PresenceByGrant find who a live token or grant
	// belongs to, with all memberships that it reaches.
	PresenceByAccess(ctx context.Context, tokenHash string, now time.Time) (identity.Presence, error)
	PresenceByGrant(ctx context.Context, grant string, now time.Time) (identity.Presence, error)
	TouchAPIToken(ctx context.Context, id, address string, now time.Time) error
}

// DeviceStore keeps the requests of terminals.
type DeviceStore interface {
	InsertDevice(ctx context.Context, d Device) error
	// Device is the open request of a person's code.
	Device(ctx context.Context, userHash string, now time.Time) (Device, error)
	// DecideDevice ends the wait of an open request, with the consent if it
	// is allowed.
	DecideDevice(ctx context.Context, userHash string, user ids.User, allow bool, now time.Time) error
	// PollDevice keeps what poll makes of the request, whatever it says, and
	// opens a grant when it says nothing.
	PollDevice(ctx context.Context, deviceHash, client string, t NewTokens, poll func(Device) (Device, error)) error
}

// OneTimeTokenStore keeps one-time tokens and what they change.
type OneTimeTokenStore interface {
	// InsertOneTimeToken adds a one-time token in place of others for the same, with the mail
	// that carries it.
	InsertOneTimeToken(ctx context.Context, s OneTimeToken, message *mails.Message, now time.Time) error
	// InsertResetToken is InsertOneTimeToken for whoever has the address of the mail. Where
	// that is nobody, or somebody who is shut out, the same work is done, and
	// the mail is void.
	InsertResetToken(ctx context.Context, s OneTimeToken, message mails.Message, now time.Time) error
	// OneTimeToken finds one that still works; none is fault.KindNotFound.
	OneTimeToken(ctx context.Context, hash string, purpose Purpose, now time.Time) (OneTimeToken, error)
	// VerifyEmail and ResetPassword use a one-time token up; none is fault.KindNotFound.
	VerifyEmail(ctx context.Context, tokenHash string, now time.Time) error
	ResetPassword(ctx context.Context, tokenHash, passwordHash string, now time.Time) error
	// ChangePassword ends all sessions but the kept one.
	ChangePassword(ctx context.Context, user ids.User, passwordHash string, keep ids.Session) error
	// Complete uses a one-time token up and adds the session it was for.
	Complete(ctx context.Context, tokenHash string, s Session) error
}

// SecondFactorStore keeps second factors.
type SecondFactorStore interface {
	// PutSecondFactor replaces one that is not on; one that is, is
	// fault.KindConflict.
	PutSecondFactor(ctx context.Context, f SecondFactor) error
	SecondFactor(ctx context.Context, user ids.User) (SecondFactor, error)
	EnableSecondFactor(ctx context.Context, user ids.User, step int64, recoveryHashes []string) error
	DeleteSecondFactor(ctx context.Context, user ids.User) error
	// UseStep and UseRecoveryCode report whether this was the first use.
	UseStep(ctx context.Context, user ids.User, step int64) (bool, error)
	UseRecoveryCode(ctx context.Context, user ids.User, hash string) (bool, error)
}

// APITokenStore keeps what people made for their scripts.
type APITokenStore interface {
	// InsertAPIToken refuses more than most with fault.KindConflict.
	InsertAPIToken(ctx context.Context, t APIToken, most int) error
	APITokens(ctx context.Context, user ids.User, now time.Time) ([]APIToken, error)
	DeleteAPIToken(ctx context.Context, user ids.User, id string) error
	// RotateAPIToken adds t with what the old token of the same person may do,
	// for as long as that was made for, and lets the old one end by a time.
	RotateAPIToken(ctx context.Context, old string, t APIToken, until time.Time, most int) (APIToken, error)
}

// KeyStore keeps the keys that sign session tokens.
type KeyStore interface {
	SigningKeys(ctx context.Context, now time.Time) ([]SigningKey, error)
	// AddSigningKey adds the key unless one already signs from after this
	// time on, so that replicas rotate once.
	AddSigningKey(ctx context.Context, k SigningKey, after time.Time) error
}

// LimitStore counts, across all replicas.
type LimitStore interface {
	identity.Counter
	TakeHit(ctx context.Context, bucket string, w limits.Window, now time.Time) (limits.Result, error)
	ReturnHit(ctx context.Context, bucket string, at time.Time) error
}

// Account is a person with what proves it.
type Account struct {
	identity.User
	PasswordHash string
	Disabled     bool
}

// NewAccount is everything that signing up makes.
type NewAccount struct {
	Account
	Team         identity.Team
	Session      *Session // nil: it is opened later, or an operator makes the account
	External     *ExternalIdentity
	Invitation   string        // the hash of the token that was followed, or empty
	OneTimeToken *OneTimeToken // with Mail: asks them to prove their address
	Mail         mails.Message
	CreatedAt    time.Time

	WaitVerified bool // of Team, as in NewTeam
	First        First
}

// NewTeam is a team with its owner.
type NewTeam struct {
	identity.Team
	Owner        ids.User
	WaitVerified bool // its monthly credits come when the owner's address is verified
	CreatedAt    time.Time
}

// Session is one sign-in of one person in one frontend.
type Session struct {
	ID         ids.Session
	User       ids.User
	SecretHash string
	Origin     string
	UserAgent  string
	Address    string
	CreatedAt  time.Time
	LastSeenAt time.Time
	ExpiresAt  time.Time
}

// Member is somebody in a team.
type Member = identity.Member

// SentInvitation is an invitation with its secret parts.
type SentInvitation struct {
	identity.Invitation
	TokenHash string         // of the link in the mail
	LinkHash  string         // of the link to copy
	Mail      *mails.Message // nil: it is not mailed
	Limits    []limits.Rule  // that the mail waits for; none: it is counted already
	OfList    bool           // one of many, each of which is on record by itself
	SentAt    time.Time
	Once      *access.IdempotencyRecord
}
