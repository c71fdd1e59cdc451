package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
)

func TestBodiesAreReadStrictly(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	post := func(body string, c ...change) reply {
		return h.call("POST", "/api/workflows", body, append([]change{bearer(ada.token)}, c...)...)
	}
	for name, body := range map[string]string{
		"an unknown field":     `{"name":"a","nmae":"b"}`,
		"another case":         `{"Name":"a"}`,
		"a field twice":        `{"name":"a","name":"b"}`,
		"two objects":          `{"name":"a"} {"name":"b"}`,
		"a number for text":    `{"name":1}`,
		"a list":               `["name"]`,
		"null":                 `null`,
		"half an object":       `{"name":`,
		"bytes that are no":    "{\"name\":\"\xff\"}",
		"nothing at all":       ``,
		"a name of blanks":     `{"name":"   "}`,
		"a name too long":      `{"name":"` + strings.Repeat("é", 201) + `"}`,
		"a long description":   `{"name":"a","description":"` + strings.Repeat("x", 10_001) + `"}`,
		"a definition of null": `{"name":"a","definition":null}`,
	} {
		if r := post(body); r.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	if r := post(`{"name":"a","nmae":"b"}`); !strings.Contains(r.text("error"), "nmae") {
		t.Errorf("the unknown field is not named: %s", r.body)
	}
	post(`{"name":"`+strings.Repeat("é", 200)+`"}`, header("Content-Type", "application/json; charset=utf-8")).want(201)
	post(`name=a`, header("Content-Type", "application/x-www-form-urlencoded")).want(415)
	post(`{"name":"a"}`, header("Content-Type", "text/plain")).want(415)
	post(`{"name":"a"}`, func(r *http.Request) { r.Header.Del("Content-Type") }).want(201)
	post(`{"name":"` + strings.Repeat("x", 8<<20) + `"}`).want(413)
	post(`{"name":"`+strings.Repeat("x", 8<<20)+`"}`, func(r *http.Request) { r.ContentLength = -1 }).want(413)
	h.call("POST", "/api/team/invite", `{"email":"`+strings.Repeat("x", 1<<20)+`"}`, bearer(ada.token)).want(413)
}

// The contract's order: who, team, role, size and type, existence, body.
func TestChecksComeInTheirOrder(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada, bob := h.signUp("Ada"), h.signUp("Bob")
	h.join(bob, ada, "viewer")
	in := header("X-Team-Id", string(ada.team))
	const nowhere = "/api/workflows/wf_nowhere"
	h.call("PUT", nowhere, `{`, header("Content-Type", "text/plain"), in).want(401)
	h.call("PUT", nowhere, `{`, bearer(bob.token), header("X-Team-Id", "team_x")).want(403)
	h.call("PUT", nowhere, `{`, bearer(bob.token), in, header("Content-Type", "text/plain")).want(403)
	h.call("PUT", nowhere, `{`, bearer(ada.token), header("Content-Type", "text/plain")).want(415)
	h.call("PUT", nowhere, `{`, bearer(ada.token)).want(404)
	for pattern, body := range map[string]string{
		"PATCH /api/webhooks/whk_nowhere": `{`, "POST /api/reported-runs/run_nowhere/events": `{`, "POST /api/reported-runs/run_other/events": `{"events":[]}`,
		"POST /api/service-accounts/user_nowhere/tokens": `{`, "POST /api/service-accounts/user_nowhere/tokens/tok_nowhere/rotate": `{`,
	} {
		method, path, _ := strings.Cut(pattern, " ")
		h.call(method, path, body, bearer(ada.token)).want(404)
	}
	id := h.call("POST", "/api/workflows", `{"name":"a"}`, bearer(ada.token)).want(201).text("data", "id")
	h.call("PUT", "/api/workflows/"+id, `{`, bearer(ada.token), header("If-Match", `"stale"`)).want(400)
	h.call("PUT", "/api/workflows/"+id, `{}`, bearer(ada.token), header("If-Match", `"stale"`)).want(412)
}

func TestUnknownAddressesAndMethods(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.call("GET", "/api/nothing", "").wantCode(404, "not_found")
	h.call("GET", "/nothing", "").wantCode(404, "not_found")
	r := h.call("PATCH", "/api/workflows", "").wantCode(405, "method_not_allowed")
	if got := r.header.Get("Allow"); got != "GET, HEAD, POST" {
		t.Errorf("Allow: %s", got)
	}
	h.call("BREW", "/api/workflows", "").want(405)
	for _, odd := range []string{"/api//me", "/api/../api/me", "/api/./me", "//api/me", "/api/me/", "/api/workflows/wf_%00", "/api/workflows/wf_%ff", "/api/workflows/%2e%2e"} {
		h.call("GET", odd, "").want(404)
	}
}

func TestRequestIdsAreKeptWhenWellFormed(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	if got := h.call("GET", "/api/health", "", header("X-Request-Id", "abc-123")).header.Get("X-Request-Id"); got != "abc-123" {
		t.Errorf("got %q", got)
	}
	for _, bad := range []string{"", "a b", "<script>", strings.Repeat("x", 129)} {
		if got := h.call("GET", "/api/health", "", header("X-Request-Id", bad)).header.Get("X-Request-Id"); got == bad || got == "" {
			t.Errorf("%q became %q", bad, got)
		}
	}
	r := h.call("GET", "/api/me", "", header("X-Request-Id", "mine"))
	if r.text("requestId") != "mine" {
		t.Errorf("the failure does not quote it: %s", r.body)
	}
}

func TestOnlyOurOriginsMayCallFromABrowser(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.signUp("Ada")
	write := func(c ...change) reply {
		return h.call("POST", "/api/workflows", `{"name":"a"}`, append([]change{cookie(ada.secret)}, c...)...)
	}
	for _, origin := range []string{base, cloud} {
		r := write(header("Origin", origin)).want(201)
		if r.header.Get("Access-Control-Allow-Origin") != origin || r.header.Get("Access-Control-Allow-Credentials") != "true" {
			t.Errorf("%s may not read: %v", origin, r.header)
		}
	}
	write().want(201) // no browser
	write(header("Sec-Fetch-Site", "same-origin")).want(201)
	for _, origin := range []string{"https://evil.example", "null", base + ".evil.example", "http://127.0.0.1", "https://127.0.0.1:8080"} {
		r := write(header("Origin", origin)).wantCode(403, "cross_origin")
		if r.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s may read", origin)
		}
		h.call("GET", "/api/me", "", cookie(ada.secret), header("Origin", origin)).want(200)
		h.call("POST", "/api/workflows", `{"name":"a"}`, bearer(ada.token), header("Origin", origin)).want(201)
	}
	write(header("Sec-Fetch-Site", "cross-site")).want(403)
	write(header("Sec-Fetch-Site", "same-site")).want(403)

	preflight := func(origin string) reply {
		return h.call("OPTIONS", "/api/workflows", "", header("Origin", origin), header("Access-Control-Request-Method", "POST"))
	}
	if r := preflight(cloud).want(204); !strings.Contains(r.header.Get("Access-Control-Allow-Headers"), "X-Team-Id") {
		t.Errorf("%v", r.header)
	}
	if r := preflight("https://evil.example").want(204); r.header.Get("Access-Control-Allow-Origin") != "" || r.header.Get("Access-Control-Allow-Methods") != "" {
		t.Errorf("%v", r.header)
	}
}

