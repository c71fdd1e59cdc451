package builtin_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/identity/builtin"
)

func TestRulesForNewcomersAreChecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]builtin.Newcomers{
		"off":  {},
		"open": {Anybody: true},
		"":     {},
		"domain=Example.org;group=lab;group=cn=lab,ou=groups;domain=xn--mnchen-3ya.de": {
			Domains: []string{"example.org", "xn--mnchen-3ya.de"}, Groups: []string{"lab", "cn=lab,ou=groups"},
		},
	} {
		var rules []string
		if text != "" {
			rules = strings.Split(text, ";")
		}
		if got, err := builtin.ParseNewcomers(rules); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, wrong := range []string{
		"opne", "open;domain=example.org", "off;off", "domain", "domain=", "domain=example.org.", "domain=.example.org", "domain=@example.org", "domain=*.example.org", "domain=example",
		"domain=m\u00fcnchen.de", "domain=\u212Ait.edu", "domain=u\u017F.edu", "domain=a..b", "domain=-a.de", "domain=a b.de", "group=", "group= lab", "group=a\x00b", "group=" + strings.Repeat("x", 256), "Group=lab",
	} {
		if got, err := builtin.ParseNewcomers(strings.Split(wrong, ";")); err == nil {
			t.Errorf("%q is read as %+v", wrong, got)
		}
	}
}

// An address whose letters become ASCII in lower case would be that of somebody else.
func TestAnAddressOfLookAlikesIsNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"\u212Aim@example.org", "kim@\u212Ait.edu", "L\u0130sa@example.org"} {
		if email, ok := builtin.Email(text); ok {
			t.Errorf("%q is %q", text, email)
		}
	}
	for text, want := range map[string]string{"Kim@Example.ORG": "kim@example.org", "\u00c9mile@example.org": "\u00e9mile@example.org", "u\u017Fer@example.org": "u\u017Fer@example.org"} {
		if email, ok := builtin.Email(text); !ok || email != want {
			t.Errorf("%q is %q, %v", text, email, ok)
		}
	}
}
