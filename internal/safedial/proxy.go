package safedial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
)

// ErrInClear is why a request did not go to a proxy.
var ErrInClear = errors.New("through a proxy only addresses with https are reached, other than those that the operator has named")

// TransportThrough is TransportTo through a proxy of the operator's, which dials in our place,
// where we do not see it. A host that is not trusted is therefore looked up before, and must be
// on the public internet. A name that becomes another address for the proxy leads nowhere:
// such a host is spoken to only with TLS, and would need the certificate of that name.
func TransportThrough(proxy *url.URL, allowPrivate bool, trusted *Hosts) *http.Transport {
	t := Transport(allowPrivate)
	t.DialContext = Dialer(true).DialContext // to the proxy, and nowhere else
	t.Proxy = func(r *http.Request) (*url.URL, error) {
		if allowPrivate || trusted.Has(hostPort(r.URL)) {
			return proxy, nil
		}
		return proxy, checkBehindProxy(r.Context(), r.URL)
	}
	return t
}

// checkBehindProxy refuses what a proxy must not be asked for.
func checkBehindProxy(ctx context.Context, u *url.URL) error {
	if u.Scheme != "https" {
		return ErrInClear
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	for _, address := range found {
		if !Public(address) {
			return fmt.Errorf("%w: %s", ErrPrivate, address.Unmap())
		}
	}
	return err
}
