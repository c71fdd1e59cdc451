package httpapi

import (
	"fmt"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/limits"
)

// addressLimit bounds how often one address may call a route.
type addressLimit struct {
	name   string
	window limits.Window
}

// limit counts the request, whatever it will be answered, and says where the
// caller stands.
func (x *exchange) limit() error {
	l := x.rt.limit
	if l == nil {
		return nil
	}
	s, err := x.api.Limiter.TakeHit(x.ctx(), l.name+" "+x.clientPrefix(), l.window, x.api.Now())
	if err != nil {
		return err
	}
	x.rateLimit(l.name, l.window, s)
	if !s.Allowed {
		return fault.Limited(s.Reset, "at most %d requests a minute come through here from one address; wait and try again", l.window.Most)
	}
	return nil
}

// counted tells the caller of a rule that a room counted them by.
func (x *exchange) counted(r limits.Rule, s limits.Result) { x.rateLimit(r.Name, r.Window, s) }

// rateLimit adds a limit and where the caller stands to what the answer says.
func (x *exchange) rateLimit(name string, w limits.Window, s limits.Result) {
	h := x.w.Header()
	for header, item := range map[string]string{
		"RateLimit-Policy": fmt.Sprintf("%q;q=%d;w=%d", name, w.Most, int(w.Per.Seconds())),
		"RateLimit":        fmt.Sprintf("%q;r=%d;t=%s", name, s.Remaining, seconds(s.Reset)),
	} {
		if others := h.Get(header); others != "" {
			item = others + ", " + item
		}
		h.Set(header, item)
	}
}
