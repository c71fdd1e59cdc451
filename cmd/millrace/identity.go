package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"regexp"
	"slices"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/identity/clerk"
	"github.com/millrace/millrace/internal/identity/oidc"
	"github.com/millrace/millrace/internal/store"
)

// people is an identity system that also knows what somebody is in a team.
type people interface {
	identity.System
	RoleOf(ctx context.Context, by ids.Session, team ids.Team) (access.Role, error)
}

// clerkCookie is where Clerk's script keeps the session token.
const clerkCookie = "__session"

// people chooses the identity system. With Clerk our own accounts are closed,
// and the cookie is Clerk's.
func (s *settings) people(own *builtin.System, db *store.DB, c credits.Catalog, origins []string) (system people, accounts *builtin.System, cookie string) {
	if s.Identity != "clerk" {
		return own, own, ""
	}
	plans := []string{string(credits.Free)}
	for _, t := range c.Plans {
		plans = append(plans, string(t.Name))
	}
	return clerk.New(clerk.Options{
		SecretKey: s.ClerkSecretKey, APIURL: s.ClerkAPIURL, FrontendURL: s.ClerkFrontendURL, Origins: origins, Plans: plans,
		Key: db.Key("access tokens of the identity system"), Store: db, Now: db.Now,
	}), nil, clerkCookie
}

// showFirstLink writes the link for the first account to the log, while there is no account.
func (s *settings) showFirstLink(ctx context.Context, own *builtin.System, log *slog.Logger, base string) error {
	if s.Identity == "clerk" {
		return nil
	}
	link, err := own.Accounts.FirstLink(ctx, base)
	if err == nil && link != "" {
		log.WarnContext(ctx, "there is no account yet: the first one operates the installation if it is created on this machine, or by this link", slog.String("link", link))
	}
	return err
}

var providerName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)

// providers are the OIDC providers that the settings name, or everything that
// is wrong with them.
func (s *settings) providers() ([]oidc.Provider, error) {
	var list []oidc.Provider
	var wrong []error
	for setting, of := range map[string]map[string]string{"--oidc-issuers": s.OIDCIssuers, "--oidc-client-ids": s.OIDCClientIDs, "--oidc-client-secrets": s.OIDCSecrets} {
		for _, name := range slices.Sorted(maps.Keys(of)) {
			if !slices.Contains(s.OIDCProviders, name) {
				wrong = append(wrong, fmt.Errorf("%s names %q, which is not in --oidc-providers: add it there, or remove it here", setting, name))
			}
		}
	}
	for _, name := range s.OIDCProviders {
		p := oidc.Provider{Name: name, Issuer: s.OIDCIssuers[name], ClientID: s.OIDCClientIDs[name], ClientSecret: s.OIDCSecrets[name]}
		u, err := url.Parse(p.Issuer)
		switch {
		case !providerName.MatchString(name):
			wrong = append(wrong, fmt.Errorf("--oidc-providers: %q is not a name of small letters and digits", name))
		case err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
			wrong = append(wrong, fmt.Errorf("--oidc-issuers: the issuer of %s must be an https address: %s=https://…", name, name))
		case p.ClientID == "":
			wrong = append(wrong, fmt.Errorf("--oidc-client-ids: %s has none: %s=…", name, name))
		}
		list = append(list, p)
	}
	return list, errors.Join(wrong...)
}

// newcomers are whom --oidc-sign-up admits.
func (s *settings) newcomers() (builtin.Newcomers, error) {
	n, err := builtin.ParseNewcomers(s.OIDCSignUp)
	if err != nil {
		return n, fmt.Errorf("--oidc-sign-up: %w", err)
	}
	return n, nil
}

// signInProblems says what is wrong with who may sign in.
func (s *settings) signInProblems() error {
	_, err := s.newcomers()
	wrong := []error{err}
	if s.PasswordSignIn == "off" && len(s.OIDCProviders) == 0 {
		wrong = append(wrong, errors.New("--password-sign-in off needs --oidc-providers: nobody could sign in"))
	}
	if s.OIDCGroupClaim == "" || len(s.OIDCGroupClaim) > 255 {
		wrong = append(wrong, errors.New("--oidc-group-claim is the name of a claim, such as groups"))
	}
	return errors.Join(wrong...)
}
