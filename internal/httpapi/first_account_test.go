package httpapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/httpapi"
	"github.com/millrace/millrace/internal/identity/builtin"
)

func TestOnlyADirectSignUpFromThisMachineOperates(t *testing.T) {
	t.Parallel()
	local := from("127.0.0.1:50000")
	for name, tt := range map[string]struct {
		with     []change
		operates bool
	}{
		"IPv4":                     {[]change{local}, true},
		"IPv6":                     {[]change{from("[::1]:50000")}, true},
		"IPv4 in IPv6":             {[]change{from("[::ffff:127.0.0.1]:50000")}, true},
		"a browser on the machine": {[]change{local, header("Origin", base)}, true},
		"elsewhere":                {nil, false},
		"a proxy":                  {[]change{local, header("X-Forwarded-For", "127.0.0.1")}, false},
		"a proxy that says less":   {[]change{local, header("x-forwarded-proto", "https")}, false},
		"a proxy of the standard":  {[]change{local, header("Forwarded", "for=127.0.0.1")}, false},
		"nginx":                    {[]change{local, header("X-Real-IP", "127.0.0.1")}, false},
		"a cache":                  {[]change{local, header("Via", "1.1 cache")}, false},
		"an empty header":          {[]change{local, header("X-Forwarded-For", "")}, false},
		"the page of another site": {[]change{local, header("Origin", "https://evil.example")}, false},
		"another site, unnamed":    {[]change{local, header("Sec-Fetch-Site", "cross-site")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			r := h.call("POST", "/auth/sign-up", `{"email":"ada@example.org","password":"correct horse","name":"Ada"}`, tt.with...).want(201)
			c, err := http.ParseSetCookie(r.header.Get("Set-Cookie"))
			if err != nil {
				t.Fatal(err)
			}
			want := 403
			if tt.operates {
				want = 200
			}
			h.call("GET", "/api/operator/version", "", cookie(c.Value)).want(want)
		})
	}
}

// The link of the log leads to a page with the form, also where sign-up is closed, and works once.
func TestTheLinkOfTheLogLeadsToTheFirstAccount(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(_ *httpapi.Options, o *builtin.Options) { o.SignUp = builtin.SignUpClosed })
	link, err := h.accounts.Accounts.FirstLink(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	_, token, _ := strings.Cut(link, "=")
	if page := h.call("GET", link, "").want(200); !strings.Contains(page.body, `name="first" value="`+token+`"`) {
		t.Error(page.body)
	}
	for _, closed := range []string{"/sign-up", link + "0"} {
		if page := h.call("GET", closed, "").want(200); strings.Contains(page.body, "<form") {
			t.Errorf("%s: %s", closed, page.body)
		}
	}
	h.call("POST", "/auth/sign-up", `{"email":"eve@example.org","password":"correct horse","name":"Eve"}`, from("127.0.0.1:1")).wantCode(403, "sign_up_closed")
	h.call("POST", "/auth/sign-up", `{"email":"eve@example.org","password":"correct horse","name":"Eve","firstAccountToken":"wrong"}`).wantCode(403, "first_account_exists")
	form := url.Values{"name": {"Ada"}, "email": {"ada@example.org"}, "password": {"correct horse"}, "first": {token}}.Encode()
	r := h.call("POST", "/sign-up", form, header("Content-Type", "application/x-www-form-urlencoded"), header("Origin", base), header("X-Forwarded-For", "203.0.113.7")).want(303)
	c, err := http.ParseSetCookie(r.header.Get("Set-Cookie"))
	if err != nil {
		t.Fatal(err)
	}
	h.call("GET", "/api/operator/version", "", cookie(c.Value)).want(200)
	h.call("POST", "/auth/sign-up", `{"email":"eve@example.org","password":"correct horse","name":"Eve","firstAccountToken":"`+token+`"}`).wantCode(403, "first_account_exists")
}
