package oidc

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/millrace/millrace/internal/identity/builtin"
)

// Groups says how providers name the groups of a person.
type Groups struct {
	Claim string

	// Wanted reports whether somebody's groups decide anything. Only then are providers
	// asked for more than what identifies a person.
	Wanted func(context.Context) (bool, error)
}

// ReadGroups has the groups of people read.
func (p *Providers) ReadGroups(g Groups) { p.groups = g }

func (p *Providers) wantsGroups(ctx context.Context) (bool, error) {
	if p.groups.Wanted == nil {
		return false, nil
	}
	return p.groups.Wanted(ctx)
}

// groupScope is the scope that gives the claim, where a provider has one by its name.
func (p *Providers) groupScope(ctx context.Context, one *provider) ([]string, error) {
	var about struct {
		Scopes []string `json:"scopes_supported"`
	}
	if one.known.Claims(&about) != nil || !slices.Contains(about.Scopes, p.groups.Claim) {
		return nil, nil
	}
	wanted, err := p.wantsGroups(ctx)
	if !wanted {
		return nil, err
	}
	return []string{p.groups.Claim}, err
}

// leavesOutGroups reports whether an ID token does not have groups that are wanted.
func (p *Providers) leavesOutGroups(ctx context.Context, said map[string]json.RawMessage) (bool, error) {
	if _, there := said[p.groups.Claim]; there {
		return false, nil
	}
	return p.wantsGroups(ctx)
}

// mostGroups bounds the groups of a person.
const mostGroups = 1000

// groupsIn reads a text or a list of texts, or says why there are no groups. A claim that
// cannot be read, or is too long, names none: a part of it could give somebody too much.
func groupsIn(said map[string]json.RawMessage, claim string) (groups []string, none string) {
	raw, there := said[claim]
	if !there || string(raw) == "null" {
		return nil, fmt.Sprintf("the provider sent no claim %q, which would name them", claim)
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		groups = []string{one}
	} else if json.Unmarshal(raw, &groups) != nil {
		return nil, fmt.Sprintf("the claim %q of the provider is neither a text nor a list of texts", claim)
	}
	if len(groups) > mostGroups {
		return nil, fmt.Sprintf("the provider named more than %d, so none of them count", mostGroups)
	}
	return slices.DeleteFunc(groups, func(name string) bool { return !builtin.GroupName(name) }), ""
}
