package access

import (
	"testing"
)

// A token's scopes narrow its role and never widen it, for every role, action
// and set of scopes.
func TestScopesOnlyNarrow(t *testing.T) {
	t.Parallel()
	scopes := Scopes()
	for role := range allowed {
		for set := range 1 << len(scopes) {
			var given ScopeSet
			for i, s := range scopes {
				if set&(1<<i) != 0 {
					given = append(given, s)
				}
			}
			bare, narrowed := Caller{Role: role}, Caller{Role: role, Scopes: given}
			for action := range allowed[Owner] {
				want := bare.May(action)
				if len(given) > 0 {
					want = want && contains(given, scopeOf[action])
				}
				if got := narrowed.May(action); got != want || got && !bare.May(action) {
					t.Errorf("%s with %v: %s is %t, without %t", role, given, action, got, bare.May(action))
				}
				for i := range given { // fewer scopes never allow more
					fewer := append(append(ScopeSet{}, given[:i]...), given[i+1:]...)
					if len(fewer) > 0 && (Caller{Role: role, Scopes: fewer}).May(action) && !narrowed.May(action) {
						t.Errorf("%s: %v allow %s and %v do not", role, fewer, action, given)
					}
				}
			}
			if back := ParseScopes(given.String()); back.String() != given.String() || !back.Within(given) || !given.Within(nil) {
				t.Errorf("%v became %v", given, back)
			}
		}
	}
}

func contains(set ScopeSet, s Scope) bool {
	for _, one := range set {
		if one == s {
			return true
		}
	}
	return false
}

func TestEveryActionHasAScope(t *testing.T) {
	t.Parallel()
	for action := range allowed[Owner] {
		if only := scopeOf[action] == ScopeReport; scopeOf[action] == "" || only != (action == ReportRuns) {
			t.Errorf("%s has the scope %q", action, scopeOf[action])
		}
	}
	if len(scopeOf) != len(allowed[Owner]) {
		t.Errorf("%d scopes for %d actions", len(scopeOf), len(allowed[Owner]))
	}
}

func TestALesserSetIsWithin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		asked, most ScopeSet
		want        bool
	}{
		{ScopeSet{ScopeRead}, ScopeSet{ScopeRead, ScopeRun}, true},
		{ScopeSet{ScopeAdmin}, ScopeSet{ScopeRead, ScopeRun}, false},
		{nil, ScopeSet{ScopeRead}, false}, // no bound is more than any
		{nil, nil, true},
	} {
		if got := tt.asked.Within(tt.most); got != tt.want {
			t.Errorf("%v within %v: %t", tt.asked, tt.most, got)
		}
	}
}
