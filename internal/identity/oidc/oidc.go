// Package oidc lets people sign in at OpenID Connect providers that an
// institution has already. It only finds out who somebody is there; who that
// is here is left to others.
package oidc

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// Provider is where people may sign in.
type Provider struct {
	Name         string // in our addresses
	Issuer       string
	ClientID     string
	ClientSecret string // empty: a public client
}

// Providers are those that the operator has named.
type Providers struct {
	key    []byte
	now    func() time.Time
	groups Groups
	client *http.Client
	names  []string
	by     map[string]*provider
}

type provider struct {
	Provider
	mu    sync.Mutex
	known *gooidc.Provider // once it has answered
}

// New makes them; key signs what a browser carries between the two steps. No
// provider is asked before somebody wants to sign in there.
func New(list []Provider, key []byte, now func() time.Time) *Providers {
	p := &Providers{key: key, now: now, client: &http.Client{Timeout: 15 * time.Second}, by: map[string]*provider{}}
	for _, one := range list {
		p.names = append(p.names, one.Name)
		p.by[one.Name] = &provider{Provider: one}
	}
	return p
}

// Names are the providers, as the operator has ordered them.
func (p *Providers) Names() []string { return p.names }

// flight is what a sign-in must bring back.
type flight struct {
	Provider string
	State    string
	Nonce    string
	Verifier string
	Next     string
	Expires  time.Time
}

const flightLife = 10 * time.Minute

func (p *Providers) find(ctx context.Context, name, callback string) (*provider, *oauth2.Config, error) {
	one := p.by[name]
	if one == nil {
		return nil, nil, fault.NotFound("there is no sign-in provider with this name")
	}
	known, err := one.discover(gooidc.ClientContext(context.WithoutCancel(ctx), p.client))
	if err != nil {
		return nil, nil, fault.Unavailable("the provider %s does not answer: try again later, or sign in another way", name).WithCause(err)
	}
	scopes := []string{gooidc.ScopeOpenID, "email", "profile"}
	return one, &oauth2.Config{ClientID: one.ClientID, ClientSecret: one.ClientSecret, Endpoint: known.Endpoint(), RedirectURL: callback, Scopes: scopes}, nil
}

func (one *provider) discover(ctx context.Context) (*gooidc.Provider, error) {
	one.mu.Lock()
	defer one.mu.Unlock()
	var err error
	if one.known == nil {
		one.known, err = gooidc.NewProvider(ctx, one.Issuer)
	}
	return one.known, err
}

// Start is where to send a browser, and the cookie that it must bring back.
func (p *Providers) Start(ctx context.Context, name, callback, next string) (address, cookie string, err error) {
	one, config, err := p.find(ctx, name, callback)
	if err != nil {
		return "", "", err
	}
	groups, err := p.groupScope(ctx, one)
	if err != nil {
		return "", "", err
	}
	config.Scopes = append(config.Scopes, groups...)
	f := flight{Provider: name, State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Next: next, Expires: p.now().Add(flightLife)}
	cookie, err = p.pack(f)
	return config.AuthCodeURL(f.State, gooidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), cookie, err
}

// Return is what a browser comes back with.
type Return struct {
	Cookie string
	State  string
	Code   string
	Issuer string // of the answer, where the provider says it
	Error  string
}

// Finish says who has signed in, and where they want to go on to.
func (p *Providers) Finish(ctx context.Context, name, callback string, r Return) (builtin.ExternalIdentity, string, error) {
	var who builtin.ExternalIdentity
	one, config, err := p.find(ctx, name, callback)
	if err != nil {
		return who, "", err
	}
	f, ok := p.unpack(r.Cookie)
	if !ok || f.Provider != name || r.State == "" || !hmac.Equal([]byte(r.State), []byte(f.State)) || !p.now().Before(f.Expires) {
		return who, "", fault.Invalid("this sign-in was not begun in this browser, or it took too long: begin again")
	}
	if r.Error != "" || r.Code == "" {
		return who, "", fault.Unauthenticated("the provider did not sign you in: begin again").WithCode("provider_refused")
	}
	if r.Issuer != "" && r.Issuer != one.Issuer {
		return who, "", errUntrusted(nil)
	}
	ctx = gooidc.ClientContext(ctx, p.client)
	token, err := config.Exchange(ctx, r.Code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return who, "", errUntrusted(err)
	}
	who, err = p.claims(ctx, one, token, f.Nonce)
	return who, f.Next, err
}

func errUntrusted(cause error) error {
	return fault.Unauthenticated("what the provider says cannot be trusted: begin again, and tell the operator if it stays so").WithCode("provider_untrusted").WithCause(cause)
}

// claims checks the ID token and reads who it is about.
func (p *Providers) claims(ctx context.Context, one *provider, token *oauth2.Token, nonce string) (builtin.ExternalIdentity, error) {
	raw, _ := token.Extra("id_token").(string)
	verifier := one.known.VerifierContext(ctx, &gooidc.Config{ClientID: one.ClientID, Now: p.now})
	id, err := verifier.Verify(ctx, raw)
	if err != nil || !hmac.Equal([]byte(id.Nonce), []byte(nonce)) || id.Subject == "" {
		return builtin.ExternalIdentity{}, errUntrusted(err)
	}
	var c profile
	var said map[string]json.RawMessage
	if err := cmp.Or(id.Claims(&c), id.Claims(&said)); err != nil {
		return builtin.ExternalIdentity{}, errUntrusted(err)
	}
	more, err := p.leavesOutGroups(ctx, said)
	if err != nil {
		return builtin.ExternalIdentity{}, err
	}
	if (c.Email == "" || more) && one.known.UserInfoEndpoint() != "" {
		info, err := one.known.UserInfo(ctx, oauth2.StaticTokenSource(token))
		if err == nil && info.Subject == id.Subject {
			// Two tokens may name different addresses: the one of the ID token counts.
			err = cmp.Or(info.Claims(&said), c.complete(info))
		}
		if err != nil {
			return builtin.ExternalIdentity{}, errUntrusted(err)
		}
	}
	who := builtin.ExternalIdentity{Issuer: id.Issuer, Subject: id.Subject, Email: c.Email, EmailVerified: bool(c.EmailVerified), Name: c.Name}
	if p.groups.Claim != "" {
		who.Groups, who.NoGroups = groupsIn(said, p.groups.Claim)
	}
	return who, nil
}

// complete takes from a second answer what the first left out.
func (c *profile) complete(info *gooidc.UserInfo) error {
	if c.Email != "" {
		return nil
	}
	return info.Claims(c)
}

type profile struct {
	Email         string `json:"email"`
	EmailVerified truth  `json:"email_verified"`
	Name          string `json:"name"`
}

// truth is a boolean that some providers write as a text.
type truth bool

func (t *truth) UnmarshalJSON(b []byte) error {
	*t = truth(strings.Trim(string(b), `"`) == "true")
	return nil
}

// pack signs a flight for the browser to carry.
func (p *Providers) pack(f flight) (string, error) {
	text, err := json.Marshal(f)
	body := base64.RawURLEncoding.EncodeToString(text)
	return body + "." + p.mac(body), err
}

func (p *Providers) unpack(cookie string) (f flight, ok bool) {
	body, signature, _ := strings.Cut(cookie, ".")
	if !hmac.Equal([]byte(signature), []byte(p.mac(body))) {
		return f, false
	}
	text, err := base64.RawURLEncoding.DecodeString(body)
	return f, err == nil && json.Unmarshal(text, &f) == nil
}

func (p *Providers) mac(body string) string {
	h := hmac.New(sha256.New, p.key)
	h.Write([]byte("flight " + body))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}
