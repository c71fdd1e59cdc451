package runs

import "github.com/millrace/millrace/internal/domain/lifecycle"

// Ending is how a run ends.
type Ending struct {
	Status  lifecycle.Status
	Code    lifecycle.ErrorCode // empty when it completed or was cancelled
	Message string
}
