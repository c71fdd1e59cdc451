package safedial_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

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
