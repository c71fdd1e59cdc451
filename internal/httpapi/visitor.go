package httpapi

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"time"
)

const (
	visitorCookie = "millrace_visitor"
	visitorLife   = 30 * 24 * time.Hour
)

// visitor is who a cookie of ours names; anybody else becomes a new one.
func (x *exchange) visitor() string {
	if c, err := x.r.Cookie(visitorCookie); err == nil {
		name, mark, _ := strings.Cut(c.Value, ".")
		if hmac.Equal([]byte(mark), []byte(x.api.visitorMark(name))) {
			return name
		}
	}
	name := strings.ToLower(rand.Text())
	http.SetCookie(x.w, &http.Cookie{
		Name: visitorCookie, Value: name + "." + x.api.visitorMark(name), Path: "/api/ai/", MaxAge: int(visitorLife.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: !loopback(x.base()),
	})
	return name
}

func (a *API) visitorMark(name string) string {
	mac := hmac.New(sha256.New, a.VisitorKey)
	mac.Write([]byte(name))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
