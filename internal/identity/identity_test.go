package identity_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/identity"
)

func inTeams(list ...ids.Team) (all []identity.Membership) {
	for _, id := range list {
		all = append(all, identity.Membership{Team: identity.Team{ID: id}, Role: access.Member})
	}
	return all
}

func TestARequestIsForOneOfThePersonsTeams(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		p      identity.Presence
		wanted ids.Team
		want   ids.Team
		code   string
	}{
		"the first":                            {identity.Presence{Memberships: inTeams("a", "b")}, "", "a", ""},
		"the wanted one":                       {identity.Presence{Memberships: inTeams("a", "b")}, "b", "b", ""},
		"another's":                            {identity.Presence{Memberships: inTeams("a", "b")}, "c", "", "not_a_member"},
		"the session's choice":                 {identity.Presence{Memberships: inTeams("a", "b"), ByCookie: true, Active: "b"}, "", "b", ""},
		"the wanted one before the choice":     {identity.Presence{Memberships: inTeams("a", "b"), ByCookie: true, Active: "b"}, "a", "a", ""},
		"a choice that they left":              {identity.Presence{Memberships: inTeams("a", "b"), ByCookie: true, Active: "c"}, "", "a", ""},
		"no choice":                            {identity.Presence{Memberships: inTeams("a", "b"), ByCookie: true}, "", "a", ""},
		"a choice that no browser made":        {identity.Presence{Memberships: inTeams("a", "b"), Active: "b"}, "", "a", ""},
		"none, of nobody":                      {identity.Presence{}, "", "", "no_team"},
		"none, of nobody, by cookie":           {identity.Presence{ByCookie: true, Active: "a"}, "", "", "no_team"},
		"one that is wanted, of nobody":        {identity.Presence{}, "a", "", "not_a_member"},
		"a name that begins as one does":       {identity.Presence{Memberships: inTeams("team_1")}, "team_", "", "not_a_member"},
		"a name that is longer than one's own": {identity.Presence{Memberships: inTeams("team_1")}, "team_1x", "", "not_a_member"},
	} {
		m, err := tt.p.Place(tt.wanted)
		code := ""
		if f, ok := errors.AsType[*fault.Error](err); ok {
			code = f.Code
		}
		if m.Team.ID != tt.want || code != tt.code || err != nil && !fault.Is(err, fault.KindForbidden) {
			t.Errorf("%s: %q, %v", name, m.Team.ID, err)
		}
	}
	p := identity.Presence{Memberships: inTeams("a")}
	if _, err := p.In("b"); !fault.Is(err, fault.KindNotFound) {
		t.Errorf("a team that a path names is told of to others: %v", err)
	}
	if _, err := p.In(""); !fault.Is(err, fault.KindNotFound) {
		t.Errorf("no team: %v", err)
	}
	if m, ok := p.Team("a"); !ok || m.Team.ID != "a" {
		t.Errorf("%+v, %v", m, ok)
	}
}

func TestAPresenceIsNoMoreThanItsToken(t *testing.T) {
	t.Parallel()
	read := access.ScopeSet{access.ScopeRead}
	for name, tt := range map[string]struct {
		p        identity.Presence
		by       ids.Session
		narrowed bool
	}{
		"a session":               {identity.Presence{Session: "sess_1"}, "sess_1", false},
		"a program's token":       {identity.Presence{Grant: "grant_1"}, "grant_1", false},
		"a token for a role":      {identity.Presence{Grant: "tok_1", Most: access.Viewer}, "tok_1", true},
		"a token for some scopes": {identity.Presence{Grant: "grant_1", Scopes: read}, "grant_1", true},
	} {
		if tt.p.By() != tt.by || tt.p.Narrowed() != tt.narrowed {
			t.Errorf("%s: by %s, narrowed %v", name, tt.p.By(), tt.p.Narrowed())
		}
	}
	p := identity.Presence{User: identity.User{ID: "user_1", Name: "Ada"}, Scopes: read}
	c := p.Caller(identity.Membership{Team: identity.Team{ID: "team_1"}, Role: access.Owner})
	if c.User != "user_1" || c.Team != "team_1" || c.Role != access.Owner || !c.May(access.Read) || c.May(access.ManageMembers) {
		t.Errorf("%+v", c)
	}
}