func TestCookiesAreCloseFitting(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.signUp("Ada")
	signIn := func(host string) string {
		return h.call("POST", "/auth/sign-in", `{"email":"ada@example.org","password":"correct horse"}`,
			func(r *http.Request) { r.Host = host }).want(200).header.Get("Set-Cookie")
	}
	c := signIn("127.0.0.1:8080")
	if !strings.Contains(c, "HttpOnly") || !strings.Contains(c, "SameSite=Lax") || strings.Contains(c, "Domain") || strings.Contains(c, "Secure") {
		t.Errorf("on loopback: %s", c)
	}
	if c := signIn("cloud.millrace.example"); !strings.Contains(c, "Secure") {
		t.Errorf("off loopback: %s", c)
	}
}

func TestLinksPointToTheOriginTheRequestCameTo(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.verified("Ada")
	for host, want := range map[string]string{"127.0.0.1:8080": base, "cloud.millrace.example": cloud, "evil.example": base} {
		email := strings.ReplaceAll(host, ":", "") + "@example.org"
		h.call("POST", "/api/team/invite", fmt.Sprintf(`{"email":%q,"role":"member"}`, email), bearer(ada.token),
			func(r *http.Request) { r.Host = host }).want(201)
		if text := h.mailTo(email); !strings.Contains(text, want+"/invitations/") {
			t.Errorf("asked through %s:\n%s", host, text)
		}
	}
}

