// Package reported speaks HTTP for runs that other engines carry out: the general
// intake, and that of Nextflow's own observer.
package reported

import (
	"time"

	"github.com/millrace/millrace/internal/runs/reported"
)

// API is the part of the HTTP API that this room serves.
type API struct {
	Reported *reported.Service
	Now      func() time.Time
}
