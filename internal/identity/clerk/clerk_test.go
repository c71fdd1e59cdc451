package clerk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/clerk"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

// hosted speaks Clerk's wire format; what it says is its test's.
type hosted struct {
	*clerk.System
	t     *testing.T
	db    *store.DB
	clock *storetest.Clock

	mu      sync.Mutex
	asked   map[string]int // how often, by method and path
	answers map[string]any // by method and path; a number is a status, without an answer
	lists   map[string][]any
}

// each runs a test with Clerk on a real database.
func each(t *testing.T, test func(t *testing.T, h *hosted)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := &hosted{t: t, db: db, clock: storetest.NewClock(), asked: map[string]int{}}
		h.answers = map[string]any{
			"GET /v1/sessions/sess_1": map[string]any{"id": "sess_1", "user_id": "user_ada", "status": "active", "expire_at": h.clock.Now().Add(time.Hour).UnixMilli()},
			"GET /v1/users/user_ada": map[string]any{
				"id": "user_ada", "first_name": "Ada", "last_name": "Okoye", "primary_email_address_id": "idn_1",
				"email_addresses": []any{map[string]any{"id": "idn_1", "email_address": "Ada@Example.org", "verification": map[string]any{"status": "verified"}}},
			},
			"POST /v1/oauth_applications/access_tokens/verify": map[string]any{"subject": "user_ada"},
		}
		h.lists = map[string][]any{"/v1/users/user_ada/organization_memberships": {in("org_a", "user_ada", "org:admin", 1000)}}
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		h.System = clerk.New(clerk.Options{
			SecretKey: "sk_test_key", APIURL: server.URL + "/", FrontendURL: "https://clerk.example.org", Origins: []string{"https://a"}, Plans: []string{"free", "pro"},
			Key: []byte("thirty-two bytes of a test's key"), Store: db, Now: h.clock.Now,
		})
		test(t, h)
	})
}

// in is a membership of one whom Clerk knows.
func in(organization, person, role string, at int64) map[string]any {
	return map[string]any{
		"id": "orgmem_" + person, "role": role, "created_at": at, "organization": map[string]any{"id": organization, "name": organization + " lab", "created_by": "user_ada"},
		"public_user_data": map[string]any{"user_id": person, "first_name": "", "last_name": nil, "identifier": person + "@example.org"},
	}
}

