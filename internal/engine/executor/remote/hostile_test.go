package remote_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	"github.com/millrace/millrace/internal/engine/executor/remote"
)

// A task that speaks for its shim says that it took no time, or a thousand years. What
// is paid for is when the server heard of its beginning and its end.
func TestTimesThatAreBilledAreTheServersOwn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, claimed := range map[string]executor.Exit{
		"none, an hour ago":    {Start: now.Add(-time.Hour), End: now.Add(-time.Hour)},
		"a thousand years":     {Start: now.AddDate(-500, 0, 0), End: now.AddDate(500, 0, 0)},
		"an end before it all": {Start: now, End: time.Unix(0, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, s, _ := fixture(t)
			s.mu.Lock()
			s.hold = &reconciler.JobStatus{Node: "here"} // nothing is started: this test is the shim
			s.mu.Unlock()
			spec := b.Spec(t, "true")
			before := time.Now()
			h := b.Submit(t, spec)
			id, session, x := remote.ID(spec.Key), strings.Repeat("s", 52), stranger{t, s}
			say := func(path, body string) {
				t.Helper()
				if got := x.ask("POST", id+path, session, body); got != 200 {
					t.Fatalf("%s: %d", path, got)
				}
			}
			say("/begin", `{"version":1,"fence":"`+spec.Fence+`","session":"`+session+`","ticket":"`+attempts.Ticket(testKey, id, spec.Fence)+`"}`)
			say("/report", `{"running":true}`)
			claimed.Fence = spec.Fence
			exit, err := json.Marshal(claimed)
			if err != nil {
				t.Fatal(err)
			}
			say("/report", `{"exit":`+string(exit)+`}`)
			seen := b.End(t, h)
			after := time.Now()
			if e := seen.Exit; e.Start.Before(before.Add(-time.Second)) || e.End.Before(e.Start) || e.End.After(after.Add(time.Second)) {
				t.Errorf("it is billed from %s to %s, and was here from %s to %s", e.Start, e.End, before, after)
			}
		})
	}
}
