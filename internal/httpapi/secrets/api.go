// Package secrets speaks HTTP for a team's secrets.
package secrets

import "github.com/millrace/millrace/internal/secrets"

// API is the part of the HTTP API that this room serves.
type API struct {
	Secrets *secrets.Service
}
