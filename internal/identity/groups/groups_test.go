package groups_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity/groups"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

const here, elsewhere = "https://login.example.org", "https://other.example.org"

// bench is a team of ada's, and eve, who signs in at a provider.
type bench struct {
	*groups.Service
	t        *testing.T
	db       *store.DB
	clock    *storetest.Clock
	ada, eve access.Caller
}

func each(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		test(t, &bench{Service: groups.NewService(db), t: t, db: db, clock: storetest.NewClock(), ada: storetest.Owner(t, db, "ada"), eve: storetest.Owner(t, db, "eve")})
	})
}

func (b *bench) rules(m ...groups.Rule) {
	b.t.Helper()
	if err := b.Replace(b.t.Context(), m, nil); err != nil {
		b.t.Fatal(err)
	}
}

// signsIn says in which groups eve is.
func (b *bench) signsIn(issuer string, in ...string) {
	b.t.Helper()
	if err := b.db.ApplyGroups(b.t.Context(), b.eve.User, issuer, in, b.clock.Now()); err != nil {
		b.t.Fatal(err)
	}
}

// is fails unless somebody has this role in ada's team; an empty one is none.
func (b *bench) is(who access.Caller, want access.Role) {
	b.t.Helper()
	members, err := b.db.Members(b.t.Context(), b.ada.Team)
	if err != nil {
		b.t.Fatal(err)
	}
	var got access.Role
	for _, m := range members {
		if m.ID == who.User {
			got = m.Role
		}
	}
	if got != want {
		b.t.Errorf("%s is %q, want %q", who.Name, got, want)
	}
}

func (b *bench) changes(who access.Caller, to access.Role) error {
	_, err := b.db.ChangeRole(b.t.Context(), b.ada.Team, who.User, to, func(access.Role) error { return nil })
	return err
}

func TestTheMappingGivesAndTakesAway(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.signsIn(here, "lab")
		b.is(b.eve, "")
		b.rules(groups.Rule{Group: "lab", Team: b.ada.Team, Role: access.Member}, groups.Rule{Group: "heads", Team: b.ada.Team, Role: access.Admin})
		b.is(b.eve, "") // until the next sign-in
		b.signsIn(here, "Lab", "lab ")
		b.is(b.eve, "")
		b.signsIn(here, "other", "lab")
		b.is(b.eve, access.Member)
		b.signsIn(here, "heads", "lab") // the higher of the two
		b.is(b.eve, access.Admin)
		b.signsIn(here, "lab")
		b.is(b.eve, access.Member)
		b.signsIn(elsewhere) // knows nothing of the groups there
		b.is(b.eve, access.Member)
		b.signsIn(here)
		b.is(b.eve, "")
		b.signsIn(here, "lab")
		b.rules(groups.Rule{Group: "heads", Team: b.ada.Team, Role: access.Admin})
		b.is(b.eve, access.Member)
		b.signsIn(elsewhere) // the rule is gone
		b.is(b.eve, "")
		b.signsIn(here, "heads")
		b.rules()
		b.signsIn(here, "heads")
		b.is(b.eve, "")
		var did []string
		list, err := b.db.AuditEntries(t.Context(), string(b.ada.Team), audit.Filter{}, 100)
		for _, e := range list {
			did = append([]string{fmt.Sprint(e.Action, " ", e.TargetName, " ", e.Actor.Type, " ", e.Actor.Name)}, did...)
			if e.Target != string(b.eve.User) {
				t.Errorf("%+v", e)
			}
		}
		const by = " eve system group mapping"
		want := []string{
			"member.joined" + by, "member.role_changed" + by, "member.role_changed" + by, "member.removed" + by, "member.joined" + by, "member.removed" + by,
			"member.joined" + by, "member.removed" + by,
		}
		if diff := cmp.Diff(want, did); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}

func TestWhatPeopleGaveStays(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		rule := groups.Rule{Group: "lab", Team: b.ada.Team, Role: access.Member}
		b.rules(rule)
		bob := storetest.Join(t, b.db, b.ada, "bob", access.Viewer)
		b.eve = bob
		b.signsIn(here, "lab") // raises
		b.is(bob, access.Member)
		b.signsIn(here) // and lowers to what it was
		b.is(bob, access.Viewer)
		b.signsIn(here, "lab")
		if err := b.changes(bob, access.Admin); err != nil { // by people
			t.Fatal(err)
		}
		b.signsIn(here, "lab")
		b.is(bob, access.Admin)
		b.signsIn(here)
		b.is(bob, access.Admin)
		if err := b.changes(bob, access.Viewer); err != nil {
			t.Fatal(err)
		}
		b.signsIn(here, "lab")
		b.is(bob, access.Member)
		if err := b.db.RemoveMember(t.Context(), b.ada.Team, bob.User, func(access.Role) error { return nil }); err != nil {
			t.Fatal(err)
		}
		b.signsIn(here)
		b.is(bob, "")
	})
}

