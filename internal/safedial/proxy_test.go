package safedial_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/safedial"
)

// A proxy is asked for what the operator has named, and for what is on the public internet,
// with TLS. What leads elsewhere does not reach it.
func TestAProxyIsAskedForNothingPrivateThatNobodyNamed(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.Host)
		mu.Unlock()
		switch {
		case r.Method == http.MethodConnect:
			w.WriteHeader(http.StatusTeapot) // there is no such tunnel
		case r.URL.Path == "/away":
			http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
		}
	}))
	t.Cleanup(proxy.Close)
	parsed := func(address string) *url.URL {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	named := new(safedial.Hosts)
	named.Add(parsed("http://packages.internal/simple/"))
	for _, tt := range []struct {
		address, asks string
		private       bool
		err           error // nil: none, or that of the tunnel
	}{
		{address: "http://packages.internal/simple/", asks: "GET packages.internal"},
		{address: "http://packages.internal:8080/", err: safedial.ErrInClear},
		{address: "http://8.8.8.8/", err: safedial.ErrInClear},
		{address: "https://8.8.8.8/", asks: "CONNECT 8.8.8.8:443"},
		{address: "https://10.0.0.1/", err: safedial.ErrPrivate},
		{address: "https://[::1]:8443/", err: safedial.ErrPrivate},
		{address: "https://localhost/", err: safedial.ErrPrivate},
		{address: proxy.URL, err: safedial.ErrInClear}, // the proxy itself is nobody's to call
		{address: "http://packages.internal/away?to=http://127.0.0.1/", asks: "GET packages.internal", err: safedial.ErrInClear},
		{address: "http://packages.internal/away?to=https://127.0.0.1/", asks: "GET packages.internal", err: safedial.ErrPrivate},
		{address: "http://10.0.0.1/", asks: "GET 10.0.0.1", private: true},
	} {
		asked = nil
		client := http.Client{Transport: safedial.TransportThrough(parsed(proxy.URL), tt.private, named), CheckRedirect: safedial.FewRedirects}
		answer, err := client.Get(tt.address)
		if err == nil {
			answer.Body.Close()
		}
		refused := errors.Is(err, safedial.ErrPrivate) || errors.Is(err, safedial.ErrInClear)
		mu.Lock()
		if got := strings.Join(asked, " "); got != tt.asks || refused != (tt.err != nil) || refused && !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, and the proxy is asked for %q", tt.address, err, got)
		}
		mu.Unlock()
	}
}
