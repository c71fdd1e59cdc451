// Package clerk is the identity system of installations whose accounts and
// organizations are kept by Clerk. It believes nothing for longer than five
// seconds; what our own tables need of people and teams is copied there.
package clerk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	clerksdk "github.com/clerk/clerk-sdk-go/v2"
	"github.com/clerk/clerk-sdk-go/v2/jwks"
	"github.com/clerk/clerk-sdk-go/v2/jwt"
	"github.com/clerk/clerk-sdk-go/v2/organizationinvitation"
	"github.com/clerk/clerk-sdk-go/v2/organizationmembership"
	"github.com/clerk/clerk-sdk-go/v2/session"
	"github.com/clerk/clerk-sdk-go/v2/user"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
)

// Store copies what Clerk says of people and teams for our own tables.
type Store interface {
	identity.Counter
	// MirrorPerson makes a person, their teams and their place in each what they are
	// at Clerk. A team that is being erased stays so.
	MirrorPerson(ctx context.Context, u identity.User, list []identity.Membership, now time.Time) error
	// OpenTeams are the plans of those of the teams that are not being erased.
	OpenTeams(ctx context.Context, list []ids.Team) (map[ids.Team]string, error)
	// SetPlan puts a team on a plan that is on offer.
	SetPlan(ctx context.Context, team ids.Team, plan credits.Plan, now time.Time) error
}

// Options are what the system is made of.
type Options struct {
	SecretKey   string
	APIURL      string // https://api.clerk.com
	FrontendURL string // the issuer of session tokens
	Origins     []string
	Plans       []string // that we know; the first is everybody's
	Key         []byte   // seals access tokens in what we hand out
	Store       Store
	Now         func() time.Time
}

// System is Clerk as an identity system.
type System struct {
	Options
	backend  clerksdk.Backend
	sessions *session.Client
	users    *user.Client
	members  *organizationmembership.Client
	invites  *organizationinvitation.Client
	jwks     *jwks.Client

	mu       sync.Mutex
	keys     map[string]*clerksdk.JSONWebKey
	askedAt  time.Time // for the keys
	known    map[string]belief
	mirrored map[ids.User]person
}

var _ identity.System = (*System)(nil)

// belief is something that Clerk has confirmed, for a while.
type belief struct {
	who   person
	until time.Time
}

// person is somebody at Clerk.
type person struct {
	User        identity.User
	Memberships []identity.Membership
}

// trust is how long Clerk's word counts without asking again: whoever is signed
// out or removed there is so here after this time.
const trust = 4 * time.Second

// New makes the system; nobody is asked yet.
func New(o Options) *System {
	url := strings.TrimSuffix(o.APIURL, "/") + "/v1"
	config := &clerksdk.ClientConfig{BackendConfig: clerksdk.BackendConfig{
		Key: &o.SecretKey, URL: &url, HTTPClient: &http.Client{Timeout: 10 * time.Second},
	}}
	return &System{
		Options: o, backend: clerksdk.NewBackend(&config.BackendConfig),
		sessions: session.NewClient(config), users: user.NewClient(config), members: organizationmembership.NewClient(config),
		invites: organizationinvitation.NewClient(config), jwks: jwks.NewClient(config),
		keys: map[string]*clerksdk.JSONWebKey{}, known: map[string]belief{}, mirrored: map[ids.User]person{},
	}
}

var errToken = fault.Unauthenticated("the token is invalid, expired or revoked: sign in again").WithCode("invalid_token")

// accessPrefix begins the access tokens of OAuth programs.
const accessPrefix = "oat_"

// Identify says whose credential this is.
func (s *System) Identify(ctx context.Context, c identity.Credential) (identity.Presence, error) {
	switch {
	case strings.HasPrefix(c.Bearer, accessPrefix):
		return s.byAccessToken(ctx, c.Bearer)
	case c.Bearer != "":
		return s.bySessionToken(ctx, c.Bearer, false)
	case c.Cookie != "":
		return s.bySessionToken(ctx, c.Cookie, true)
	}
	return identity.Presence{}, fault.Unauthenticated("sign in first: send a session cookie or a bearer token").WithCode("not_signed_in")
}

