// Package billing speaks HTTP for credits, usage, invoices and payments.
package billing

import (
	"time"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/workflows"
)

// API is the part of the HTTP API that this room serves.
type API struct {
	Billing   *billing.Service
	Workflows *workflows.Service
	AI        *ai.Service
	Pages     Pages // nil without the sandbox
	Now       func() time.Time
}
