package builtin_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store/storetest"
)

// redirects are addresses and whether a client may have its answers sent there.
var redirects = map[string]bool{
	"https://lab.example.org/callback":   true,
	"https://lab.example.org/cb?x=1&y=2": true,
	"https://lab.example.org:8443/":      true,
	"http://127.0.0.1/":                  true,
	"http://127.0.0.1:4000/x":            true,
	"http://[::1]:4000/":                 true,
	"http://localhost/cb":                true,
	"org.example.app:/cb":                true,
	"org.example.app://cb":               true,

	"":                                   false,
	"/callback":                          false,
	"lab.example.org/cb":                 false,
	"https://":                           false,
	"https:///cb":                        false,
	"https://:443/cb":                    false,
	"https:lab.example.org":              false,
	"http://lab.example.org/cb":          false, // anybody on the way reads the code
	"http://127.0.0.1.evil.example/":     false,
	"http://localhost.evil.example/":     false,
	"http://127.0.0.1:4000@evil.example": false,
	"http://127.0.0.2/":                  false,
	"http://0.0.0.0/":                    false,
	"https://user:pw@lab.example.org/":   false,
	"https://lab.example.org/#part":      false,
	"https://lab.example.org/#":          false,
	`https://lab.example.org\@evil.org/`: false,
	"https://lab.example.org/a b":        false,
	"https://lab.example.org/\x00":       false,
	"https://lab.example.org/\n":         false,
	"https://läb.example.org/":           false,
	`https://lab.example.org/"><script>`: false,
	"javascript:alert(1)":                false,
	"data:text/html,x":                   false,
	"app:/cb":                            false, // any program could have that name
	"ftp://lab.example.org/":             false,
	"https://lab.example.org/" + strings.Repeat("x", 2000): false,
}

func TestAnswersGoToSafeAddressesAlone(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		for address, ok := range redirects {
			err := builtin.CheckClient(builtin.Client{ID: "lab", Name: "Lab", RedirectURIs: []string{address}})
			if (err == nil) != ok {
				t.Errorf("an operator registers %.60q: %v", address, err)
			}
			made, err := b.OAuth.Register(t.Context(), "Lab", []string{"https://lab.example.org/", address})
			if (err == nil) != ok {
				t.Errorf("a program registers %.60q: %v", address, err)
			}
			if err != nil {
				wantCode(t, address, err, "invalid_redirect_uri")
				if _, err := b.OAuth.Client(t.Context(), made.ID); err == nil {
					t.Errorf("%.60q: it is registered all the same", address)
				}
			}
			// What a request names is held to the same, whatever the client has registered.
			if (builtin.Client{RedirectURIs: []string{address}}).Takes(address) && !ok && strings.ContainsAny(address, "\n \x00#\\\"") {
				t.Errorf("an answer goes to %.60q", address)
			}
		}
	})
}

