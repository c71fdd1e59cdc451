package kernel

import (
	"net/http"
	"strings"
)

// forwarding are headers by which proxies say that they pass on a request of somebody else.
// All that begin with X-Forwarded are, too.
var forwarding = []string{
	"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "X-Original-Forwarded-For", "True-Client-Ip", "Cf-Connecting-Ip", "Fastly-Client-Ip",
}

// Direct reports whether the request comes from this very machine: by its own network, through
// no proxy, and from no page of another site that is open in a browser on it.
func (x *Exchange) Direct() bool {
	return remote(x.Request.RemoteAddr).IsLoopback() && !forwarded(x.Request.Header) && x.sameOrigin() == nil
}

func forwarded(h http.Header) bool {
	for _, name := range forwarding {
		if h.Values(name) != nil {
			return true
		}
	}
	for name := range h {
		if strings.HasPrefix(name, "X-Forwarded") {
			return true
		}
	}
	return false
}
