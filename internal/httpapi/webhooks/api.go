// Package webhooks speaks HTTP for the addresses that a team has told of its
// events.
package webhooks

import "github.com/millrace/millrace/internal/runs/webhooks"

// API is the part of the HTTP API that this room serves.
type API struct {
	Webhooks *webhooks.Service
}
