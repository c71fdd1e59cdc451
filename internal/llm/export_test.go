package llm

import "net/http"

// Through makes a client reach its server by another way than the network.
func Through(c *Client, way http.RoundTripper) *Client {
	c.http.Transport = way
	return c
}
