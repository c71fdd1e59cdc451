package kernel

import (
	"fmt"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/limits"
)

// AddressLimit bounds how often one address may call a route.
type AddressLimit struct {
	Name    string
	Window  limits.Window
	Setting string // of the server, which says how many; empty: nobody can change it
}

// limit counts the request, whatever it will be answered, and says where the
// caller stands.
func (x *Exchange) limit() error {
	l := x.Route.Limit
	if l == nil {
		return nil
	}
	s, err := x.server.Limiter.TakeHit(x.Context(), l.Name+" "+x.ClientPrefix(), l.Window, x.server.Now())
	if err != nil {
		return err
	}
	x.RateLimit(l.Name, l.Window, s)
	if !s.Allowed {
		setting := ""
		if l.Setting != "" {
			setting = " (" + l.Setting + ")"
		}
		return fault.Limited(s.Reset, "at most %d requests a minute come through here from one address%s; wait and try again", l.Window.Most, setting)
	}
	return nil
}

// CountedBy tells the caller of a rule that a room counted them by.
func (x *Exchange) CountedBy(r limits.Rule, s limits.Result) { x.RateLimit(r.Name, r.Window, s) }

// RateLimit adds a limit and where the caller stands to what the answer says.
func (x *Exchange) RateLimit(name string, w limits.Window, s limits.Result) {
	h := x.Writer.Header()
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
