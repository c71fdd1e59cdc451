package ai

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/httpapi/kernel"
)

const (
	visitorCookie = "millrace_visitor"
	visitorLife   = 30 * 24 * time.Hour
)

// visitor is who a cookie of ours names; anybody else becomes a new one.
func (a *API) visitor(x *kernel.Exchange) string {
	if c, err := x.Request.Cookie(visitorCookie); err == nil {
		name, mark, _ := strings.Cut(c.Value, ".")
		if hmac.Equal([]byte(mark), []byte(a.visitorMark(name))) {
			return name
		}
	}
	name := strings.ToLower(rand.Text())
	http.SetCookie(x.Writer, &http.Cookie{
		Name: visitorCookie, Value: name + "." + a.visitorMark(name), Path: "/api/ai/", MaxAge: int(visitorLife.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: !kernel.Loopback(x.Base()),
	})
	return name
}

func (a *API) visitorMark(name string) string {
	mac := hmac.New(sha256.New, a.VisitorKey)
	mac.Write([]byte(name))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
