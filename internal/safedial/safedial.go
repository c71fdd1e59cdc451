// Package safedial opens connections for addresses that people we do not trust
// have named. It refuses private networks at the last moment, when the name has
// become an address, so that neither a name that changes its mind nor a
// redirect gets around it.
package safedial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrPrivate is why a connection was refused.
var ErrPrivate = errors.New("the address is not on the public internet")

// closed are networks that are nobody's, or somebody's own; beside those that
// netip knows. The last ones carry an IPv4 address inside, which could be
// anyone's.
var closed = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"100::/64", "2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10",
	"::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/23", "2002::/16",
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// Public reports whether an address is one of the public internet.
func Public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsGlobalUnicast() && !a.IsPrivate() &&
		!slices.ContainsFunc(closed, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Control is for net.Dialer.Control: it sees the address that is about to be
// connected to. With allowPrivate it lets everything pass.
func Control(allowPrivate bool) func(network, address string, c syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		if allowPrivate {
			return nil
		}
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%w: %q", ErrPrivate, address)
		}
		if !Public(at.Addr()) {
			return fmt.Errorf("%w: %s", ErrPrivate, at.Addr())
		}
		return nil
	}
}

// Dialer is one whose connections pass Control.
func Dialer(allowPrivate bool) *net.Dialer {
	return &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second, Control: Control(allowPrivate)}
}

// Hosts are hosts with their ports that the operator has named, and that may therefore be
// in private networks. All methods may be called at the same time.
type Hosts struct {
	mu   sync.RWMutex
	list []string
}

// Add adds the host of an address.
func (h *Hosts) Add(u *url.URL) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, hostPort(u))
}

// hostPort is the host of an address with its port.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" && u.Scheme == "https" {
		port = "443"
	}
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// Has reports whether a host with its port is among them.
func (h *Hosts) Has(hostPort string) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return slices.ContainsFunc(h.list, func(host string) bool { return strings.EqualFold(host, hostPort) })
}

// Transport is an http.Transport of which every connection passes Control. A
// proxy would look names up out of our sight, so one is used only where private
// networks are allowed.
func Transport(allowPrivate bool) *http.Transport { return TransportTo(allowPrivate, new(Hosts)) }

// TransportTo is Transport, but for connections to exactly the hosts that are trusted:
// those are not checked.
func TransportTo(allowPrivate bool, trusted *Hosts) *http.Transport {
	checked, open := Dialer(allowPrivate), Dialer(true)
	t := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if trusted.Has(address) {
				return open.DialContext(ctx, network, address)
			}
			return checked.DialContext(ctx, network, address)
		},
		ForceAttemptHTTP2: true, TLSHandshakeTimeout: 15 * time.Second,
		ResponseHeaderTimeout: time.Minute, ExpectContinueTimeout: time.Second,
		MaxIdleConns: 16, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 256 << 10,
	}
	if allowPrivate {
		t.Proxy = http.ProxyFromEnvironment
	}
	return t
}
