package kernel

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

// Base is the public URL that answers should point to: the one whose host the
// request came to, else the first. It is never an echo of what was sent.
func (x *Exchange) Base() string {
	for _, u := range x.server.PublicURLs {
		if hostOf(u) == x.Request.Host {
			return u
		}
	}
	return x.server.PublicURLs[0]
}

func hostOf(publicURL string) string {
	_, host, _ := strings.Cut(publicURL, "://")
	return host
}

// Origin is the frontend that a token is minted for.
func (x *Exchange) Origin() string {
	o := x.Request.Header.Get("Origin")
	if o == "" {
		return x.server.PublicURLs[0]
	}
	if u, err := url.Parse(o); err != nil || u.Host == "" || len(o) > 300 || !Printable(o) {
		return "null"
	}
	return o
}

// sameOrigin refuses a write that another site's page makes with our cookie.
// Browsers say where a write comes from; whoever says nothing is no browser.
func (x *Exchange) sameOrigin() error {
	if safe(x.Request.Method) {
		return nil
	}
	foreign := fault.Forbidden("this request comes from a page of another site; if that site is yours, add it to --public-urls").WithCode("cross_origin")
	origin, site := x.Request.Header.Get("Origin"), x.Request.Header.Get("Sec-Fetch-Site")
	switch {
	case x.Known(origin), origin == "" && (site == "" || site == "none"), site == "same-origin" && (origin == "" || origin == "null"):
		return nil // a form on a page without referrers says "null"
	}
	return foreign
}

func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// Known reports whether an origin is one of ours.
func (x *Exchange) Known(origin string) bool { return slices.Contains(x.server.PublicURLs, origin) }

// Cookie is the session cookie; an empty secret takes it back.
func (x *Exchange) Cookie(secret string, until time.Time) string {
	c := http.Cookie{
		Name: sessionCookie, Value: secret, Path: "/", Expires: until,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: !Loopback(x.Base()),
	}
	if secret == "" {
		c.MaxAge = -1
	}
	return c.String()
}

// Loopback reports whether a URL is one of this machine.
func Loopback(publicURL string) bool {
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

// Address is where the request comes from. What proxies say counts only from
// proxies we were told to trust.
func (x *Exchange) Address() string {
	addr := remote(x.Request.RemoteAddr)
	if !x.trusted(addr) {
		return addr.String()
	}
	hops := strings.Split(strings.Join(x.Request.Header.Values("X-Forwarded-For"), ","), ",")
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

func (x *Exchange) trusted(addr netip.Addr) bool {
	return slices.ContainsFunc(x.server.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// client prefix is the address for counting: an IPv6 customer owns a whole /64.
func (x *Exchange) ClientPrefix() string {
	addr, err := netip.ParseAddr(x.Address())
	if err != nil || addr.Is4() {
		return x.Address()
	}
	p, err := addr.WithZone("").Prefix(64)
	if err != nil {
		return x.Address()
	}
	return p.String()
}