// Who accepts an invitation while a group has them in the team stays in it without.
func TestAnInvitationOutlivesAGroup(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.rules(groups.Rule{Group: "lab", Team: b.ada.Team, Role: access.Admin})
		storetest.JoinAfter(t, b.db, b.ada, b.eve, access.Viewer, func() { b.signsIn(here, "lab") })
		b.is(b.eve, access.Admin)
		b.signsIn(here)
		b.is(b.eve, access.Viewer)
	})
}

func TestTheMappingLeavesATeamAnOwner(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.rules(groups.Rule{Group: "heads", Team: b.ada.Team, Role: access.Owner}, groups.Rule{Group: "lab", Team: b.ada.Team, Role: access.Member})
		b.signsIn(here, "heads")
		if err := b.changes(b.ada, access.Member); err != nil {
			t.Fatal(err)
		}
		b.signsIn(here)
		b.is(b.eve, access.Owner)
		b.signsIn(here, "lab")
		b.is(b.eve, access.Owner)
		if err := b.changes(b.ada, access.Owner); err != nil {
			t.Fatal(err)
		}
		b.signsIn(here, "lab")
		b.is(b.eve, access.Member)
		b.signsIn(here)
		b.is(b.eve, "")
	})
}

// Nobody leaves the team that two last owners lose in the same moment.
func TestTwoLastOwnersDoNotGoAtOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.rules(groups.Rule{Group: "heads", Team: b.ada.Team, Role: access.Owner})
		b.signsIn(here, "heads")
		bob := storetest.Owner(t, b.db, "bob")
		apply := func(who access.Caller, in ...string) error {
			return b.db.ApplyGroups(t.Context(), who.User, here, in, b.clock.Now())
		}
		if err := errors.Join(apply(bob, "heads"), b.changes(b.ada, access.Viewer)); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- apply(bob) }()
		if err := errors.Join(apply(b.eve), <-done); err != nil {
			t.Fatal(err)
		}
		members, err := b.db.Members(t.Context(), b.ada.Team)
		owners := 0
		for _, m := range members {
			if m.Role == access.Owner {
				owners++
			}
		}
		if err != nil || owners != 1 {
			t.Errorf("%d owners, %v", owners, err)
		}
	})
}

func TestRulesAreChecked(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ok := groups.Rule{Group: "lab", Team: b.ada.Team, Role: access.Member}
		for path, m := range map[string]groups.Mapping{
			"rules[0].group":  {{Group: "", Team: b.ada.Team, Role: access.Member}},
			"rules[1].group":  {ok, {Group: "lab", Team: b.ada.Team, Role: access.Admin}},
			"rules[0].role":   {{Group: "lab", Team: b.ada.Team, Role: "boss"}},
			"rules[1].teamId": {ok, {Group: "lab", Team: ids.NewTeam(), Role: access.Member}},
			"rules":           make(groups.Mapping, 501),
		} {
			err := b.Replace(t.Context(), m, nil)
			if e, is := errors.AsType[*fault.Error](err); !is || e.Kind != fault.KindInvalid || len(e.Details) != 1 || e.Details[0].Path != path {
				t.Errorf("%s: %v", path, err)
			}
		}
		for _, name := range []string{" lab", "a\x00b", "a\nb", strings.Repeat("x", 256), "\xff"} {
			if err := b.Replace(t.Context(), groups.Mapping{{Group: name, Team: b.ada.Team, Role: access.Member}}, nil); !fault.Is(err, fault.KindInvalid) {
				t.Errorf("%q: %v", name, err)
			}
		}
		empty := groups.Mapping(nil).ETag()
		if err := b.Replace(t.Context(), groups.Mapping{ok}, []string{empty}); err != nil {
			t.Fatal(err)
		}
		if err := b.Replace(t.Context(), nil, []string{empty}); !fault.Is(err, fault.KindStale) {
			t.Errorf("%v", err)
		}
		if m, err := b.Mapping(t.Context()); err != nil || !cmp.Equal(m, groups.Mapping{ok}) {
			t.Errorf("%v, %v", m, err)
		}
		if err := b.Replace(t.Context(), nil, []string{"*"}); err != nil {
			t.Error(err)
		}
	})
}