func TestRunsAreLimitedByAddress(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		start := func(address string, c ...change) reply {
			return h.call("POST", "/api/runs", `{}`, append([]change{bearer(ada.token), from(address)}, c...)...)
		}
		for i := range 30 {
			r := start("203.0.113.1:1")
			if r.status == 429 {
				t.Fatalf("request %d is stopped", i+1)
			}
			if want := fmt.Sprintf(`"runs";r=%d;t=60`, 29-i); r.header.Get("RateLimit") != want || r.header.Get("RateLimit-Policy") != `"runs";q=30;w=60` {
				t.Fatalf("request %d: %q %q, want %q", i+1, r.header.Get("RateLimit"), r.header.Get("RateLimit-Policy"), want)
			}
		}
		if r := start("203.0.113.1:2").want(429); r.header.Get("Retry-After") == "" || !strings.Contains(r.body, "(--runs-per-minute)") {
			t.Error("no Retry-After, or no setting:", r.body)
		}
		start("203.0.113.1:1", header("X-Forwarded-For", "198.51.100.7")).want(429) // no proxy of ours said so
		h.call("POST", "/api/runs", `{}`, from("203.0.113.1:1")).want(401)          // who comes before how often
		if r := start("203.0.113.2:1"); r.status == 429 {
			t.Error("another address is stopped")
		}
		for i := range 31 {
			r := start(fmt.Sprintf("[2001:db8:1:1::%x]:1", i+1))
			if (r.status == 429) != (i == 30) {
				t.Fatalf("request %d of one /64: %d", i+1, r.status)
			}
		}
		h.pass(61 * time.Second)
		if r := start("203.0.113.1:1"); r.status == 429 {
			t.Error("after a minute it is still stopped")
		}
	})
}

func TestOnlyTrustedProxiesSpeakForOthers(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options, _ *builtin.Options) {
		o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
		o.RunsPerMinute = 1
	})
	ada := h.signUp("Ada")
	start := func(remote, forwarded string) int {
		return h.call("POST", "/api/runs", `{}`, bearer(ada.token), from(remote), header("X-Forwarded-For", forwarded)).status
	}
	if start("10.0.0.1:1", "203.0.113.1") == 429 || start("10.0.0.1:1", "203.0.113.2") == 429 {
		t.Error("two addresses behind a trusted proxy share a limit")
	}
	if start("10.0.0.1:1", "203.0.113.1") != 429 {
		t.Error("an address behind a trusted proxy has no limit")
	}
	// The left end is whatever the caller wrote; the right end is what our
	// proxies saw.
	if start("10.0.0.1:1", "198.51.100.1, 203.0.113.1, 10.0.0.2") != 429 {
		t.Error("a forged first hop hides the caller")
	}
}

func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada, bob := h.signUp("Ada"), h.signUp("Bob")
		key := header("Idempotency-Key", "k1")
		create := func(body string, c ...change) reply { return h.call("POST", "/api/workflows", body, c...) }
		first := create(`{"name":"a"}`, bearer(ada.token), key).want(201)
		again := create(`{"name":"a"}`, bearer(ada.token), key).want(201)
		if again.body != first.body || again.header.Get("Idempotent-Replayed") != "true" || first.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("replayed %q:\n%s\n%s", again.header.Get("Idempotent-Replayed"), first.body, again.body)
		}
		create(`{"name":"b"}`, bearer(ada.token), key).wantCode(409, "idempotency_conflict")
		if other := create(`{"name":"a"}`, bearer(bob.token), key).want(201); other.body == first.body {
			t.Error("another caller got Ada's answer")
		}
		h.call("DELETE", "/api/workflows/"+first.text("data", "id"), "", bearer(ada.token)).want(200)
		create(`{"name":"a"}`, bearer(ada.token), key).want(201)
		if n := len(h.call("GET", "/api/workflows", "", bearer(ada.token)).at("data").([]any)); n != 0 {
			t.Errorf("a repeated request made a second workflow: %d", n)
		}
		create(``, bearer(ada.token), header("Idempotency-Key", "k2")).want(400)
		create(`{"name":"a"}`, bearer(ada.token), header("Idempotency-Key", "k2")).want(201) // a refusal does not use it up
		create(`{"name":"a"}`, bearer(ada.token), header("Idempotency-Key", "")).want(400)
		create(`{"name":"a"}`, bearer(ada.token), header("Idempotency-Key", strings.Repeat("k", 256))).want(400)

		invite := h.call("POST", "/api/team/invite", `{"email":"x@example.org","role":"member"}`, bearer(ada.token), key).want(201)
		if again := h.call("POST", "/api/team/invite", `{"email":"x@example.org","role":"member"}`, bearer(ada.token), key).want(201); again.body != invite.body {
			t.Error("the invitation was sent again")
		}
		h.pass(25 * time.Hour)
		if later := create(`{"name":"a"}`, bearer(h.signIn(ada).token), key).want(201); later.header.Get("Idempotent-Replayed") != "" {
			t.Error("a day later the key still answers")
		}
	})
}

