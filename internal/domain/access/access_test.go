package access

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
)

var ranks = []Role{Viewer, Member, Admin, Owner}

// Each role may do all that those below it may, and something else.
func TestRolesAreWithinOneAnother(t *testing.T) {
	t.Parallel()
	for i, lower := range ranks[:len(ranks)-1] {
		higher := ranks[i+1]
		for action := range allowed[lower] {
			if !higher.May(action) {
				t.Errorf("%s may %s, %s may not", lower, action, higher)
			}
		}
		if len(allowed[higher]) <= len(allowed[lower]) {
			t.Errorf("%s may no more than %s", higher, lower)
		}
	}
	for _, stranger := range []Role{"", "Owner", "root", GuestViewer} {
		for action := range allowed[Owner] {
			if stranger.May(action) {
				t.Errorf("%q may %s", stranger, action)
			}
		}
	}
	for action := range allowed[GuestEditor] {
		if action != StartRuns {
			t.Errorf("a guest may %s", action)
		}
	}
}

func TestTheLesserOfTwoRoles(t *testing.T) {
	t.Parallel()
	for i, a := range ranks {
		for j, b := range ranks {
			if got := Lesser(a, b); got != ranks[min(i, j)] {
				t.Errorf("of %s and %s it is %s", a, b, got)
			}
		}
		if got := Lesser(a, ""); got != a {
			t.Errorf("of %s without a bound it is %s", a, got)
		}
		if !a.Known() {
			t.Errorf("%s is not known", a)
		}
	}
	for _, r := range []Role{"", "OWNER", GuestEditor, "king"} {
		if r.Known() {
			t.Errorf("%q is known", r)
		}
	}
}

func TestARefusalSaysWhetherTheRoleOrTheTokenIsTheReason(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		caller Caller
		action Action
		code   string // none: it may
		says   string
	}{
		"a member starts runs":              {Caller{Role: Member}, StartRuns, "none", ""},
		"a viewer does not":                 {Caller{Role: Viewer}, StartRuns, "", "your role in this team (viewer) does not let you start runs"},
		"a token that may":                  {Caller{Role: Member, Scopes: ScopeSet{ScopeRun}}, StartRuns, "none", ""},
		"a token that may not":              {Caller{Role: Owner, Scopes: ScopeSet{ScopeRead, ScopeReport}}, StartRuns, "insufficient_scope", "the scopes of your token (read report) do not let it start runs"},
		"a token beyond the role":           {Caller{Role: Viewer, Scopes: ScopeSet{ScopeAdmin}}, ManageBilling, "", "your role"},
		"a scope that nobody knows":         {Caller{Role: Owner, Scopes: ScopeSet{"all"}}, Read, "insufficient_scope", "all"},
		"nobody":                            {Caller{}, Read, "", "your role"},
		"a guest starts runs":               {Caller{Role: GuestEditor, Guest: &Guest{ID: "guest_1"}}, StartRuns, "none", ""},
		"a guest does not read the team's":  {Caller{Role: GuestEditor, Guest: &Guest{ID: "guest_1"}}, Read, "", "your role"},
		"an action that is none of a table": {Caller{Role: Owner}, "fly", "", "fly"},
	} {
		err := tt.caller.Must(tt.action)
		if tt.code == "none" {
			if err != nil || !tt.caller.May(tt.action) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		f, _ := err.(*fault.Error)
		if f == nil || f.Kind != fault.KindForbidden || f.Code != tt.code || !strings.Contains(f.Message, tt.says) {
			t.Errorf("%s: %+v", name, err)
		}
	}
}

func TestTheLeastRoleThatScopesNeed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Role{
		"": Member, "read": Viewer, "run": Member, "write": Member, "report": Member, "read run": Member, "admin": Admin, "read admin": Admin,
	} {
		scopes := ParseScopes(text)
		if scopes.Needs() != want || scopes.String() != text {
			t.Errorf("%q needs %s, and is kept as %q", text, scopes.Needs(), scopes)
		}
	}
}

func TestAGuestIsNotTheMemberWhoInvitedThem(t *testing.T) {
	t.Parallel()
	if got := (Caller{User: "user_1", Guest: &Guest{ID: "guest_1"}}).Subject(); got != "guest_1" {
		t.Errorf("a guest is %s", got)
	}
	if got := (Caller{User: "user_1"}).Subject(); got != "user_1" {
		t.Errorf("a member is %s", got)
	}
}
