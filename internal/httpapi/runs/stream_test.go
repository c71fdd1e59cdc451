package runs

import (
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/httpapi/events"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/live"
)

// Who follows a run learns of a node that ended though something else happened after it
// and before the message, and is told of no state that is none.
func TestAMessageTellsOfTheNodeThatChangedLast(t *testing.T) {
	t.Parallel()
	about := func(kind lifecycle.EventType, node string) runs.Event {
		return runs.Event{Type: kind, Node: node, Message: string(kind)}
	}
	for name, tt := range map[string]struct {
		events []runs.Event
		node   any
		status any
	}{
		"nothing":                {nil, nil, nil},
		"a node that ended":      {[]runs.Event{about(lifecycle.NodeStarted, "a"), about(lifecycle.NodeDone, "b")}, "b", lifecycle.NodeSucceeded},
		"then its run":           {[]runs.Event{about(lifecycle.NodeFailedEvent, "a"), about(lifecycle.RunFailed, "")}, "a", lifecycle.NodeFailed},
		"then another's output":  {[]runs.Event{about(lifecycle.NodeDone, "a"), about(lifecycle.OutputVerified, "b")}, "a", lifecycle.NodeSucceeded},
		"an output alone":        {[]runs.Event{about(lifecycle.OutputVerified, "b")}, "b", nil},
		"nothing but of the run": {[]runs.Event{about(lifecycle.RunStarted, "")}, nil, nil},
	} {
		m := messages{&API{Options: Options{Now: time.Now}}}.Progress(runs.Changes{Events: tt.events}, events.Place{}, events.Place{}, live.Usage{})
		if m["nodeId"] != tt.node || m["nodeStatus"] != tt.status {
			t.Errorf("%s: %v is %v", name, m["nodeId"], m["nodeStatus"])
		}
		if k := len(tt.events); k > 0 && m["currentStep"] != tt.events[k-1].Message {
			t.Errorf("%s: its step is %v", name, m["currentStep"])
		}
	}
}
