package safedial_test

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/safedial"
)

func TestOnlyThePublicInternetIsPublic(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"8.8.8.8": true, "140.82.112.3": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true, "2a00:1450:4001::1": true,
		"127.0.0.1": false, "127.9.9.9": false, "10.1.2.3": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "100.127.255.255": false, "0.0.0.0": false, "0.1.2.3": false, "224.0.0.1": false,
		"255.255.255.255": false, "240.0.0.1": false, "198.18.0.1": false, "192.0.2.1": false,
		"::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd12::1": false, "ff02::1": false, "fec0::1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::127.0.0.1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "2001::1": false,
	} {
		if got := safedial.Public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
}

func TestPrivateAddressesAreRefusedWhenDialled(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.RedirectHandler("/", http.StatusFound))
	t.Cleanup(server.Close)
	closed, open := http.Client{Transport: safedial.Transport(false)}, safedial.Transport(true)
	if _, err := closed.Get(server.URL); !errors.Is(err, safedial.ErrPrivate) {
		t.Errorf("loopback: %v", err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := open.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
}

// A host is trusted under the name and the port that the operator wrote, and no other.
func TestOnlyTheTrustedHostMayBePrivate(t *testing.T) {
	t.Parallel()
	serve := func() (*httptest.Server, *url.URL) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if to := r.URL.Query().Get("to"); to != "" {
				http.Redirect(w, r, to, http.StatusFound)
			}
		}))
		t.Cleanup(server.Close)
		u, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		return server, u
	}
	named, at := serve()
	other, _ := serve()
	trusted := new(safedial.Hosts)
	trusted.Add(at)
	client := http.Client{Transport: safedial.TransportTo(false, trusted), CheckRedirect: safedial.FewRedirects}
	sameByName := "http://" + net.JoinHostPort("localhost", at.Port())
	for address, may := range map[string]bool{
		named.URL: true, named.URL + "/simple/": true, named.URL + "?to=/elsewhere": true,
		other.URL: false, sameByName: false, named.URL + "?to=" + other.URL: false, named.URL + "?to=" + sameByName: false,
	} {
		answer, err := client.Get(address)
		if err == nil {
			answer.Body.Close()
		}
		if may && err != nil || !may && !errors.Is(err, safedial.ErrPrivate) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestAHostIsTrustedAtThePortOfItsScheme(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://Packages.example.org/simple/": "packages.example.org:443", "http://packages.example.org": "packages.example.org:80", "https://[fd00::1]:8443/": "[fd00::1]:8443",
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		hosts := new(safedial.Hosts)
		if hosts.Add(u); !hosts.Has(want) || hosts.Has("packages.example.org:8080") || hosts.Has("packages.example.org") {
			t.Errorf("%s is not trusted as %s alone", address, want)
		}
	}
}

// People learn what is wrong and not where it is.
func TestAReasonNamesNoAddress(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(nil)
	closed.Close()
	loops := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/again", http.StatusFound) }))
	breaks := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	certified := httptest.NewUnstartedServer(nil)
	certified.Config.ErrorLog = log.New(io.Discard, "", 0)
	certified.StartTLS()
	for _, s := range []*httptest.Server{loops, breaks, slow, certified} {
		t.Cleanup(s.Close)
	}
	for _, tt := range []struct {
		address, says string
		private       bool
	}{
		{closed.URL, "it refuses connections", true},
		{closed.URL, "--fetch-allow-private", false},
		{loops.URL, "redirects too often", true},
		{breaks.URL, "broke off", true},
		{slow.URL, "did not answer in time", true},
		{certified.URL, "certificate cannot be trusted", true},
		{"http://[::1", "the connection failed", true},
	} {
		client := http.Client{Transport: safedial.Transport(tt.private), CheckRedirect: safedial.FewRedirects}
		if tt.address == slow.URL {
			client.Timeout = time.Millisecond
		}
		_, err := client.Get(strings.Replace(tt.address, "://", "://user:secret@", 1))
		if err == nil {
			t.Errorf("%s answers", tt.address)
			continue
		}
		says := safedial.Reason(err)
		for _, word := range []string{"127.0.0.1", "::1", "secret", "again"} {
			if strings.Contains(says, word) || !strings.Contains(says, tt.says) {
				t.Errorf("%v is said as %q", err, says)
			}
		}
	}
	if says := safedial.Reason(&net.DNSError{Name: "packages.example.org", IsNotFound: true}); says != "its name is unknown" {
		t.Errorf("an unknown name is said as %q", says)
	}
}