func (h *hosted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	what := r.Method + " " + r.URL.Path
	h.asked[what]++
	w.Header().Set("Content-Type", "application/json")
	if list, ok := h.lists[r.URL.Path]; ok && r.Method == http.MethodGet {
		from, _ := strconv.Atoi(r.FormValue("offset"))
		limit, _ := strconv.Atoi(r.FormValue("limit"))
		page := list[min(from, len(list)):min(from+limit, len(list))]
		_ = json.NewEncoder(w).Encode(map[string]any{"data": append([]any{}, page...), "total_count": len(list)})
		return
	}
	answer, known := h.answers[what]
	status, refused := answer.(int)
	if !known {
		status, refused = http.StatusNotFound, true
	}
	if refused {
		w.WriteHeader(status)
		answer = map[string]any{"errors": []any{map[string]any{"code": "code_" + strconv.Itoa(status), "message": "no"}}}
	}
	if code, ok := answer.(string); ok { // a refusal by its name
		w.WriteHeader(http.StatusUnprocessableEntity)
		answer = map[string]any{"errors": []any{map[string]any{"code": code, "message": "no"}}}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// says changes what Clerk says.
func (h *hosted) says(what string, answer any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers[what] = answer
}

func (h *hosted) times(what string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked[what]
}

func wantCode(t *testing.T, what string, err error, kind fault.Kind, code string) {
	t.Helper()
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Kind != kind || f.Code != code {
		t.Errorf("%s: %v, want %s %s", what, err, kind, code)
	}
}

const session = ids.Session("sess_1")

func TestWhatClerkSaysIsBelievedForAWhileAndNoLonger(t *testing.T) {
	each(t, func(t *testing.T, h *hosted) {
		ctx := t.Context()
		p, err := h.Present(ctx, session)
		if err != nil || p.User != (identity.User{ID: "user_ada", Name: "Ada Okoye", Email: "ada@example.org", EmailVerified: true}) || p.By() != session {
			t.Fatalf("%+v, %v", p, err)
		}
		if len(p.Memberships) != 1 || p.Memberships[0].Team != (identity.Team{ID: "team_a", Name: "org_a lab", Plan: "free"}) || p.Memberships[0].Role != access.Owner {
			t.Errorf("%+v", p.Memberships)
		}
		h.says("GET /v1/sessions/sess_1", map[string]any{"id": "sess_1", "user_id": "user_ada", "status": "ended"})
		h.clock.Pass(4*time.Second - time.Millisecond)
		if _, err := h.Present(ctx, session); err != nil || h.times("GET /v1/sessions/sess_1") != 1 {
			t.Errorf("within four seconds: %v, asked %d times", err, h.times("GET /v1/sessions/sess_1"))
		}
		h.clock.Pass(time.Millisecond)
		for _, try := range []func() error{
			func() error { _, err := h.Present(ctx, session); return err },
			func() error { _, err := h.RoleOf(ctx, session, "team_a"); return err },
		} {
			wantCode(t, "after them", try(), fault.KindUnauthenticated, "invalid_token")
		}
		// A session that ends within the four seconds ends at its own time.
		h.says("GET /v1/sessions/sess_1", map[string]any{"id": "sess_1", "user_id": "user_ada", "status": "active", "expire_at": h.clock.Now().Add(time.Second).UnixMilli()})
		if role, err := h.RoleOf(ctx, session, "team_a"); err != nil || role != access.Owner {
			t.Errorf("%s, %v", role, err)
		}
		if _, err := h.RoleOf(ctx, session, "team_b"); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("a team of others: %v", err)
		}
		h.says("GET /v1/sessions/sess_1", http.StatusNotFound)
		h.clock.Pass(time.Second)
		_, err = h.Present(ctx, session)
		wantCode(t, "at its own end", err, fault.KindUnauthenticated, "invalid_token")
	})
}

// A Clerk that does not answer, or does not know us, is no bad token: whoever is told
// so signs in again in vain.
func TestAClerkThatIsAwayIsNoBadToken(t *testing.T) {
	each(t, func(t *testing.T, h *hosted) {
		ctx := t.Context()
		who := map[string]func() error{
			"GET /v1/sessions/sess_1":                          func() error { _, err := h.Present(ctx, session); return err },
			"GET /v1/users/user_ada":                           func() error { _, err := h.Present(ctx, session); return err },
			"POST /v1/oauth_applications/access_tokens/verify": func() error { _, err := h.Identify(ctx, identity.Credential{Bearer: "oat_x"}); return err },
		}
		for what, try := range who {
			good := h.answers[what]
			for status, want := range map[int]fault.Kind{
				500: fault.KindUnavailable, 502: fault.KindUnavailable, 429: fault.KindUnavailable, 401: fault.KindUnavailable,
				404: fault.KindUnauthenticated, 400: fault.KindUnauthenticated, 403: fault.KindUnauthenticated, 410: fault.KindUnauthenticated,
			} {
				h.says(what, status)
				if err := try(); !fault.Is(err, want) {
					t.Errorf("%s is %d: %v", what, status, err)
				}
			}
			h.says(what, good)
			if err := try(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			h.clock.Pass(5 * time.Second)
		}
	})
}

func TestWhoIsBannedOrLockedIsOut(t *testing.T) {
	each(t, func(t *testing.T, h *hosted) {
		for _, why := range []string{"banned", "locked"} {
			h.says("GET /v1/users/user_ada", map[string]any{"id": "user_ada", why: true})
			_, err := h.Present(t.Context(), session)
			wantCode(t, why, err, fault.KindForbidden, "account_disabled")
			_, err = h.Identify(t.Context(), identity.Credential{Bearer: "oat_x"})
			wantCode(t, why+", through a program", err, fault.KindForbidden, "account_disabled")
		}
	})
}

// What stands for a program's token in what we hand out opens here alone, and is worth
// as much as the token is.
func TestAGrantIsASealedToken(t *testing.T) {
	each(t, func(t *testing.T, h *hosted) {
		ctx := t.Context()
		p, err := h.Identify(ctx, identity.Credential{Bearer: "oat_secret"})
		if err != nil || p.Session != "" || p.User.ID != "user_ada" || strings.Contains(p.Grant, "secret") || p.ByCookie {
			t.Fatalf("%+v, %v", p, err)
		}
		if again, err := h.Present(ctx, p.By()); err != nil || again.User.ID != "user_ada" {
			t.Errorf("%+v, %v", again, err)
		}
		if other, err := h.Identify(ctx, identity.Credential{Bearer: "oat_secret"}); err != nil || other.Grant == p.Grant {
			t.Errorf("the same token is sealed the same way twice: %v", err)
		}
		asked := h.times("POST /v1/oauth_applications/access_tokens/verify")
		for name, by := range map[string]string{
			"the token itself": "oat_secret", "nothing": "", "its beginning": "oat.", "no base64": "oat.***", "too short": "oat.AAAA", "changed": p.Grant[:len(p.Grant)-2] + "AA", "without its beginning": strings.TrimPrefix(p.Grant, "oat."),
		} {
			_, err := h.Present(ctx, ids.Session(by))
			wantCode(t, name, err, fault.KindUnauthenticated, "invalid_token")
		}
		if h.times("POST /v1/oauth_applications/access_tokens/verify") != asked {
			t.Error("Clerk was asked about what is no grant")
		}
		for name, verdict := range map[string]map[string]any{"revoked": {"subject": "user_ada", "revoked": true}, "expired": {"subject": "user_ada", "expired": true}, "of nobody": {"subject": ""}} {
			h.says("POST /v1/oauth_applications/access_tokens/verify", verdict)
			h.clock.Pass(5 * time.Second)
			_, err := h.Present(ctx, p.By())
			wantCode(t, name, err, fault.KindUnauthenticated, "invalid_token")
		}
		for name, c := range map[string]identity.Credential{"nothing": {}, "words": {Bearer: "nonsense"}, "a cookie of words": {Cookie: "x.y.z"}} {
			if _, err := h.Identify(ctx, c); !fault.Is(err, fault.KindUnauthenticated) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestPeopleAreNamedAndRankedAsClerkHasThem(t *testing.T) {
	each(t, func(t *testing.T, h *hosted) {
		ctx := t.Context()
		for i, tt := range []struct {
			user     map[string]any
			name     string
			email    string
			verified bool
		}{
			{map[string]any{"first_name": "Ada", "last_name": ""}, "Ada", "", false},
			{map[string]any{"first_name": nil, "last_name": "Okoye"}, "Okoye", "", false},
			{map[string]any{}, "user_ada", "", false},
			{map[string]any{"primary_email_address_id": "idn_2", "email_addresses": []any{
				map[string]any{"id": "idn_1", "email_address": "other@example.org", "verification": map[string]any{"status": "verified"}},
				map[string]any{"id": "idn_2", "email_address": "ADA@example.org", "verification": map[string]any{"status": "unverified"}},
			}}, "ada@example.org", "ada@example.org", false},
			{map[string]any{"primary_email_address_id": "idn_1", "email_addresses": []any{map[string]any{"id": "idn_1", "email_address": "ada@example.org", "verification": nil}}}, "ada@example.org", "ada@example.org", false},
			{map[string]any{"email_addresses": []any{map[string]any{"id": "idn_1", "email_address": "ada@example.org", "verification": map[string]any{"status": "verified"}}}}, "user_ada", "", false},
		} {
			tt.user["id"] = "user_ada"
			h.says("GET /v1/users/user_ada", tt.user)
			h.clock.Pass(5 * time.Second)
			p, err := h.Present(ctx, session)
			if err != nil || p.User.Name != tt.name || p.User.Email != tt.email || p.User.EmailVerified != tt.verified {
				t.Errorf("%d: %+v, %v", i, p.User, err)
			}
		}
		for role, want := range map[string]access.Role{
			"org:owner": access.Owner, "org:admin": access.Admin, "admin": access.Admin, "org:viewer": access.Viewer, "org:member": access.Member, "basic_member": access.Member,
			"org:superuser": access.Member, "": access.Member, "org:Admin": access.Member,
		} {
			theirs := in("org_b", "user_ada", role, 1)
			theirs["organization"].(map[string]any)["created_by"] = "user_eve"
			h.mu.Lock()
			h.lists["/v1/users/user_ada/organization_memberships"] = []any{theirs}
			h.mu.Unlock()
			h.clock.Pass(5 * time.Second)
			if got, err := h.RoleOf(ctx, session, "team_b"); err != nil || got != want {
				t.Errorf("%q is %s, %v", role, got, err)
			}
		}
	})
}

// Every page is read, also where some of Clerk's rows are about nobody any more.
func TestAllMembersOfALargeOrganizationAreRead(t *testing.T) {
	each(t, func(t *testing.T, h *hosted) {
		var teams, people, open []any
		for i := range 250 {
			teams = append(teams, in(fmt.Sprintf("org_%03d", i), "user_ada", "org:member", int64(1000-i)))
			person := in("org_000", fmt.Sprintf("user_%03d", i), "org:member", int64(i))
			if i < 120 {
				person["public_user_data"] = nil
			}
			people = append(people, person)
			open = append(open, map[string]any{"id": fmt.Sprintf("orginv_%03d", i), "email_address": fmt.Sprintf("p%d@example.org", i), "role": "org:admin", "created_at": 5000, "expires_at": 9000})
		}
		h.lists["/v1/users/user_ada/organization_memberships"] = teams
		h.lists["/v1/organizations/org_000/memberships"], h.lists["/v1/organizations/org_000/invitations"] = people, open
		p, err := h.Present(t.Context(), session)
		if err != nil || len(p.Memberships) != 250 || p.Memberships[0].Team.ID != "team_249" {
			t.Fatalf("%d teams, %v", len(p.Memberships), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		members, pending, err := h.Members(ctx, p, "team_000")
		if err != nil || len(members) != 130 || len(pending) != 250 {
			t.Fatalf("%d members, %d invitations, %v", len(members), len(pending), err)
		}
		seen := map[ids.User]bool{}
		for _, m := range members {
			seen[m.ID] = true
		}
		if len(seen) != 130 || members[0].Name != "user_120@example.org" || members[0].Role != access.Member {
			t.Errorf("%d people, the first is %+v", len(seen), members[0])
		}
		if i := pending[0]; i.Role != access.Admin || !i.ExpiresAt.Equal(time.UnixMilli(9000)) || !i.Mailed {
			t.Errorf("%+v", i)
		}
		_, _, err = h.Members(t.Context(), p, "team_elsewhere")
		if !fault.Is(err, fault.KindNotFound) {
			t.Errorf("another's: %v", err)
		}
	})
}

func TestClerkInvitesForThoseWhoMay(t *testing.T) {
	each(t, func(t *testing.T, h *hosted) {
		p, err := h.Present(t.Context(), session)
		if err != nil {
			t.Fatal(err)
		}
		const invitations = "POST /v1/organizations/org_a/invitations"
		invite := func(role access.Role, email string, as access.Role) (identity.MadeInvitation, error) {
			c := p.Caller(p.Memberships[0])
			c.Role = role
			return h.Invite(t.Context(), c, identity.NewInvitation{Email: email, Role: as, Verified: true})
		}
		for name, tt := range map[string]struct {
			by    access.Role
			email string
			as    access.Role
			kind  fault.Kind
		}{
			"by a member":  {access.Member, "bob@example.org", access.Member, fault.KindForbidden},
			"by a viewer":  {access.Viewer, "bob@example.org", access.Member, fault.KindForbidden},
			"as an owner":  {access.Owner, "bob@example.org", access.Owner, fault.KindInvalid},
			"nobody":       {access.Owner, "bob", access.Member, fault.KindInvalid},
			"of two lines": {access.Owner, "bob@example.org\nx", access.Member, fault.KindInvalid},
		} {
			_, err := invite(tt.by, tt.email, tt.as)
			storetest.Refused(t, name, err, tt.kind)
		}
		if n := h.times(invitations); n != 0 {
			t.Errorf("Clerk was asked %d times for what is refused", n)
		}
		for answer, want := range map[any]string{"already_a_member_in_organization": "already_member", "duplicate_record": "already_invited", "something_else": "identity_unavailable", 500: "identity_unavailable"} {
			h.says(invitations, answer)
			_, err := invite(access.Admin, "bob@example.org", access.Member)
			if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != want {
				t.Errorf("%v: %v", answer, err)
			}
		}
		h.says(invitations, map[string]any{"id": "orginv_1", "email_address": "bob@example.org", "role": "org:member", "created_at": 5000})
		made, err := invite(access.Admin, "BOB@example.org", access.Member)
		if err != nil || made.Link != "" || !made.Mailed || made.Email != "bob@example.org" || !made.ExpiresAt.Equal(time.UnixMilli(5000).Add(30*24*time.Hour)) {
			t.Errorf("%+v, %v", made, err)
		}
		for range 20 { // how often one address is written to is counted here, too
			if _, err = invite(access.Owner, "bob@example.org", access.Member); err != nil {
				break
			}
		}
		storetest.Refused(t, "again and again", err, fault.KindLimited)
	})
}