func TestManyAtOnceUnderOneKeyActOnce(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		var mu sync.Mutex
		seen := map[string]bool{}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				r := h.call("POST", "/api/workflows", `{"name":"a"}`, bearer(ada.token), header("Idempotency-Key", "k"))
				mu.Lock()
				defer mu.Unlock()
				switch r.status {
				case 201:
					seen[r.text("data", "id")] = true
				case 409:
					if r.text("code") != "idempotency_in_progress" {
						t.Error(r.body)
					}
				default:
					t.Error(r.status, r.body)
				}
			})
		}
		wg.Wait()
		if n := len(h.call("GET", "/api/workflows", "", bearer(ada.token)).at("data").([]any)); n != 1 || len(seen) != 1 {
			t.Errorf("%d workflows, %d answers", n, len(seen))
		}
	})
}

// explosive is an identity system that fails us.
type explosive struct{ identity.System }

func (explosive) Identify(context.Context, identity.Credential) (identity.Presence, error) {
	panic("secret detail")
}

func TestOurMistakesAreAnsweredAndLoggedOnce(t *testing.T) {
	t.Parallel()
	o := httpapi.Options{}
	broken := newHarness(t, func(opts *httpapi.Options, _ *builtin.Options) { o = *opts })
	o.Identity, o.BuiltIn = explosive{}, broken.accounts
	a := httpapi.New(o)
	broken.mux = a.Handler()
	r := broken.call("GET", "/api/me", "").wantCode(500, "internal")
	if strings.Contains(r.body, "secret") {
		t.Errorf("the cause leaks: %s", r.body)
	}
	if log := broken.log.String(); strings.Count(log, "secret detail") != 1 || !strings.Contains(log, r.text("requestId")) {
		t.Errorf("the log says:\n%s", log)
	}
}

func TestTheAccessLogKeepsSecrets(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada := h.verified("Ada")
	h.call("POST", "/api/team/invite", `{"email":"x@example.org","role":"member"}`, bearer(ada.token)).want(201)
	token := h.invitationToken("x@example.org")
	h.call("GET", "/auth/invitations/"+token+"?cursor=private", "").want(200)
	h.call("GET", "/api/me?secret=private", "", cookie(ada.secret)).want(200)
	log := h.log.String()
	if !strings.Contains(log, "route=\"GET /auth/invitations/{token}\"") || !strings.Contains(log, string(ada.team)) {
		t.Errorf("the log misses what it should tell:\n%s", log)
	}
	for _, secret := range []string{token, ada.token, ada.secret, "private", "correct horse", "x@example.org"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log tells %q", secret)
		}
	}
}

func TestReadinessSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(o *httpapi.Options, _ *builtin.Options) {
		o.Checks["storage"] = func(context.Context) error { return errors.New("postgres://user:password@host") }
		o.Checks["clock"] = func(context.Context) error { panic("out of order") }
	})
	r := h.call("GET", "/api/health/ready", "").wantCode(503, "not_ready")
	if !strings.Contains(r.text("error"), "storage") || !strings.Contains(r.text("error"), "clock") || r.text("data", "checks", "database") != "ok" || strings.Contains(r.body, "password") {
		t.Error(r.body)
	}
	h.call("GET", "/api/health", "").want(200)
}

func TestEveryAnswerIsHardened(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, path := range []string{"/api/health", "/api/nothing", "/docs", "/"} {
		r := h.call("GET", path, "")
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer"} {
			if r.header.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, r.header.Get(name))
			}
		}
		if csp := r.header.Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("%s: %q", path, csp)
		}
	}
}

func TestAPageUnderAnotherNameOfThisMachineMovesToThePublicOne(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	as := func(host string) reply { return h.call("GET", "/docs", "", func(r *http.Request) { r.Host = host }) }
	if r := as("localhost:8080").want(307); r.header.Get("Location") != base+"/docs" {
		t.Errorf("%v", r.header)
	}
	as("127.0.0.1:8080").want(200)
	as("evil.example").want(200)
}