func TestAnAnswerGoesWhereItsClientIs(t *testing.T) {
	t.Parallel()
	web := builtin.Client{RedirectURIs: []string{"https://lab.example.org/cb", "https://lab.example.org/other"}}
	native := builtin.Client{RedirectURIs: []string{"http://127.0.0.1/"}}
	for name, tt := range map[string]struct {
		client   builtin.Client
		redirect string
		want     bool
	}{
		"as registered":                  {web, "https://lab.example.org/cb", true},
		"another that is registered":     {web, "https://lab.example.org/other", true},
		"with a query":                   {web, "https://lab.example.org/cb?x=1", false},
		"below it":                       {web, "https://lab.example.org/cb/x", false},
		"another case":                   {web, "https://LAB.example.org/cb", false},
		"another port":                   {web, "https://lab.example.org:444/cb", false},
		"unencrypted":                    {web, "http://lab.example.org/cb", false},
		"none":                           {web, "", false},
		"this machine, for a website":    {web, "http://127.0.0.1/cb", false},
		"any port of this machine":       {native, "http://127.0.0.1:55555/callback", true},
		"this machine by another name":   {native, "http://[::1]:1/x", true},
		"this machine, encrypted":        {native, "https://127.0.0.1/", false},
		"another machine of that prefix": {native, "http://127.0.0.1.evil.example/", false},
		"another machine":                {native, "http://evil.example/", false},
		"a client without any":           {builtin.Client{}, "https://lab.example.org/cb", false},
	} {
		if got := tt.client.Takes(tt.redirect); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestWhatAClientIsCalled(t *testing.T) {
	t.Parallel()
	good := func() builtin.Client {
		return builtin.Client{ID: "lab", Name: "Lab", RedirectURIs: []string{"https://lab.example.org/"}}
	}
	for name, tt := range map[string]struct {
		change func(*builtin.Client)
		fails  string
	}{
		"good":                     {func(*builtin.Client) {}, ""},
		"the longest id":           {func(c *builtin.Client) { c.ID = strings.Repeat("a", 64) }, ""},
		"one letter more":          {func(c *builtin.Client) { c.ID = strings.Repeat("a", 65) }, "a client's id"},
		"no id":                    {func(c *builtin.Client) { c.ID = "" }, "a client's id"},
		"an id with a space":       {func(c *builtin.Client) { c.ID = "a b" }, "a client's id"},
		"an id of two lines":       {func(c *builtin.Client) { c.ID = "a\n" }, "a client's id"},
		"an id that begins so":     {func(c *builtin.Client) { c.ID = "-a" }, "a client's id"},
		"the command line's":       {func(c *builtin.Client) { c.ID = builtin.CommandLine.ID }, "a client's id"},
		"as one of itself":         {func(c *builtin.Client) { c.ID = "dyn_x" }, "a client's id"},
		"no name":                  {func(c *builtin.Client) { c.Name = "" }, "a client's name"},
		"a name of spaces":         {func(c *builtin.Client) { c.Name = "  " }, "a client's name"},
		"a name of two lines":      {func(c *builtin.Client) { c.Name = "a\nb" }, "a client's name"},
		"a long name":              {func(c *builtin.Client) { c.Name = strings.Repeat("é", 200) }, ""},
		"a name that is too long":  {func(c *builtin.Client) { c.Name = strings.Repeat("é", 201) }, "a client's name"},
		"no address":               {func(c *builtin.Client) { c.RedirectURIs = nil }, "at least one redirect address"},
		"one bad address of three": {func(c *builtin.Client) { c.RedirectURIs = append(c.RedirectURIs, "http://x", "https://y/") }, `"http://x" cannot be`},
	} {
		c := good()
		tt.change(&c)
		err := builtin.CheckClient(c)
		if (err == nil) != (tt.fails == "") || err != nil && (!fault.Is(err, fault.KindInvalid) || !strings.Contains(err.Error(), tt.fails)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAProgramThatRegistersItselfIsKnownAsSuch(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		one, err := b.OAuth.Register(ctx, "", []string{"https://lab.example.org/"})
		if err != nil || !one.SelfRegistered() || one.Name == "" {
			t.Fatalf("%+v, %v", one, err)
		}
		two, err := b.OAuth.Register(ctx, "Millrace command line", []string{"https://evil.example/"})
		if err != nil || two.ID == one.ID || !two.SelfRegistered() {
			t.Fatalf("%+v, %v", two, err)
		}
		if found, err := b.OAuth.Client(ctx, two.ID); err != nil || !found.SelfRegistered() || found.Takes("http://127.0.0.1/") {
			t.Errorf("%+v, %v", found, err)
		}
		if found, err := b.OAuth.Client(ctx, builtin.CommandLine.ID); err != nil || found.SelfRegistered() {
			t.Errorf("the built-in one: %+v, %v", found, err)
		}
		many := strings.Fields(strings.Repeat("https://lab.example.org/ ", 11))
		if _, err := b.OAuth.Register(ctx, "x", many[:10]); err != nil {
			t.Errorf("ten addresses: %v", err)
		}
		for name, tt := range map[string]struct {
			name      string
			addresses []string
			code      string
		}{
			"eleven addresses":                 {"x", many, "invalid_redirect_uri"},
			"none":                             {"x", nil, "invalid_redirect_uri"},
			"a name of two lines":              {"a\nb", many[:1], "invalid_client_metadata"},
			"a name of two, as Unicode has it": {"a\u2028b", many[:1], "invalid_client_metadata"},
			"a name with a NUL":                {"a\x00b", many[:1], "invalid_client_metadata"},
			"a name that is long":              {strings.Repeat("x", 201), many[:1], "invalid_client_metadata"},
		} {
			_, err := b.OAuth.Register(ctx, tt.name, tt.addresses)
			wantCode(t, name, err, tt.code)
		}
		for _, id := range []string{"", "nobody", "dyn_nobody", "a b", strings.Repeat("x", 100), "\x00", one.ID + "x", strings.ToUpper(one.ID)} {
			_, err := b.OAuth.Client(ctx, id)
			wantCode(t, "the client "+id, err, "invalid_client")
			_, err = b.OAuth.AskingClient(ctx, builtin.AuthorizationRequest{ClientID: id, RedirectURI: "https://lab.example.org/"})
			storetest.Refused(t, "a request of "+id, err, fault.KindInvalid)
		}
		_, err = b.OAuth.AskingClient(ctx, builtin.AuthorizationRequest{ClientID: one.ID, RedirectURI: "https://evil.example/"})
		wantCode(t, "another's address", err, "invalid_request")
		if c, err := b.OAuth.AskingClient(ctx, builtin.AuthorizationRequest{ClientID: one.ID, RedirectURI: "https://lab.example.org/"}); err != nil || c.ID != one.ID {
			t.Errorf("%+v, %v", c, err)
		}
	})
}

func TestScopesAreThoseThatWereAskedFor(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{ // the scopes, or why not
		"": "", "user": "", "read": "read", "run": "read run", "write": "read write", "write run": "read run write", "read read": "read", " run\tread\n": "read run", "user read": "read",
		"admin": "!", "report": "!", "Read": "!", "read,run": "!", "openid": "!", "read openid": "!", strings.Repeat("read ", 200): "read", strings.Repeat("read ", 201): "!",
	} {
		var asked []string
		for _, scope := range builtin.ScopesAsked(words) {
			asked = append(asked, string(scope))
		}
		err := builtin.CheckScope(words)
		if want == "!" {
			wantCode(t, words, err, "invalid_scope")
			continue
		}
		if err != nil || strings.Join(asked, " ") != want {
			t.Errorf("%.20q: %v, %v", words, asked, err)
		}
	}
	request := func(change func(*builtin.AuthorizationRequest)) error {
		r := builtin.AuthorizationRequest{ResponseType: "code", State: "s", ChallengeMethod: "S256", Challenge: strings.Repeat("a", 43)}
		change(&r)
		return r.Problem()
	}
	if err := request(func(r *builtin.AuthorizationRequest) { r.State, r.Scope = strings.Repeat("s", 1000), "run" }); err != nil {
		t.Errorf("a good one: %v", err)
	}
	for name, tt := range map[string]struct {
		change func(*builtin.AuthorizationRequest)
		code   string
	}{
		"a token":            {func(r *builtin.AuthorizationRequest) { r.ResponseType = "token" }, "unsupported_response_type"},
		"code and token":     {func(r *builtin.AuthorizationRequest) { r.ResponseType = "code token" }, "unsupported_response_type"},
		"no state":           {func(r *builtin.AuthorizationRequest) { r.State = "" }, "invalid_request"},
		"a long state":       {func(r *builtin.AuthorizationRequest) { r.State = strings.Repeat("s", 1001) }, "invalid_request"},
		"a plain challenge":  {func(r *builtin.AuthorizationRequest) { r.ChallengeMethod = "plain" }, "invalid_request"},
		"a short challenge":  {func(r *builtin.AuthorizationRequest) { r.Challenge = strings.Repeat("a", 42) }, "invalid_request"},
		"a long challenge":   {func(r *builtin.AuthorizationRequest) { r.Challenge = strings.Repeat("a", 44) }, "invalid_request"},
		"a padded challenge": {func(r *builtin.AuthorizationRequest) { r.Challenge = strings.Repeat("a", 42) + "=" }, "invalid_request"},
		"another scope":      {func(r *builtin.AuthorizationRequest) { r.Scope = "admin" }, "invalid_scope"},
	} {
		wantCode(t, name, request(tt.change), tt.code)
	}
}

// Consent is the person's for one client, and is asked for again where the answer
// could go to anybody, or less than everything is wanted.
func TestConsentIsRememberedForWhomItWasGiven(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		ada, eve := b.presence(b.signUp("ada")), b.presence(b.signUp("eve"))
		web, err := b.OAuth.Register(ctx, "Lab", []string{"https://lab.example.org/", "http://127.0.0.1/"})
		if err != nil {
			t.Fatal(err)
		}
		asks := builtin.AuthorizationRequest{ClientID: web.ID, RedirectURI: "https://lab.example.org/"}
		local, narrow, other := asks, asks, asks
		local.RedirectURI, narrow.Scopes, other.ClientID = "http://127.0.0.1:5/", access.ScopeSet{access.ScopeRead}, "other"
		remembered := func(p identity.Presence, r builtin.AuthorizationRequest) bool {
			t.Helper()
			yes, err := b.OAuth.Remembered(ctx, p, r)
			if err != nil {
				t.Error(err)
			}
			return yes
		}
		if remembered(ada, asks) {
			t.Error("before it was given")
		}
		if _, err := b.OAuth.Allow(ctx, ada, asks); err != nil {
			t.Fatal(err)
		}
		if !remembered(ada, asks) || remembered(eve, asks) || remembered(ada, local) || remembered(ada, narrow) || remembered(ada, other) {
			t.Error("it is remembered for another person, place, program or less")
		}
		apps, err := b.OAuth.Apps(ctx, ada)
		if err != nil || len(apps) != 1 || apps[0].Client.Name != "Lab" || apps[0].Grants != 0 || !apps[0].LastUsedAt.IsZero() {
			t.Errorf("%+v, %v", apps, err)
		}
		if list, err := b.OAuth.Apps(ctx, eve); err != nil || len(list) != 0 {
			t.Errorf("another sees %+v, %v", list, err)
		}
		if err := b.OAuth.RevokeApp(ctx, eve, web.ID); err != nil && !fault.Is(err, fault.KindNotFound) {
			t.Error(err)
		}
		if !remembered(ada, asks) {
			t.Error("another person took it back")
		}
		if err := b.OAuth.RevokeApp(ctx, ada, web.ID); err != nil {
			t.Error(err)
		}
		if remembered(ada, asks) {
			t.Error("it is remembered after it was taken back")
		}
	})
}
