package main

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"

	"github.com/millrace/millrace/internal/identity/oidc"
)

var providerName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)

// providers are the OIDC providers that the settings name, or everything that
// is wrong with them.
func (s *settings) providers() ([]oidc.Provider, error) {
	var list []oidc.Provider
	var wrong []error
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
