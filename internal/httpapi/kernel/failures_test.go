package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace/millrace/internal/domain/bounds"
	"github.com/millrace/millrace/internal/domain/fault"
)

// serverOf is a server that knows nobody.
func serverOf(change ...func(*Options)) *Server {
	o := Options{Log: slog.New(slog.DiscardHandler), Metrics: NewMetrics(prometheus.NewRegistry()), Now: time.Now, PublicURLs: []string{"https://here.example"}}
	for _, c := range change {
		c(&o)
	}
	return New(o)
}

// reply is what a route answers to a request.
func reply(s *Server, rt Route, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.serve(rt, w, r)
	return w
}

func failing(err error) Handler { return func(*Exchange) (Answer, error) { return Answer{}, err } }

// A failure is told in the language of its route, with when it is worth another try.
// What we did not foresee is not told at all.
func TestAFailureIsToldInTheLanguageOfItsRoute(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rt      Route
		err     error
		status  int
		body    string
		headers map[string]string
	}{
		"foreseen":                  {Route{}, fault.Conflict("taken").WithCode("name_taken"), 409, `{"code":"name_taken","error":"taken","requestId":"r1","success":false}`, map[string]string{"Retry-After": ""}},
		"without a code":            {Route{}, fault.NotFound("gone"), 404, `"code":"not_found"`, nil},
		"wrapped":                   {Route{}, fmt.Errorf("while x: %w", fault.NotFound("gone")), 404, `"error":"gone"`, nil},
		"in a chat":                 {Route{FailsAs: ChatFailure}, fault.Invalid("no"), 400, `"message":"no"`, nil},
		"to an OAuth client":        {Route{FailsAs: OAuthFailure}, fault.Unauthenticated("who").WithCode("invalid_client"), 401, `"error":"invalid_client"`, map[string]string{"WWW-Authenticate": ""}},
		"without a credential":      {Route{}, fault.Unauthenticated("who"), 401, `"error":"who"`, map[string]string{"WWW-Authenticate": `Bearer realm="millrace"`}},
		"of a protected resource":   {Route{ResourceMetadata: "/.well-known/x"}, fault.Unauthenticated("who"), 401, ``, map[string]string{"WWW-Authenticate": `Bearer realm="millrace", resource_metadata="https://here.example/.well-known/x"`}},
		"too often, at once":        {Route{}, fault.Limited(0, "slow"), 429, ``, map[string]string{"Retry-After": "1"}},
		"too often, a moment":       {Route{}, fault.Limited(time.Millisecond, "slow"), 429, ``, map[string]string{"Retry-After": "1"}},
		"too often, rounded up":     {Route{}, fault.Limited(1001*time.Millisecond, "slow"), 429, ``, map[string]string{"Retry-After": "2"}},
		"by our mistake":            {Route{}, errors.New("secret"), 500, `quote the request id`, map[string]string{"Retry-After": ""}},
		"something does not answer": {Route{}, errAway, 503, `does not answer`, map[string]string{"Retry-After": "5"}},
	} {
		var told string
		s := serverOf(func(o *Options) {
			o.Away = func(err error) bool { return errors.Is(err, errAway) }
			o.Failed = func(id, route, code string) { told = id + " " + route + " " + code }
		})
		tt.rt.Pattern, tt.rt.Handle = "GET /x", failing(tt.err)
		r := httptest.NewRequest("GET", "/x", nil)
		r.Header.Set("X-Request-Id", "r1")
		w := reply(s, tt.rt, r)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.body) || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		for header, want := range tt.headers {
			if got := w.Header().Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
		if ours := tt.status >= 500; (told != "") != ours || ours && !strings.HasPrefix(told, "r1 GET /x ") {
			t.Errorf("%s: %q was told of it", name, told)
		}
	}
}

var errAway = errors.New("dial tcp: secret")

// A client that has left has not been failed by us.
func TestAClientThatLeftIsNoFailureOfOurs(t *testing.T) {
	t.Parallel()
	ctx, leave := context.WithCancel(t.Context())
	var log strings.Builder
	s := serverOf(func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
		o.Failed = func(string, string, string) { t.Error("an operator is told") }
	})
	reply(s, Route{Pattern: "GET /x", Handle: func(x *Exchange) (Answer, error) {
		leave()
		return Answer{}, x.Context().Err()
	}}, httptest.NewRequestWithContext(ctx, "GET", "/x", nil))
	if log.Len() > 0 {
		t.Errorf("it is logged: %s", &log)
	}
}

