// Package groups maps groups that people are in at a provider to teams and roles
// here. What the mapping gave somebody it takes away again; what people gave stays.
package groups

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// Rule gives everybody in a group a role in a team.
type Rule struct {
	Group string
	Team  ids.Team
	Role  access.Role
}

// Mapping is the rules, as an operator has ordered them.
type Mapping []Rule

// mostRules bounds what each sign-in looks at.
const mostRules = 500

// ETag names exactly these rules.
func (m Mapping) ETag() string {
	text, err := json.Marshal(append(Mapping{}, m...))
	if err != nil {
		panic(err) // text only
	}
	sum := sha256.Sum256(text)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// check says everything that is wrong with the rules alone.
func (m Mapping) check() error {
	if len(m) > mostRules {
		return refuse([]fault.Detail{{Path: "rules", Message: fmt.Sprintf("has at most %d rules", mostRules)}})
	}
	var wrong []fault.Detail
	for i, r := range m {
		note := func(field, message string) {
			wrong = append(wrong, fault.Detail{Path: fmt.Sprintf("rules[%d].%s", i, field), Message: message})
		}
		if !builtin.GroupName(r.Group) {
			note("group", fmt.Sprintf("needs 1 to %d bytes in one line, without spaces around", builtin.LongestGroup))
		}
		if !r.Role.Known() {
			note("role", "is none of owner, admin, member, viewer")
		}
		if slices.ContainsFunc(m[:i], func(o Rule) bool { return o.Group == r.Group && o.Team == r.Team }) {
			note("group", "has another rule for this team")
		}
	}
	return refuse(wrong)
}

func refuse(wrong []fault.Detail) error {
	if len(wrong) == 0 {
		return nil
	}
	return fault.Problems(wrong, "%s %s", wrong[0].Path, wrong[0].Message)
}

// NoTeams refuses rules whose teams are not there, by their indexes.
func NoTeams(rules []int) error {
	if len(rules) == 0 {
		return nil
	}
	wrong := make([]fault.Detail, len(rules))
	for i, rule := range rules {
		wrong[i] = fault.Detail{Path: fmt.Sprintf("rules[%d].teamId", rule), Message: "is no team of this installation"}
	}
	return fault.Problems(wrong, "a rule names a team that does not exist: look up its id in the list of teams")
}

// Place is what the mapping gives somebody in a team, and for which group at which
// issuer.
type Place struct {
	Team   ids.Team
	Role   access.Role
	Issuer string
	Group  string
}

// Places are what somebody has by the mapping after a sign-in at an issuer that says in
// which groups they are. Of other issuers it is known only what they gave before: that
// stays as long as its rule does.
func (m Mapping) Places(issuer string, groups []string, before []Place) map[ids.Team]Place {
	places := map[ids.Team]Place{}
	give := func(p Place) {
		if p.Role = Higher(places[p.Team].Role, p.Role); p.Role != places[p.Team].Role {
			places[p.Team] = p
		}
	}
	for _, r := range m {
		if slices.Contains(groups, r.Group) {
			give(Place{r.Team, r.Role, issuer, r.Group})
		}
		for _, b := range before {
			if b.Issuer != issuer && b.Team == r.Team && b.Group == r.Group {
				give(Place{r.Team, r.Role, b.Issuer, b.Group})
			}
		}
	}
	return places
}

// Higher is the one of two roles that allows more; none allows nothing.
func Higher(a, b access.Role) access.Role {
	if b == "" || a != "" && access.Lesser(a, b) == b {
		return a
	}
	return b
}

// Store keeps the mapping.
type Store interface {
	GroupMapping(ctx context.Context) (Mapping, error)
	// ReplaceGroupMapping asks allowed about the present one in its transaction. Rules
	// for teams that are not there are NoTeams.
	ReplaceGroupMapping(ctx context.Context, m Mapping, allowed func(Mapping) error) error
}

// Service is the mapping for operators. Whether somebody is one is asked before.
type Service struct{ store Store }

// NewService makes it.
func NewService(store Store) *Service { return &Service{store} }

// Mapping is the present one.
func (s *Service) Mapping(ctx context.Context) (Mapping, error) { return s.store.GroupMapping(ctx) }

// Replace puts other rules in place of those that one of the ETags names; nil is any. They
// count for each person from their next sign-in on.
func (s *Service) Replace(ctx context.Context, m Mapping, ifMatch []string) error {
	if err := m.check(); err != nil {
		return err
	}
	return s.store.ReplaceGroupMapping(ctx, m, func(now Mapping) error {
		if ifMatch == nil || slices.Contains(ifMatch, "*") || slices.Contains(ifMatch, now.ETag()) {
			return nil
		}
		return fault.Stale("the mapping has changed since you read it: read it again, then repeat your change").WithCode("stale")
	})
}
