package httpapi

import (
	"net/http"
	"strings"
)

// What a page may do on our origin; user content never gets that far.
const (
	apiPolicy  = "default-src 'none'; frame-ancestors 'none'"
	pagePolicy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

func (x *exchange) setHeaders() {
	h := x.w.Header()
	h.Set("X-Request-Id", x.id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Content-Security-Policy", apiPolicy)
	h.Set("Cache-Control", "no-store")
	if strings.HasPrefix(x.base(), "https://") {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	h.Add("Vary", "Origin")
	if o := x.r.Header.Get("Origin"); o != "" && x.known(o) {
		h.Set("Access-Control-Allow-Origin", o)
		h.Set("Access-Control-Allow-Credentials", "true")
		h.Set("Access-Control-Expose-Headers", "ETag, Idempotent-Replayed, RateLimit, RateLimit-Policy, Retry-After, X-Request-Id")
	}
}

// preflight answers a browser that asks whether it may call us from another
// origin. Only our own origins may.
func (x *exchange) preflight() bool {
	if x.r.Method != http.MethodOptions || x.r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h := x.w.Header()
	h.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
	if h.Get("Access-Control-Allow-Origin") != "" {
		h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, X-Request-Id, X-Team-Id")
		h.Set("Access-Control-Max-Age", "600")
	}
	x.w.WriteHeader(http.StatusNoContent)
	return true
}
