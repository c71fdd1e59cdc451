package kernel

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
)

// present is who a session belongs to, or why nobody knows.
type present struct {
	identity.Presence
	err error
}

func (p present) Identify(context.Context, identity.Credential) (identity.Presence, error) {
	return p.Presence, p.err
}

func (p present) Present(context.Context, ids.Session) (identity.Presence, error) {
	return p.Presence, p.err
}

// While a long answer is under way somebody may go on as long as they may begin. That
// we stop, or cannot look because we do, is nobody's loss of a right.
func TestWhoMayGoOn(t *testing.T) {
	t.Parallel()
	in := func(role access.Role, scopes ...access.Scope) present {
		return present{Presence: identity.Presence{Session: "s", Scopes: scopes, Memberships: []identity.Membership{{Team: identity.Team{ID: "red"}, Role: role}}}}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for name, tt := range map[string]struct {
		ctx  context.Context
		who  present
		may  access.Action
		team ids.Team
		want bool
	}{
		"a member":                  {t.Context(), in(access.Member), access.StartRuns, "red", true},
		"a viewer":                  {t.Context(), in(access.Viewer), access.StartRuns, "red", false},
		"of another team":           {t.Context(), in(access.Owner), access.Read, "blue", false},
		"of no team":                {t.Context(), present{}, access.Read, "red", false},
		"with the scope":            {t.Context(), in(access.Owner, access.ScopeRead), access.Read, "red", true},
		"without the scope":         {t.Context(), in(access.Owner, access.ScopeRun), access.Read, "red", false},
		"signed out":                {t.Context(), present{err: fault.Unauthenticated("gone")}, access.Read, "red", false},
		"the database is away":      {t.Context(), present{err: errors.New("away")}, access.Read, "red", false},
		"we stop":                   {ended, present{err: context.Canceled}, access.Read, "red", true},
		"we stop, and it is known":  {ended, in(access.Viewer), access.StartRuns, "red", false},
		"the right that nobody has": {t.Context(), in(access.Owner), "fly", "red", false},
	} {
		s := serverOf(func(o *Options) { o.Identity = tt.who })
		if got := s.StillMay(tt.ctx, "s", tt.may, tt.team); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// recorded are the answers that other servers gave.
type recorded struct {
	mu      sync.Mutex
	answers map[[2]string]access.IdempotencyRecord
	err     error
}

func (r *recorded) Answer(_ context.Context, k access.IdempotencyKey, _ time.Time) (access.IdempotencyRecord, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return access.IdempotencyRecord{}, r.err
	}
	a, ok := r.answers[[2]string{k.Scope, k.Key}]
	if !ok {
		return a, fault.NotFound("no answer")
	}
	return a, nil
}

func (r *recorded) put(a *access.IdempotencyRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[[2]string{a.Scope, a.Key}] = *a
}

// keyed sends a request with a key to a route.
func keyed(s *Server, key, body string, handle Handler) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/x", strings.NewReader(body))
	r.Header["Idempotency-Key"] = []string{key}
	return reply(s, Route{Pattern: "POST /x", Body: SmallBody, Once: true, Handle: handle}, r)
}

// What another server carried out in the same moment is repeated in place of the
// conflict that it caused. A conflict of another kind stays one.
func TestWhatAnotherServerDidIsRepeated(t *testing.T) {
	t.Parallel()
	all := &recorded{answers: map[[2]string]access.IdempotencyRecord{}}
	s := serverOf(func(o *Options) { o.Answers = all })
	taken := fault.Conflict("taken").WithCode("taken")
	if w := keyed(s, "k", `{}`, failing(taken)); w.Code != 409 || !strings.Contains(w.Body.String(), `"code":"taken"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	elsewhere := func(x *Exchange) (Answer, error) {
		record, err := x.Record(Answer{Status: 201, Data: "made"})
		if err != nil {
			return Answer{}, err
		}
		all.put(record)
		return Answer{}, taken
	}
	for i, body := range []string{`{}`, `{}`} {
		w := keyed(s, "k", body, elsewhere)
		if w.Code != 201 || w.Header().Get("Idempotent-Replayed") != "true" || !strings.Contains(w.Body.String(), `"data":"made"`) {
			t.Errorf("%d: %d %s", i, w.Code, w.Body)
		}
	}
	if w := keyed(s, "k", `{ }`, elsewhere); w.Code != 409 || !strings.Contains(w.Body.String(), "idempotency_conflict") {
		t.Errorf("the key with other words: %d %s", w.Code, w.Body)
	}
	all.err = errors.New("away")
	if w := keyed(s, "other", `{}`, func(*Exchange) (Answer, error) { t.Error("it is carried out"); return OK(nil) }); w.Code != 500 {
		t.Errorf("nobody knows what was answered: %d", w.Code)
	}
}

// A key is free again when its request has ended, in whatever way.
func TestAKeyIsFreeWhenItsRequestHasEnded(t *testing.T) {
	t.Parallel()
	s := serverOf(func(o *Options) { o.Answers = &recorded{answers: map[[2]string]access.IdempotencyRecord{}} })
	acted := 0
	inner := func(x *Exchange) (Answer, error) {
		if w := keyed(s, "k", `{}`, failing(errors.New("it is carried out"))); w.Code != 409 || !strings.Contains(w.Body.String(), "idempotency_in_progress") {
			t.Errorf("at the same time: %d %s", w.Code, w.Body)
		}
		if acted++; acted == 1 {
			panic("boom")
		}
		if acted == 2 {
			return Answer{}, errors.New("ours")
		}
		return OK(x.key.Key)
	}
	for i, want := range []int{500, 500, 200} {
		if w := keyed(s, "k", `{}`, inner); w.Code != want {
			t.Errorf("%d: %d, want %d", i, w.Code, want)
		}
	}
	for key, want := range map[string]int{"": 400, " ": 400, "a b": 400, "é": 400, "a\tb": 400, strings.Repeat("k", 255): 200, strings.Repeat("k", 256): 400, "~!": 200} {
		if w := keyed(s, key, `{}`, func(*Exchange) (Answer, error) { return OK(nil) }); w.Code != want {
			t.Errorf("the key %q: %d, want %d", key, w.Code, want)
		}
	}
}

func TestOwnPathsLeadNowhereElse(t *testing.T) {
	t.Parallel()
	long := "/" + strings.Repeat("a", 8000-1)
	for text, want := range map[string]string{
		"/runs/1?x=1#y": "/runs/1?x=1#y", "/é": "/é", "/": "/", long: long, "/a//b": "/a//b",
		"": "/", "runs": "/", "//evil.example": "/", "///evil.example": "/", `/\evil.example`: "/", `\\evil.example`: "/", "https://evil.example": "/",
		"javascript:alert(1)": "/", "/\t/evil.example": "/", "/\x00": "/", "/%zz": "/", "/\xff": "/", long + "a": "/", "http:/x": "/", " /x": "/",
	} {
		if got := OwnPath(text); got != want {
			t.Errorf("%.40q is %.40q, want %.40q", text, got, want)
		}
	}
}

// A form is read once for each name, within its limit, and says nothing that no
// database takes.
func TestAFormIsReadStrictly(t *testing.T) {
	t.Parallel()
	const form = "application/x-www-form-urlencoded"
	for name, tt := range map[string]struct {
		media, body string
		says        string
	}{
		"a form":              {form + "; charset=utf-8", "a=1&b=", ""},
		"nothing":             {form, "", ""},
		"JSON":                {"application/json", "{}", "send a form"},
		"of no type":          {"", "a=1", "send a form"},
		"a name twice":        {form, "code=1&code=1", "code is repeated"},
		"an odd name twice":   {form, "%0a%22=1&%0a%22=2", "a field is repeated"},
		"a long name twice":   {form, strings.Repeat("a", 41) + "=1&" + strings.Repeat("a", 41) + "=2", "a field is repeated"},
		"a control character": {form, "next=%2f%0d%0aX", "next is repeated or contains control characters"},
		"no UTF-8":            {form, "name=%ff", "name is repeated"},
		"half an escape":      {form, "a=%f", "the form cannot be read"},
		"at its limit":        {form, "a=" + strings.Repeat("x", SmallBody-2), ""},
		"beyond it":           {form, "a=" + strings.Repeat("x", SmallBody-1), "a form has at most 1 MB"},
	} {
		r := httptest.NewRequest("POST", "/x?a=from+the+query&a=2", strings.NewReader(tt.body))
		if tt.media != "" {
			r.Header.Set("Content-Type", tt.media)
		}
		x := &Exchange{Request: r, Writer: &Writer{ResponseWriter: httptest.NewRecorder()}}
		values, err := x.Form()
		if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(values.Get("a"), "query") {
			t.Errorf("%s: it is the query that was read", name)
		}
	}
}

func TestQueriesHaveNumbersWithinTheirRange(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]int{
		"": 7, "n=1": 1, "n=50": 50, "n=0": 0, "n=51": 0, "n=": 0, "n=1.0": 0, "n=1e1": 0, "n=%201": 0, "n=-1": 0, "n=9223372036854775808": 0, "n=٣": 0, "n=2&n=x": 2, "N=3": 7,
	} {
		got, err := Number(httptest.NewRequest("GET", "/?"+query, nil), "n", 1, 50, 7)
		if got != want || (err != nil) != (want == 0) {
			t.Errorf("%s is %d, %v", query, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), "n must be a whole number from 1 to 50") {
			t.Errorf("%s is refused with %v", query, err)
		}
	}
}

// What goes on record or on a page stays text where it is cut or changed.
func TestTextsAreChangedInWholeCharacters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "a": "A.", "it failed.": "It failed.", "é is taken": "É is taken.", "日本": "日本.", "\"x\" is taken": "\"x\" is taken."} {
		if got := SentenceCase(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	for _, value := range []string{strings.Repeat("a", 300), strings.Repeat("é", 150), "a" + strings.Repeat("é", 150), strings.Repeat("日本", 60), strings.Repeat("a", 199) + "日"} {
		r := httptest.NewRequest("DELETE", "/x", nil)
		r.SetPathValue("name", value)
		byQuery := httptest.NewRequest("DELETE", "/x?id="+value, nil)
		for _, x := range []*Exchange{{Request: r}, {Request: byQuery}} {
			if got := x.target(); !utf8.ValidString(got) || len(got) > 200 || len(got) < 196 || !strings.HasPrefix(value, got) {
				t.Errorf("%q is put on record as %q", value, got)
			}
		}
	}
	for _, odd := range []string{"a\x00b", "\xff"} {
		r := httptest.NewRequest("DELETE", "/x", nil)
		r.SetPathValue("name", odd)
		r.SetPathValue("id", "wf_1")
		if got := (&Exchange{Request: r}).target(); got != "wf_1" {
			t.Errorf("%q is put on record as %q", odd, got)
		}
	}
}

// One customer of an IPv6 network is counted as one, however many addresses they use.
func TestAddressesAreCountedByTheirNetwork(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"203.0.113.7:1": "203.0.113.7", "[::ffff:203.0.113.7]:1": "203.0.113.7", "[2001:db8:1:2:3:4:5:6]:1": "2001:db8:1:2::/64", "[2001:db8:1:2::]:1": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:1": "fe80::/64", "@": "invalid IP", "": "invalid IP",
	} {
		x := &Exchange{server: serverOf(), Request: &http.Request{RemoteAddr: remote, Header: http.Header{}}}
		if got := x.ClientPrefix(); got != want {
			t.Errorf("%s is counted as %s, want %s", remote, got, want)
		}
	}
	if fmt.Sprint(Loopback("http://localhost:8080"), Loopback("http://127.9.9.9"), Loopback("http://[::1]:1"), Loopback("http://localhost.evil.example"), Loopback("http://0.0.0.0"), Loopback("::")) != "true true true false false false" {
		t.Error("another machine is taken for this one")
	}
}