func TestAnInvitationEndsAtItsTime(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		ended identity.InvitationStatus
		now   time.Time
		want  identity.InvitationStatus
	}{
		"before":                    {"", end.Add(-time.Nanosecond), identity.Pending},
		"at its time":               {"", end, identity.Expired},
		"after":                     {"", end.Add(time.Hour), identity.Expired},
		"accepted before":           {identity.Accepted, end.Add(time.Hour), identity.Accepted},
		"revoked, and not yet late": {identity.Revoked, end.Add(-time.Hour), identity.Revoked},
	} {
		if got := (identity.Invitation{EndedAs: tt.ended, ExpiresAt: end}).Status(tt.now); got != tt.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// standings answer as a counter would.
type standings struct {
	list []limits.Result
	err  error
}

func (s standings) TakeHits(context.Context, []limits.Rule, time.Time) ([]limits.Result, error) {
	return s.list, s.err
}

func TestWhoeverIsRefusedWaitsForTheLastOfTheirLimits(t *testing.T) {
	t.Parallel()
	rules := []limits.Rule{{Name: "first", Why: "the first"}, {Why: "one that is not told"}, {Name: "third", Why: "the third"}}
	fine := limits.Result{Allowed: true, Remaining: 3, Reset: time.Minute}
	until := func(d time.Duration) limits.Result { return limits.Result{Reset: d} }
	for name, tt := range map[string]struct {
		list []limits.Result
		why  string
		wait time.Duration
	}{
		"none":                 {[]limits.Result{fine, fine, fine}, "", 0},
		"one":                  {[]limits.Result{fine, until(time.Hour), fine}, "one that is not told", time.Hour},
		"the longest":          {[]limits.Result{until(time.Minute), until(time.Second), until(time.Hour)}, "the third", time.Hour},
		"the first of equals":  {[]limits.Result{until(time.Hour), fine, until(time.Hour)}, "the first", time.Hour},
		"one that ends at now": {[]limits.Result{until(0), fine, fine}, "the first", 0},
	} {
		var told []string
		err := identity.Count(t.Context(), standings{list: tt.list}, rules, time.Now(), func(r limits.Rule, _ limits.Result) { told = append(told, r.Name) })
		f, refused := errors.AsType[*fault.Error](err)
		if refused != (tt.why != "") || refused && (f.Message != tt.why || f.RetryAfter != tt.wait) {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Join(told, " ") != "first third" {
			t.Errorf("%s: they are told of %v", name, told)
		}
	}
	away := errors.New("away")
	if err := identity.Count(t.Context(), standings{err: away}, rules, time.Now(), nil); !errors.Is(err, away) {
		t.Errorf("a counter that is away: %v", err)
	}
	if err := identity.Count(t.Context(), standings{list: []limits.Result{fine, fine, fine}}, rules, time.Now(), nil); err != nil {
		t.Errorf("with nobody to tell: %v", err)
	}
}

// What is counted is kept for a day, and read by whoever has the database: it says
// neither who was written to nor, once a team is erased, that there was one.
func TestWhatIsCountedNamesNoAddressAndNoTeam(t *testing.T) {
	t.Parallel()
	caller := access.Caller{User: "user_1", Team: "team_1"}
	for name, tt := range map[string]struct {
		in    identity.NewInvitation
		rules int
	}{
		"mailed":                 {identity.NewInvitation{Verified: true, ClientPrefix: "203.0.113.0/24"}, 5},
		"mailed from nowhere":    {identity.NewInvitation{Verified: true}, 4},
		"a link that is copied":  {identity.NewInvitation{ClientPrefix: "203.0.113.0/24"}, 1},
		"a link, from elsewhere": {identity.NewInvitation{}, 1},
	} {
		rules := tt.in.Rules(caller, "bob@example.org")
		if len(rules) != tt.rules {
			t.Errorf("%s: %d rules", name, len(rules))
		}
		buckets := map[string]bool{}
		for _, r := range rules {
			buckets[r.Bucket] = true
			if strings.Contains(r.Bucket, "bob") || strings.Contains(r.Bucket, "team_1") {
				t.Errorf("%s: counted as %q", name, r.Bucket)
			}
			if strings.Contains(r.Bucket, " to ") && r.Name != "" {
				t.Errorf("%s: the caller is told how often others wrote to the address", name)
			}
			if r.Window.Most < 1 || r.Window.Per <= 0 || r.Why == "" {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if len(buckets) != len(rules) {
			t.Errorf("%s: two rules count the same", name)
		}
		for _, other := range tt.in.Rules(access.Caller{User: "user_2", Team: "team_2"}, "eve@example.org") {
			if buckets[other.Bucket] && other.Name != "mail" {
				t.Errorf("%s: another team and another address count together in %q", name, other.Bucket)
			}
		}
	}
}