// claims are what we read of a session token beyond what the library does.
type claims struct {
	Plan string `json:"pla"` // of the active organization, as o:pro
}

func (s *System) bySessionToken(ctx context.Context, token string, byCookie bool) (identity.Presence, error) {
	extra := &claims{}
	key, err := s.keyOf(ctx, token)
	if err != nil {
		return identity.Presence{}, err
	}
	c, err := jwt.Verify(ctx, &jwt.VerifyParams{
		Token: token, JWK: key, Clock: clock(s.Now), ProxyURL: &s.FrontendURL,
		AuthorizedPartyHandler:  func(azp string) bool { return slices.Contains(s.Origins, azp) },
		CustomClaimsConstructor: func(context.Context) any { return extra },
	})
	if err != nil || c.SessionID == "" || c.Subject == "" {
		return identity.Presence{}, errToken
	}
	p, err := s.Present(ctx, ids.Session(c.SessionID))
	if err != nil {
		return p, err
	}
	if string(p.User.ID) != c.Subject {
		return identity.Presence{}, errToken
	}
	if c.ActiveOrganizationID != "" {
		p.Active = teamOf(c.ActiveOrganizationID)
		if err := s.notePlan(ctx, &p, extra.Plan); err != nil {
			return p, err
		}
	}
	p.ByCookie = byCookie
	return p, nil
}

// notePlan keeps the plan that the token's billing claim gives the active team.
func (s *System) notePlan(ctx context.Context, p *identity.Presence, claim string) error {
	plan, ofTeam := strings.CutPrefix(claim, "o:")
	if !ofTeam || !slices.Contains(s.Plans, plan) {
		return nil
	}
	for i := range p.Memberships {
		t := &p.Memberships[i].Team
		if t.ID == p.Active && t.Plan != plan {
			t.Plan = plan
			return s.Store.SetPlan(ctx, t.ID, credits.Plan(plan), s.Now())
		}
	}
	return nil
}