// PostgreSQL takes no NUL and nothing but UTF-8; whoever sends either is told
// so, or it is left out, on both databases.
func TestOddBytesReachNoDatabase(t *testing.T) {
	t.Parallel()
	eachHarness(t, func(t *testing.T, h *harness) {
		ada := h.signUp("Ada")
		as := bearer(ada.token)
		for _, body := range []string{`{"name":"a\u0000b"}`, `{"name":"a\nb"}`, `{"name":"a","description":"\u0000"}`, `{"name":"a","definition":{"x-a":"\u0000"}}`} {
			h.call("POST", "/api/workflows", body, as).want(400)
		}
		h.call("POST", "/auth/teams", `{"name":"a\u0000b"}`, as).want(400)
		h.call("POST", "/auth/sign-up", `{"email":"b@example.org","password":"correct horse","name":"\u0000"}`).want(400)
		h.call("POST", "/auth/sign-up", `{"email":"\u0000@example.org","password":"correct horse","name":"B"}`).want(400)
		h.call("POST", "/api/team/invite", `{"email":"\"\u0000\"@example.org","role":"member"}`, as).want(400)
		h.call("POST", "/auth/sign-in", `{"email":"\u0000","password":"correct horse"}`).want(401)
		h.call("GET", "/api/workflows?cursor="+"AA", "", as).want(400) // one NUL
		h.call("POST", "/auth/sign-in", `{"email":"ada@example.org","password":"correct horse"}`,
			header("User-Agent", "a\xff\x01"+strings.Repeat("é", 300)), header("Origin", "http://\xff")).want(200)
		h.call("GET", "/api/me", "", as, header("X-Team-Id", "\x00\xff")).want(403)
		h.call("POST", "/api/workflows", `{"name":"a"}`, as, header("X-Request-Id", "\xff")).want(201)
	})
}

// The same of data where it lies: who may not is not told what is there, and who asks for
// what is not there is not told what else is wrong.
func TestChecksOfDataComeInTheirOrder(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ada, viewer, member := h.signUp("Ada"), h.signUp("Vic"), h.signUp("Mia")
	h.join(viewer, ada, access.Viewer)
	h.join(member, ada, access.Member)
	in, plain := header("X-Team-Id", string(ada.team)), header("Content-Type", "text/plain")
	for pattern, lesser := range map[string]someone{
		"POST /api/files/uploads/upl_nowhere/parts": viewer, "POST /api/files/uploads/upl_nowhere/complete": viewer, "DELETE /api/files/uploads/upl_nowhere": viewer,
		"GET /api/connections/conn_nowhere/objects?cursor=": viewer, "POST /api/connections/conn_nowhere/test": viewer, "DELETE /api/connections/conn_nowhere": member,
	} {
		method, path, _ := strings.Cut(pattern, " ")
		body := ""
		if method == "POST" && !strings.HasSuffix(path, "/test") {
			body = "{"
			h.call(method, path, body, bearer(ada.token), plain).want(415)
		}
		h.call(method, path, body).want(401)
		h.call(method, path, body, bearer(lesser.token), in, plain).want(403)
		h.call(method, path, body, bearer(ada.token)).want(404)
	}
	h.call("POST", "/api/connections", "{", bearer(member.token), in, plain).want(403)
	h.call("POST", "/api/files/uploads", "{", bearer(viewer.token), in, plain).want(403)
	h.call("POST", "/api/runs", `{"workflowId":"wf_nowhere","inputs":{"reads":{"url":"ftp://x","connection":"conn_nowhere"}}}`, bearer(ada.token)).want(404)

	id := h.call("POST", "/api/files/uploads", `{"filename":"a.csv","contentType":"text/csv","size":4}`, bearer(ada.token)).want(201).text("data", "uploadId")
	path := "/api/files/uploads/" + id
	if w := h.sendPart(ada.token, id, 1, "data"); w.Code != 200 {
		t.Fatal(w.Body)
	}
	h.call("POST", path+"/complete", `{}`, bearer(ada.token)).want(200)
	// What it asks for makes no sense, whatever has become of the upload.
	for _, body := range []string{`{`, `{"numbers":[]}`, `{"numbers":[2]}`} {
		h.call("POST", path+"/parts", body, bearer(ada.token)).want(400)
	}
	h.call("POST", path+"/complete", `{"sha256":"nonsense"}`, bearer(ada.token)).want(400)
	h.call("POST", path+"/parts", `{"numbers":[1]}`, bearer(ada.token)).wantCode(409, "upload_closed")
}
