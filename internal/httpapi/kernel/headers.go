package kernel

import (
	"net/http"
	"strings"
)

// What a page may do on our origin; user content never gets that far.
const (
	apiPolicy  = "default-src 'none'; frame-ancestors 'none'"
	pagePolicy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

func (x *Exchange) setHeaders() {
	h := x.Writer.Header()
	h.Set("X-Request-Id", x.ID)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Content-Security-Policy", apiPolicy)
	h.Set("Cache-Control", "no-store")
	if strings.HasPrefix(x.Base(), "https://") {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	if x.server.Notice != nil {
		if mark := x.server.Notice(); mark != "" {
			h.Set("X-Notice", mark)
		}
	}
	h.Add("Vary", "Origin")
	if o := x.Request.Header.Get("Origin"); o != "" && x.Known(o) {
		h.Set("Access-Control-Allow-Origin", o)
		h.Set("Access-Control-Allow-Credentials", "true")
		h.Set("Access-Control-Expose-Headers", "ETag, Idempotent-Replayed, RateLimit, RateLimit-Policy, Retry-After, X-Notice, X-Request-Id")
	}
}

// preflight answers a browser that asks whether it may call us from another
// origin. Only our own origins may.
func (x *Exchange) preflight() bool {
	if x.Request.Method != http.MethodOptions || x.Request.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h := x.Writer.Header()
	h.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
	if h.Get("Access-Control-Allow-Origin") != "" {
		h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, X-Request-Id, X-Team-Id")
		h.Set("Access-Control-Max-Age", "600")
	}
	x.Writer.WriteHeader(http.StatusNoContent)
	return true
}
