// Package connections speaks HTTP for a team's connections to others' stores.
package connections

import "github.com/millrace/millrace/internal/connections"

// API is the part of the HTTP API that this room serves.
type API struct {
	Connections *connections.Service
}