// A panic is a failure of ours, unless the answer has begun; and one that cuts an
// answer off reaches the server, which hangs up.
func TestAPanicIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		begun   string
		panic   any
		status  int
		through bool
	}{
		"before the answer": {"", "boom", 500, false},
		"in the answer":     {"half", "boom", 200, false},
		"a nil map":         {"", errors.New("assignment to entry in nil map"), 500, false},
		"on purpose":        {"half", http.ErrAbortHandler, 200, true},
	} {
		w := httptest.NewRecorder()
		through := func() (got any) {
			defer func() { got = recover() }()
			serverOf().serve(Route{Pattern: "GET /x", Handle: func(*Exchange) (Answer, error) {
				return Answer{Stream: func(w http.ResponseWriter, _ *http.Request) {
					if tt.begun != "" {
						_, _ = io.WriteString(w, tt.begun)
					}
					panic(tt.panic)
				}}, nil
			}}, w, httptest.NewRequest("GET", "/x", nil))
			return nil
		}()
		if (through != nil) != tt.through || w.Code != tt.status || tt.begun != "" && w.Body.String() != tt.begun || strings.Contains(w.Body.String(), "boom") {
			t.Errorf("%s: %d %q, through came %v", name, w.Code, w.Body, through)
		}
	}
}

// A body is read up to the limit of its route, whether or not its length was told, and
// what it is counts only where there is one.
func TestABodyIsReadWithinItsLimit(t *testing.T) {
	t.Parallel()
	const most = 64
	full := `{"a":"` + strings.Repeat("x", most-len(`{"a":""}`)) + `"}`
	for name, tt := range map[string]struct {
		body    string
		chunked bool
		media   string
		status  int
	}{
		"at the limit":               {full, false, "application/json", 200},
		"at the limit, in chunks":    {full, true, "application/json", 200},
		"beyond it":                  {full + " ", false, "application/json", 413},
		"beyond it, in chunks":       {full + " ", true, "application/json", 413},
		"empty":                      {"", false, "text/plain", 200},
		"of no type":                 {"{}", false, "", 200},
		"with a charset":             {"{}", false, "application/json; charset=utf-8", 200},
		"in capitals":                {"{}", false, "Application/JSON", 200},
		"a kind of JSON":             {"{}", false, "application/merge-patch+json", 200},
		"a form":                     {"{}", false, "application/x-www-form-urlencoded", 415},
		"a type that is none":        {"{}", false, "json", 415},
		"a type that cannot be read": {"{}", false, "application/json; =", 415},
	} {
		r := httptest.NewRequest("POST", "/x", strings.NewReader(tt.body))
		if tt.chunked {
			r.ContentLength = -1
		}
		if tt.media != "" {
			r.Header.Set("Content-Type", tt.media)
		}
		w := reply(serverOf(), Route{Pattern: "POST /x", Body: most, Handle: func(x *Exchange) (Answer, error) {
			if string(x.Body) != tt.body {
				t.Errorf("%s: %d bytes of %d were read", name, len(x.Body), len(tt.body))
			}
			return OK(nil)
		}}, r)
		if w.Code != tt.status {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	broken := httptest.NewRequest("POST", "/x", io.MultiReader(strings.NewReader(`{"a":`), iotestError{}))
	if w := reply(serverOf(), Route{Pattern: "POST /x", Body: most, Handle: failing(errors.New("it is handled"))}, broken); w.Code != 400 || !strings.Contains(w.Body.String(), "the body is incomplete") {
		t.Errorf("cut off: %d %s", w.Code, w.Body)
	}
}

type iotestError struct{}

func (iotestError) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// The memory that a body takes is given back however its request ends.
func TestTheMemoryOfABodyIsGivenBack(t *testing.T) {
	t.Parallel()
	s := serverOf(func(o *Options) { o.Memory = bounds.NewMemory(10<<20, func() int64 { return 0 }) })
	body := strings.Repeat(" ", 32<<10)
	for _, handle := range []Handler{
		failing(fault.Invalid("no")), failing(errors.New("ours")), func(*Exchange) (Answer, error) { panic("boom") },
		func(*Exchange) (Answer, error) { return OK(nil) },
	} {
		for range 20 { // without giving back, three are all that fit
			w := reply(s, Route{Pattern: "POST /x", Body: SmallBody, Handle: handle}, httptest.NewRequest("POST", "/x", strings.NewReader(body)))
			if w.Code == http.StatusServiceUnavailable {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
		}
	}
}
