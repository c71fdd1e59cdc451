package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// reply is an answer, already held against the contract.
type reply struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

// at digs a value out of the JSON body: at("data", "id").
func (r reply) at(path ...string) any {
	r.t.Helper()
	var v any
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		r.t.Fatalf("no JSON: %v in %q", err, r.body)
	}
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			r.t.Fatalf("no %v in %s", path, r.body)
		}
		v = m[name]
	}
	return v
}

func (r reply) text(path ...string) string {
	r.t.Helper()
	s, ok := r.at(path...).(string)
	if !ok {
		r.t.Fatalf("no text at %v in %s", path, r.body)
	}
	return s
}

func (r reply) want(status int) reply {
	r.t.Helper()
	if r.status != status {
		r.t.Errorf("got %d, want %d: %s", r.status, status, r.body)
	}
	return r
}

func (r reply) wantCode(status int, code string) reply {
	r.t.Helper()
	r.want(status)
	if got := r.at("code"); got != code {
		r.t.Errorf("got code %v, want %q: %s", got, code, r.body)
	}
	return r
}

// change adjusts a request before it is sent.
type change func(*http.Request)

func bearer(token string) change { return header("Authorization", "Bearer "+token) }

func header(name, value string) change {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func cookie(secret string) change {
	return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "millrace_session", Value: secret}) }
}

func from(address string) change { return func(r *http.Request) { r.RemoteAddr = address } }

// call sends a request and holds the answer against the contract.
func (h *harness) call(method, path, body string, changes ...change) reply {
	h.t.Helper()
	r := httptest.NewRequest(method, base+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, c := range changes {
		c(r)
	}
	w := httptest.NewRecorder()
	_, pattern := h.mux.Handler(r)
	h.mux.ServeHTTP(w, r)
	got := reply{t: h.t, status: w.Code, header: w.Header(), body: w.Body.String()}
	if got.header.Get("X-Request-Id") == "" {
		h.t.Errorf("%s %s carries no request id", method, path)
	}
	h.holdAgainstContract(pattern, got)
	return got
}
