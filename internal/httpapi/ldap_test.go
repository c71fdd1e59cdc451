package httpapi_test

import (
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// People of an LDAP directory come in through the real Dex, by their groups there.
func TestPeopleOfAnLDAPDirectorySignInThroughDex(t *testing.T) {
	t.Parallel()
	issuer := os.Getenv("MILLRACE_TEST_DEX")
	if issuer == "" {
		t.Skip("MILLRACE_TEST_DEX is not set: `make test-ldap` starts Dex and a directory")
	}
	h := houseWith(t, issuer, func(_ *httpapi.Options, o *builtin.Options) {
		o.NoPasswords, o.SignUp, o.Newcomers = true, builtin.SignUpClosed, builtin.Newcomers{Groups: []string{"lab"}}
	})
	come := func(login, password string) reply {
		to, flight := h.begin("/")
		if !strings.Contains(to.Query().Get("scope"), "groups") {
			t.Errorf("asks for %s", to.Query().Get("scope"))
		}
		p := openAt(t, to)
		away := p.submit(url.Values{"login": {login}, "password": {password}})
		if away == nil {
			t.Fatalf("not sent home from %s: %s", p.at, p.body)
		}
		return h.back(away.RawQuery, flight)
	}
	me := h.call("GET", "/api/me", "", cookie(come("ada", "lovelace").want(303).newSession())).want(200)
	if me.text("data", "email") != "ada@example.org" || me.text("data", "name") != "Ada Lovelace" {
		t.Error(me.body)
	}
	come("eve", "moneypenny").wantCode(403, "not_admitted")
}
