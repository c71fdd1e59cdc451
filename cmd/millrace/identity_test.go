package main

import (
	"strings"
	"testing"
)

func TestIdentityIsChosenBySettings(t *testing.T) {
	t.Parallel()
	for _, bad := range []struct {
		args []string
		want string
	}{
		{[]string{"--identity", "clerk"}, "--clerk-secret-key"},
		{[]string{"--identity", "clerk", "--clerk-secret-key", "sk", "--clerk-frontend-url", "clerk.example.org"}, "--clerk-frontend-url"},
		{[]string{"--oidc-providers", "orcid"}, "--oidc-issuers"},
		{[]string{"--oidc-providers", "orcid", "--oidc-issuers", "orcid=http://orcid.org"}, "https"},
		{[]string{"--oidc-providers", "orcid", "--oidc-issuers", "orcid=https://orcid.org"}, "--oidc-client-ids"},
		{[]string{"--oidc-providers", "Big Name"}, "--oidc-providers"},
		{[]string{"--password-sign-in", "off"}, "--password-sign-in off needs --oidc-providers"},
		{[]string{"--oidc-sign-up", "open,domain=example.org"}, "--oidc-sign-up"},
		{[]string{"--oidc-sign-up", "domain=münchen.de"}, "--oidc-sign-up"},
		{[]string{"--oidc-group-claim", ""}, "--oidc-group-claim"},
	} {
		out, err := millrace(t, append([]string{"serve"}, bad.args...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), bad.want) {
			t.Errorf("%v: %v %s", bad.args, err, out)
		}
	}
	s := start(t, "--data", t.TempDir(), "--identity", "clerk", "--clerk-secret-key", "sk_test_x", "--clerk-frontend-url", "https://clerk.example.org",
		"--clerk-api-url", "http://127.0.0.1:1")
	s.want(404, "POST", "/auth/sign-in", `{"email":"a@b.c","password":"correct horse"}`)
	s.want(503, "GET", "/api/me", "", "Authorization", "Bearer oat_x")
	s.want(401, "GET", "/api/me", "")
	s.want(200, "GET", "/api/health/ready", "")
	p := start(t, "--data", t.TempDir(), "--oidc-providers", "lab", "--oidc-issuers", "lab=http://127.0.0.1:1", "--oidc-client-ids", "lab=millrace")
	p.want(503, "GET", "/auth/oidc/lab/start", "")
	p.want(404, "GET", "/auth/oidc/other/start", "")
	off := start(t, "--data", t.TempDir(), "--oidc-providers", "lab", "--oidc-issuers", "lab=http://127.0.0.1:1", "--oidc-client-ids", "lab=millrace", "--password-sign-in", "off",
		"--oidc-sign-up", `domain=example.org,group=cn=lab\,ou=groups`)
	off.want(403, "POST", "/auth/sign-in", `{"email":"a@b.c","password":"correct horse"}`)
}