// keyOf is the published key that signed a token, asked for once; a token of
// nobody's key is a bad one. Keys are not asked for again and again, whatever
// strangers write into their tokens.
func (s *System) keyOf(ctx context.Context, token string) (*clerksdk.JSONWebKey, error) {
	unverified, err := jwt.Decode(ctx, &jwt.DecodeParams{Token: token})
	if err != nil || unverified.KeyID == "" {
		return nil, errToken
	}
	s.mu.Lock()
	key, lately := s.keys[unverified.KeyID], s.Now().Before(s.askedAt.Add(trust))
	s.mu.Unlock()
	if key != nil {
		return key, nil
	}
	if lately {
		return nil, errToken
	}
	set, err := s.jwks.Get(ctx, &jwks.GetParams{})
	if err != nil {
		return nil, unavailable(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.askedAt = s.Now()
	for _, k := range set.Keys {
		s.keys[k.KeyID] = k
	}
	if key = s.keys[unverified.KeyID]; key == nil {
		return nil, errToken
	}
	return key, nil
}

type clock func() time.Time

func (c clock) Now() time.Time { return c() }

// verdict is Clerk's word on an access token.
type verdict struct {
	clerksdk.APIResource
	Subject    string `json:"subject"`
	Revoked    bool   `json:"revoked"`
	Expired    bool   `json:"expired"`
	Expiration *int64 `json:"expiration"` // milliseconds since 1970
}

type verifyParams struct {
	clerksdk.APIParams
	AccessToken string `json:"access_token"`
}

func (s *System) byAccessToken(ctx context.Context, token string) (identity.Presence, error) {
	sum := sha256.Sum256([]byte(token))
	who, err := s.believe(ctx, "token "+hex.EncodeToString(sum[:]), func() (string, time.Time, error) {
		r := clerksdk.NewAPIRequest(http.MethodPost, "/oauth_applications/access_tokens/verify")
		r.SetParams(&verifyParams{AccessToken: token})
		var v verdict
		if err := s.backend.Call(ctx, r, &v); err != nil {
			return "", time.Time{}, refused(err)
		}
		if v.Revoked || v.Expired || v.Subject == "" {
			return "", time.Time{}, errToken
		}
		ends := time.Time{}
		if v.Expiration != nil {
			ends = time.UnixMilli(*v.Expiration)
		}
		return v.Subject, ends, nil
	})
	if err != nil {
		return identity.Presence{}, err
	}
	grant, err := s.seal(token)
	if err != nil {
		return identity.Presence{}, err
	}
	return s.presence(ctx, who, identity.Presence{Grant: grant})
}

// Present is who a session or grant belongs to at this moment, if it lives.
func (s *System) Present(ctx context.Context, by ids.Session) (identity.Presence, error) {
	if !by.Proper() {
		token, err := s.unseal(string(by))
		if err != nil {
			return identity.Presence{}, errToken
		}
		return s.byAccessToken(ctx, token)
	}
	who, err := s.believe(ctx, "session "+string(by), func() (string, time.Time, error) {
		row, err := s.sessions.Get(ctx, string(by))
		if err != nil {
			return "", time.Time{}, refused(err)
		}
		if row.Status != "active" {
			return "", time.Time{}, errToken
		}
		return row.UserID, time.UnixMilli(row.ExpireAt), nil
	})
	if err != nil {
		return identity.Presence{}, err
	}
	return s.presence(ctx, who, identity.Presence{Session: by})
}

// believe asks Clerk who is behind something, unless it has just said so. The
// answer never outlives what it is about.
func (s *System) believe(ctx context.Context, what string, ask func() (userID string, ends time.Time, err error)) (person, error) {
	now := s.Now()
	s.mu.Lock()
	b, found := s.known[what]
	s.mu.Unlock()
	if found && now.Before(b.until) {
		return b.who, nil
	}
	userID, ends, err := ask()
	if err != nil {
		return person{}, err
	}
	who, err := s.person(ctx, userID)
	if err != nil {
		return person{}, err
	}
	until := now.Add(trust)
	if !ends.IsZero() && ends.Before(until) {
		until = ends
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) > 10_000 { // what is old goes with the rest
		clear(s.known)
	}
	s.known[what] = belief{who, until}
	return who, nil
}

// presence adds what our own tables know of the teams.
func (s *System) presence(ctx context.Context, who person, p identity.Presence) (identity.Presence, error) {
	s.mu.Lock()
	same := reflect.DeepEqual(s.mirrored[who.User.ID], who)
	s.mu.Unlock()
	if !same {
		if err := s.Store.MirrorPerson(ctx, who.User, who.Memberships, s.Now()); err != nil {
			return p, err
		}
		s.mu.Lock()
		s.mirrored[who.User.ID] = who
		s.mu.Unlock()
	}
	p.User = who.User
	teams := make([]ids.Team, len(who.Memberships))
	for i, m := range who.Memberships {
		teams[i] = m.Team.ID
	}
	plans, err := s.Store.OpenTeams(ctx, teams)
	for _, m := range who.Memberships {
		if plan, open := plans[m.Team.ID]; open {
			m.Team.Plan = plan
			p.Memberships = append(p.Memberships, m)
		}
	}
	return p, err
}

// refused tells what Clerk does not know from a Clerk that does not answer.
func refused(err error) error {
	if e, ok := errors.AsType[*clerksdk.APIErrorResponse](err); ok && e.HTTPStatusCode >= 400 && e.HTTPStatusCode < 500 && e.HTTPStatusCode != http.StatusTooManyRequests && e.HTTPStatusCode != http.StatusUnauthorized {
		return errToken
	}
	return unavailable(err)
}

func unavailable(err error) error {
	return fault.Unavailable("the identity service does not answer: try again in a moment").WithCode("identity_unavailable").WithCause(err)
}
