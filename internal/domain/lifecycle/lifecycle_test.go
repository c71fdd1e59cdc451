package lifecycle

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestATerminalRunStaysWhatItIs(t *testing.T) {
	for _, from := range Statuses() {
		for _, to := range Statuses() {
			if from.Terminal() && from.MayBecome(to) {
				t.Errorf("%s may become %s", from, to)
			}
			if from == to && from.MayBecome(to) {
				t.Errorf("%s may become itself", from)
			}
		}
	}
}

func TestEveryStateCanBeReachedAndLeft(t *testing.T) {
	reached := map[Status]bool{Queued: true}
	for _, from := range Statuses() {
		leaves := 0
		for _, to := range Statuses() {
			if from.MayBecome(to) {
				reached[to] = true
				leaves++
			}
		}
		if !from.Terminal() && leaves == 0 {
			t.Errorf("a run stays %s for ever", from)
		}
	}
	for _, s := range Statuses() {
		if !reached[s] {
			t.Errorf("no run is ever %s", s)
		}
	}
}

func TestTerminalStatesHaveAnEventOfTheirOwn(t *testing.T) {
	for s, want := range map[Status]EventType{Completed: RunCompleted, Failed: RunFailed, Cancelled: RunCancelled, Interrupted: RunInterrupted} {
		if Ended(s) != want {
			t.Errorf("%s ends with %s", s, Ended(s))
		}
	}
}

func TestWhoAnswersForWhat(t *testing.T) {
	for code, want := range map[ErrorCode]Status{
		NodeFailedCode: Failed, OutOfMemory: Failed, NodeTimeout: Failed, ImageUnavailable: Failed, InputMissing: Failed,
		OutputMissing: Failed, OutputMismatch: Failed,
		WorkerLost: Interrupted, PlanTimeLimit: Interrupted, BudgetExhausted: Interrupted, QuotaExhausted: Interrupted, CreditsExhausted: Interrupted, Internal: Interrupted,
	} {
		if code.Ends() != want {
			t.Errorf("%s ends %s, want %s", code, code.Ends(), want)
		}
	}
}

// The drawing in the documentation is made from the moves, so that it cannot
// lie. Set UPDATE=1 to write it.
func TestTheDrawingOfStatesIsTrue(t *testing.T) {
	const page, begin, end = "../../../docs/runs.md", "```mermaid\n", "```\n"
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n    [*] --> queued\n")
	for _, from := range Statuses() {
		for _, to := range Statuses() {
			if from.MayBecome(to) {
				fmt.Fprintf(&b, "    %s --> %s\n", from, to)
			}
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	drawing, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no drawing", page)
	}
	if drawing == b.String() {
		return
	}
	if os.Getenv("UPDATE") == "" {
		t.Fatalf("%s is not current: UPDATE=1 go test ./internal/domain/lifecycle", page)
	}
	if err := os.WriteFile(page, []byte(before+begin+b.String()+end+after), 0o600); err != nil {
		t.Fatal(err)
	}
}
