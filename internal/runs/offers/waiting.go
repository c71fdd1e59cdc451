package offers

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/runs/admission"
)

// WaitReason is why a queued run waits.
type WaitReason string

// The reasons.
const (
	WaitsForTurn        WaitReason = "turn"
	WaitsForCapacity    WaitReason = "no_room"
	WaitsForTeam        WaitReason = "team_limit"
	WaitsForDisk        WaitReason = "disk_low"
	WaitsForExecutor    WaitReason = "executor_unavailable"
	WaitsForOperator    WaitReason = "team_suspended"
	WaitsForMaintenance WaitReason = "maintenance"
	WaitsForImage                  = WaitReason(admission.Image)
	WaitsForInputs                 = WaitReason(admission.Inputs)
	WaitsForEnvironment            = WaitReason(admission.Environment)
)

// Waiting says why a run has not started, or is not heard of, and how many go
// first as far as is known.
type Waiting struct {
	Reason  WaitReason
	Message string
	Ahead   int
	Fetched Fetched // of its inputs from elsewhere, where it waits for them
}

// Fetched is how many bytes are here, and of how many; of none: nobody knows yet.
type Fetched struct{ Bytes, Total int64 }

// QueueState is what decides over the waiting of a team's queued runs.
type QueueState struct {
	Workers    []Worker        // that reported lately
	Running    int             // vCPUs of the team's running runs
	Others     bool            // whether other teams have queued runs
	Suspended  bool            // the team starts nothing
	Maintained bool            // runs that have not started wait until maintenance is over
	Announced  string          // what the operator says of that
	Ahead      map[ids.Run]int // of each run, how many queued ones are older

	Preparing map[ids.Run]WaitReason // what a worker fetches for them
	Fetched   map[ids.Run]Fetched    // how far it is with their inputs

	Launches map[ids.Run]pipeline.Engine // whose pipelines they are
}

// Queued is a run that waits.
type Queued struct {
	ID       ids.Run
	Size     credits.Size
	Executor string // empty: any
	Started  bool   // before it was put back into the queue
}

// Why explains why a run waits.
func (q QueueState) Why(r Queued) *Waiting {
	total, problem, low := 0, "no worker is running", false
	if r.Executor != "" {
		problem = "no worker of the executor " + r.Executor + " is running"
	}
	for _, w := range q.Workers {
		switch {
		case r.Executor != "" && w.Executor != r.Executor:
		case w.Problem != "":
			problem = w.Problem
		case r.Size.GPU > w.Size.GPU:
			problem = fmt.Sprintf("no worker that is running has %d %s", r.Size.GPU, plural(r.Size.GPU, "GPU", "GPUs"))
		case !w.launches(q.Launches[r.ID]):
			problem = "no worker that is running has " + q.Launches[r.ID].Title()
		case w.Draining:
			problem = draining
		case w.DiskLow:
			low = true
		default:
			total += w.Size.VCPU
		}
	}
	ahead := q.Ahead[r.ID]
	switch {
	case q.Suspended:
		return &Waiting{Reason: WaitsForOperator, Message: "The operator of this installation has suspended the team.", Ahead: ahead}
	case q.Maintained && !r.Started:
		return &Waiting{Reason: WaitsForMaintenance, Message: "New runs wait until maintenance is over." + following(q.Announced), Ahead: ahead}
	case q.Preparing[r.ID] == WaitsForImage:
		return &Waiting{Reason: WaitsForImage, Message: "Its container image is being pulled.", Ahead: ahead}
	case q.Preparing[r.ID] == WaitsForInputs:
		return &Waiting{Reason: WaitsForInputs, Message: "Its inputs are being fetched.", Ahead: ahead, Fetched: q.Fetched[r.ID]}
	case q.Preparing[r.ID] == WaitsForEnvironment:
		return &Waiting{Reason: WaitsForEnvironment, Message: "Its packages are being installed.", Ahead: ahead}
	case total == 0 && low:
		return &Waiting{Reason: WaitsForDisk, Message: "The server's disk is nearly full: nothing new starts until space is freed.", Ahead: ahead}
	case total == 0:
		return &Waiting{Reason: WaitsForExecutor, Message: "Nothing can start: " + problem + ".", Ahead: ahead}
	case q.Running > 0 && q.Others && 2*(q.Running+r.Size.VCPU) > total:
		return &Waiting{Reason: WaitsForTeam, Message: "The team is at its limit while other teams wait.", Ahead: ahead}
	case ahead > 0:
		return &Waiting{Reason: WaitsForTurn, Message: fmt.Sprintf("%d %s before it.", ahead, plural(ahead, "run is", "runs are")), Ahead: ahead}
	}
	return &Waiting{Reason: WaitsForCapacity, Message: fmt.Sprintf("It starts when %d vCPUs and %d GB are free.", r.Size.VCPU, r.Size.RAMGB)}
}

// following is what an operator says, as a sentence after another one.
func following(text string) string {
	if text == "" {
		return ""
	}
	if !strings.ContainsAny(text[len(text)-1:], ".!?") {
		text += "."
	}
	return " " + text
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
