package git

import (
	"context"
	"net"

	"github.com/millrace/millrace/internal/safedial"
)

// ReachOnly lets a client reach one private address, and else the public
// internet.
func (c *Client) ReachOnly(address string) {
	checked := safedial.Transport(false).DialContext
	c.dial = func(ctx context.Context, network, to string) (net.Conn, error) {
		if to == address {
			return (&net.Dialer{}).DialContext(ctx, network, to)
		}
		return checked(ctx, network, to)
	}
	c.transport.DialContext = c.dial
}

// Fetching reports whether somebody fetches, or waits to.
func (t *Trees) Fetching() bool {
	return t.fetches.Len()+t.reads.Len() > 0
}
