package access

import (
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
)

// ResultLink is the link to the results of a run that a guest starts. It is stored in the
// transaction that stores the run, so that neither is there without the other.
type ResultLink struct {
	ID        ids.ResultLink
	TokenHash string // the token itself is kept nowhere
	TokenHint string
	Hours     int
	ExpiresAt time.Time
}
