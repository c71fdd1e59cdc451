package oidc_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/identity/oidc"
)

func wanted(yes bool) oidc.Groups {
	return oidc.Groups{Claim: "groups", Wanted: func(context.Context) (bool, error) { return yes, nil }}
}

func numbered(n int) (list []string) {
	for i := range n {
		list = append(list, strconv.Itoa(i))
	}
	return list
}

// Groups come as a text or a list. What cannot be read, or is too long, is no group, and the
// reason is there for whoever is refused for it.
func TestGroupsAreReadFromAClaim(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		claim any
		want  []string
		why   string
	}{
		"a list":                {[]string{"lab", "cn=lab,ou=groups"}, []string{"lab", "cn=lab,ou=groups"}, ""},
		"a text":                {"lab", []string{"lab"}, ""},
		"no group":              {[]string{}, nil, ""},
		"no claim":              {nil, nil, "no claim"},
		"a number":              {7, nil, "neither"},
		"a list with a number":  {[]any{"lab", 7}, nil, "neither"},
		"an object":             {map[string]any{"lab": true}, nil, "neither"},
		"as many as may be":     {numbered(1000), numbered(1000), ""},
		"too many":              {numbered(1001), nil, "more than 1000"},
		"names that are none":   {[]string{"lab", "", " lab", "a\nb", "a\x00b", strings.Repeat("x", 256)}, []string{"lab"}, ""},
		"a name with lookalike": {[]string{"\u212Aim"}, []string{"\u212Aim"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInstitute(t)
			i.claims["groups"] = tt.claim
			p := i.begins(t)
			p.ReadGroups(wanted(true))
			who, _, err := p.comesBack(nil)
			if err != nil || !slices.Equal(who.Groups, tt.want) || !strings.Contains(who.NoGroups, tt.why) || (tt.why == "") != (who.NoGroups == "") {
				t.Errorf("%q, %q, %v", who.Groups, who.NoGroups, err)
			}
		})
	}
}

// A provider is asked for groups that it does not send by itself only where they decide
// something, and what it says must be about the same person.
func TestGroupsAreAskedForWhereTheyCount(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		wanted bool
		info   map[string]any
		groups []string
		email  string
		fails  bool
	}{
		"wanted":            {true, map[string]any{"sub": "person-1", "groups": []string{"lab"}, "email": "eve@example.org"}, []string{"lab"}, "ada@example.org", false},
		"not wanted":        {false, map[string]any{"sub": "person-1", "groups": []string{"lab"}}, nil, "ada@example.org", false},
		"of somebody else":  {true, map[string]any{"sub": "person-2", "groups": []string{"lab"}}, nil, "ada@example.org", false},
		"no proper answer":  {true, map[string]any{"sub": 7}, nil, "", true},
		"no such claim":     {true, map[string]any{"sub": "person-1"}, nil, "ada@example.org", false},
		"a claim of nobody": {true, map[string]any{"groups": []string{"lab"}}, nil, "ada@example.org", false},
	} {
		i := newInstitute(t)
		i.info = tt.info
		p := i.begins(t)
		p.ReadGroups(wanted(tt.wanted))
		who, _, err := p.comesBack(nil)
		if (err != nil) != tt.fails || who.Email != tt.email || !slices.Equal(who.Groups, tt.groups) {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
}

func TestTheScopeOfGroupsIsAskedForWhereThereIsOne(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		scopes []string
		wanted bool
		want   string
	}{
		{[]string{"openid", "groups"}, true, "openid email profile groups"},
		{[]string{"openid", "groups"}, false, "openid email profile"},
		{[]string{"openid"}, true, "openid email profile"},
		{nil, true, "openid email profile"},
	} {
		i := newInstitute(t)
		i.scopes = tt.scopes
		p := i.begins(t)
		p.ReadGroups(wanted(tt.wanted))
		address, _, err := p.Start(t.Context(), "institute", callback, "/")
		if err != nil || !strings.Contains(address, "scope="+strings.ReplaceAll(tt.want, " ", "+")+"&") {
			t.Errorf("%v: %s, %v", tt, address, err)
		}
	}
}
