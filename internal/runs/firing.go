package runs

import (
	"errors"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
)

// The types of starters who are no people.
const (
	BySchedule = "schedule"
	ByTrigger  = "trigger"
)

// Firing is the time of a schedule that a run is for. That it is taken, and the
// run, are one transaction: each time is taken once, on however many servers.
type Firing struct {
	Schedule ids.Schedule
	Due      time.Time
	Next     time.Time // when it is due again
	Waited   bool      // it was put off until an earlier run had ended
	Times    int       // how many due times it stands for
}

// Why a run of a schedule is not started.
var (
	// ErrTaken is for who comes second to a due time, or too late.
	ErrTaken = errors.New("this time of the schedule is taken")
	// ErrOverlap is while an earlier run of the schedule has not ended.
	ErrOverlap = errors.New("an earlier run of the schedule has not ended")
)

// MakerGone is the code of a refusal because somebody may not start runs any
// more.
const MakerGone = "maker_gone"

// TeamSuspended is the code of a refusal until the operator lifts it.
const TeamSuspended = "team_suspended"
