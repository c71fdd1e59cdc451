package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store/storetest"
)

// started awaits the first task of a run.
func (s *harness) started(definition string) (r runs.Run) {
	s.t.Helper()
	id := s.submit(definition, `{}`)
	return s.await(id, func(runs.Run) bool { return strings.Contains(s.story(id), "node.started") })
}

func TestAPlansTimeEndsARun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		s.open("w1")
		r := s.started(`{"nodes":[{"id":"long","command":"# dummy: sleep=5h"}]}`)
		s.ahead.Store(int64(time.Hour))
		if r = s.await(r.ID, terminal); r.Status != lifecycle.Interrupted || r.ErrorCode != lifecycle.PlanTimeLimit {
			t.Errorf("%s %s: %s", r.Status, r.ErrorCode, r.ErrorMessage)
		}
	})
}

func TestARunThatNobodyCanPayIsInterrupted(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		s.open("w1")
		// A little more than the first minute is left.
		if err := s.db.Hold(t.Context(), s.team, "other", 500*credits.Credit-70*2800, time.Now()); err != nil {
			t.Fatal(err)
		}
		r := s.started(`{"nodes":[{"id":"long","command":"# dummy: sleep=5h"}]}`)
		s.ahead.Store(int64(time.Minute))
		r = s.await(r.ID, terminal)
		if r.Status != lifecycle.Interrupted || r.ErrorCode != lifecycle.CreditsExhausted || !strings.Contains(r.ErrorMessage, "top-up") {
			t.Errorf("%s %s: %s", r.Status, r.ErrorCode, r.ErrorMessage)
		}
		b, err := s.db.Balance(t.Context(), s.team, time.Now().Add(time.Minute))
		if err != nil || b.Spent != r.CreditsUsed || b.Held != 500*credits.Credit-70*2800 {
			t.Errorf("%+v for %v, %v", b, r.CreditsUsed, err)
		}
	})
}

func TestARunIsInterruptedWhenABudgetIsSpent(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		s.open("w1")
		// A little more than the first minute.
		limit := billing.Budget{Scope: billing.TeamBudget, Limit: 70 * 2800, Hard: true}
		if err := s.db.SetBudgets(t.Context(), s.team, []billing.Budget{limit}, time.Now()); err != nil {
			t.Fatal(err)
		}
		r := s.started(`{"nodes":[{"id":"long","command":"# dummy: sleep=5h"}]}`)
		s.ahead.Store(int64(time.Minute))
		r = s.await(r.ID, terminal)
		if r.Status != lifecycle.Interrupted || r.ErrorCode != lifecycle.BudgetExhausted || !strings.Contains(r.ErrorMessage, "the team's budget") {
			t.Errorf("%s %s: %s", r.Status, r.ErrorCode, r.ErrorMessage)
		}
		list, err := s.db.Budgets(t.Context(), s.team, time.Now().Add(time.Minute))
		if err != nil || list[0].Spent != r.CreditsUsed || list[0].Held != 0 {
			t.Errorf("%+v for %v, %v", list, r.CreditsUsed, err)
		}
	})
}

func TestANodeWhoseExpressionIsHostileFailsWithASentence(t *testing.T) {
	t.Parallel()
	s := newHarness(t, storetest.SQLite(t))
	s.open("w1")
	for definition, says := range map[string]string{
		`{"nodes":[{"id":"a","command":"true","scatter":{"over":"[\"x\\u0000--bind\\u0000/\\u0000/\\u0000--\"]"}}]}`:                                         "item 1: a text contains the NUL character",
		`{"nodes":[{"id":"a","command":"true","scatter":{"over":"[[1]]` + strings.Repeat(`.map(a, [a,a,a,a,a,a,a,a,a,a])`, 8) + `"}}]}`:                      "takes more than 2000000 steps",
		`{"nodes":[{"id":"a","command":"true","when":"[[1]]` + strings.Repeat(`.map(a, [a,a,a,a,a,a,a,a,a,a])`, 8) + `.exists(a, a == a)"}]}`:                "takes more than 2000000 steps",
		`{"nodes":[{"id":"a","command":"true","when":"{\"a\": true}[\"b\\u0000\\n\"]"}]}`:                                                                    "no such key",
		`{"parameters":{"n":{"type":"integer","default":1}},"nodes":[{"id":"a","command":"true","scatter":{"over":"[1.0 / (params.n == 1 ? 0.0 : 1.0)]"}}]}`: "not a number",
	} {
		id := s.submit(definition, `{}`)
		r := s.await(id, terminal)
		if r.Status != lifecycle.Failed || r.ErrorCode != lifecycle.NodeFailedCode || !strings.Contains(r.ErrorMessage, "Step a: ") || !strings.Contains(r.ErrorMessage, says) {
			t.Errorf("%s %s %q, want %q", r.Status, r.ErrorCode, r.ErrorMessage, says)
		}
	}
}

// Empty outputs take up no storage of a plan, but files and rows of the server.
func TestARunHasABoundedNumberOfOutputs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *harness) {
		s.maxOutputs = 4
		s.open("w1")
		for items, failed := range map[string]bool{"[1,2]": false, "[1,2,3]": true} {
			id := s.submit(`{"nodes":[
				{"id":"first","command":"# dummy: output:a= output:b=","outputs":{"a":{"path":"a"},"b":{"path":"b"}}},
				{"id":"then","command":"# dummy: output:c=","outputs":{"c":{"path":"c"}},"scatter":{"over":"`+items+`","maxParallel":1}}],
				"edges":[{"id":"e","source":"first","target":"then"}]}`, `{}`)
			r := s.await(id, terminal)
			if (r.Status == lifecycle.Failed) != failed || failed && (r.ErrorCode != lifecycle.OutputMissing || !strings.Contains(r.ErrorMessage, "more than 4")) {
				t.Errorf("%s: %s %s: %s", items, r.Status, r.ErrorCode, r.ErrorMessage)
			}
			if kept := s.outputs(id); len(kept) != 4 {
				t.Errorf("%s: %d outputs are kept", items, len(kept))
			}
		}
	})
}
