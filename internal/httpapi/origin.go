package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
)

const sessionCookie = "millrace_session"

// base is the public URL that answers should point to: the one whose host the
// request came to, else the first. It is never an echo of what was sent.
func (x *exchange) base() string {
	for _, u := range x.api.PublicURLs {
		if hostOf(u) == x.r.Host {
			return u
		}
	}
	return x.api.PublicURLs[0]
}

func hostOf(publicURL string) string {
	_, host, _ := strings.Cut(publicURL, "://")
	return host
}

// origin is the frontend that a token is minted for.
func (x *exchange) origin() string {
	o := x.r.Header.Get("Origin")
	if o == "" {
		return x.api.PublicURLs[0]
	}
	if u, err := url.Parse(o); err != nil || u.Host == "" || len(o) > 300 || !printable(o) {
		return "null"
	}
	return o
}

// sameOrigin refuses a write that another site's page makes with our cookie.
// Browsers say where a write comes from; whoever says nothing is no browser.
func (x *exchange) sameOrigin() error {
	if safe(x.r.Method) {
		return nil
	}
	foreign := fault.Forbidden("this request comes from a page of another site; if that site is yours, add it to --public-urls").WithCode("cross_origin")
	origin, site := x.r.Header.Get("Origin"), x.r.Header.Get("Sec-Fetch-Site")
	switch {
	case x.known(origin), origin == "" && (site == "" || site == "none"), site == "same-origin" && (origin == "" || origin == "null"):
		return nil // a form on a page without referrers says "null"
	}
	return foreign
}

func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

func (x *exchange) known(origin string) bool { return slices.Contains(x.api.PublicURLs, origin) }

// cookie is the session cookie; an empty secret takes it back.
func (x *exchange) cookie(secret string, until time.Time) string {
	c := http.Cookie{
		Name: sessionCookie, Value: secret, Path: "/", Expires: until,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: !loopback(x.base()),
	}
	if secret == "" {
		c.MaxAge = -1
	}
	return c.String()
}

func loopback(publicURL string) bool {
	u, err := url.Parse(publicURL)
	if err != nil {
		return false
	}
	if u.Hostname() == "localhost" {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return ip != nil && ip.IsLoopback()
}

// address is where the request comes from. What proxies say counts only from
// proxies we were told to trust.
func (x *exchange) address() string {
	addr := remote(x.r.RemoteAddr)
	if !x.trusted(addr) {
		return addr.String()
	}
	hops := strings.Split(strings.Join(x.r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		next, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		addr = next.Unmap()
		if !x.trusted(addr) {
			break
		}
	}
	return addr.String()
}

func remote(hostport string) netip.Addr {
	ap, err := netip.ParseAddrPort(hostport)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}

func (x *exchange) trusted(addr netip.Addr) bool {
	return slices.ContainsFunc(x.api.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// client prefix is the address for counting: an IPv6 customer owns a whole /64.
func (x *exchange) clientPrefix() string {
	addr, err := netip.ParseAddr(x.address())
	if err != nil || addr.Is4() {
		return x.address()
	}
	p, err := addr.WithZone("").Prefix(64)
	if err != nil {
		return x.address()
	}
	return p.String()
}
