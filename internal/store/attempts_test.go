package store_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

// submitted is an attempt that waits for its shim.
func submitted(t *testing.T, db *store.DB, id, fence string) {
	t.Helper()
	a := attempts.Attempt{ID: id, Run: "run_1", Scope: "here", Fence: fence, About: json.RawMessage(`{"a":1}`), SubmittedAt: time.Now()}
	if err := db.AddAttempt(t.Context(), a, attempts.Order{Objects: []string{"an/object"}, Task: json.RawMessage(`{"secret":"horse"}`)}); err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, what string, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("%s: %v", what, err)
	}
}

func TestAnAttemptIsBoundToOneSession(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, now := t.Context(), time.Now()
		submitted(t, db, "a", "f")
		submitted(t, db, "a", "f") // again changes nothing
		wantKind(t, "another fence", db.AddAttempt(ctx, attempts.Attempt{ID: "a", Fence: "g", SubmittedAt: now}, attempts.Order{}), fault.KindConflict)
		_, err := db.BeginAttempt(ctx, "a", "g", "s", now)
		wantKind(t, "begun under another fence", err, fault.KindStale)
		_, _, err = db.OrderOf(ctx, "a", "")
		wantKind(t, "an order before anybody has come", err, fault.KindUnauthenticated)
		for range 2 { // the answer may have been lost
			o, err := db.BeginAttempt(ctx, "a", "f", "s", now)
			if err != nil || len(o.Objects) != 1 || !strings.Contains(string(o.Task), "horse") {
				t.Errorf("begun: %+v, %v", o, err)
			}
		}
		_, err = db.BeginAttempt(ctx, "a", "f", "t", now)
		wantKind(t, "a second session", err, fault.KindConflict)
		_, err = db.ReportAttempt(ctx, "a", "t", attempts.Report{Running: true}, now)
		wantKind(t, "a report of another", err, fault.KindUnauthenticated)
		_, err = db.ReportAttempt(ctx, "b", "s", attempts.Report{Running: true}, now)
		wantKind(t, "a report about nothing", err, fault.KindNotFound)
	})
}

func TestWhatAShimReportsIsKeptOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, now := t.Context(), time.Now()
		submitted(t, db, "a", "f")
		if _, err := db.BeginAttempt(ctx, "a", "f", "s", now); err != nil {
			t.Fatal(err)
		}
		for _, list := range [][]attempts.Ref{nil, {{ID: "a", Fence: "f"}, {ID: "nothing", Fence: "f"}}, {{ID: "a", Fence: "another"}}} {
			if err := db.RenewAttempts(ctx, list); err != nil {
				t.Fatal(err)
			}
		}
		for _, step := range []struct {
			log  attempts.Log
			want int64
		}{
			{attempts.Log{Offset: 0, Text: []byte("one\n")}, 4},
			{attempts.Log{Offset: 0, Text: []byte("one\n")}, 4},                                             // said again
			{attempts.Log{Offset: 2, Text: []byte("e\ntwo\n")}, 8},                                          // partly again
			{attempts.Log{Offset: 100, Text: []byte("a gap\n")}, 8},                                         // not taken
			{attempts.Log{Offset: 8, Text: []byte("three\n")}, 14},                                          // and goes on
			{attempts.Log{Offset: 14, Text: []byte{0, 0xff, 1}}, 17},                                        // whatever it is
			{attempts.Log{Offset: 90, Missing: 70, Text: []byte("an end\n")}, 17},                           // less is missing than it says
			{attempts.Log{Offset: attempts.MaxSize, Missing: attempts.MaxSize - 17, Text: []byte("x")}, 17}, // nothing is so long
			{attempts.Log{Offset: math.MinInt64 + 16, Missing: math.MaxInt64, Text: []byte("x")}, 17},       // nor begins there
			{attempts.Log{Offset: 90, Missing: 73, Text: []byte("an end\n")}, 97},                           // the shim has no more of it
			{attempts.Log{Offset: 90, Missing: 73, Text: []byte("an end\n")}, 97},                           // said again
		} {
			a, err := db.ReportAttempt(ctx, "a", "s", attempts.Report{Running: true, State: json.RawMessage(`{"x":1}`), Log: &step.log}, now)
			if err != nil || a.LogSize != step.want || a.Renewals != 1 || a.Stop {
				t.Errorf("after %q at %d: %+v, %v", step.log.Text, step.log.Offset, a, err)
			}
		}
		if pieces, err := db.AttemptLog(ctx, "a", 5, 4); err != nil || len(pieces) != 2 || pieces[0].Offset != 4 || string(pieces[1].Text) != "three\n" {
			t.Errorf("from 5 on: %+v, %v", pieces, err)
		}
		for _, offset := range []int64{17, 50, 90, 96} {
			if pieces, err := db.AttemptLog(ctx, "a", offset, 4); err != nil || len(pieces) != 1 || pieces[0].Offset != 90 || string(pieces[0].Text) != "an end\n" {
				t.Errorf("from %d on: %+v, %v", offset, pieces, err)
			}
		}
		for _, grace := range []time.Duration{10 * time.Second, time.Second, time.Minute} { // it only gets shorter
			if err := db.StopAttempt(ctx, attempts.Ref{ID: "a", Fence: "f"}, grace); err != nil {
				t.Fatal(err)
			}
		}
		a, err := db.ReportAttempt(ctx, "a", "s", attempts.Report{Exit: json.RawMessage(`{"code":3}`)}, now)
		if err != nil || !a.Stop || a.Grace != time.Second {
			t.Errorf("stopped: %+v, %v", a, err)
		}
		list, err := db.AttemptsIn(ctx, "here")
		if err != nil || len(list) != 1 || !list[0].Said || list[0].Decided || list[0].RunningAt.IsZero() || list[0].EndedAt.IsZero() || list[0].LogSize != 97 {
			t.Errorf("it is %+v, %v", list, err)
		}
		if list, err := db.AttemptsIn(ctx, "elsewhere"); err != nil || len(list) != 0 {
			t.Errorf("in another scope: %+v, %v", list, err)
		}
	})
}

func TestNothingIsTakenAfterTheEnd(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, now := t.Context(), time.Now()
		for id, end := range map[string]func() error{
			"said": func() error {
				_, err := db.ReportAttempt(ctx, "said", "s", attempts.Report{Exit: json.RawMessage(`{}`)}, now)
				return err
			},
			"decided": func() error {
				return db.ConcludeAttempt(ctx, attempts.Ref{ID: "decided", Fence: "f"}, json.RawMessage(`{"first":1}`))
			},
		} {
			submitted(t, db, id, "f")
			if _, err := db.BeginAttempt(ctx, id, "f", "s", now); err != nil {
				t.Fatal(err)
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			_, err := db.ReportAttempt(ctx, id, "s", attempts.Report{Exit: json.RawMessage(`{"code":1}`)}, now)
			wantKind(t, id+": a second end", err, fault.KindStale)
			_, err = db.BeginAttempt(ctx, id, "f", "s", now)
			wantKind(t, id+": begun again", err, fault.KindStale)
			_, _, err = db.OrderOf(ctx, id, "s")
			wantKind(t, id+": its inputs", err, fault.KindStale)
		}
		if err := db.ConcludeAttempt(ctx, attempts.Ref{ID: "decided", Fence: "f"}, json.RawMessage(`{"second":1}`)); err != nil {
			t.Fatal(err)
		}
		list, err := db.AttemptsIn(ctx, "here")
		if err != nil || len(list) != 2 || !list[0].Decided || list[0].Said {
			t.Errorf("%+v, %v", list, err)
		}
		if end, err := db.AttemptEnd(ctx, "decided", "f"); err != nil || string(end.Outcome) != `{"first":1}` || end.Exit != nil {
			t.Errorf("%+v, %v", end, err)
		}
		if end, err := db.AttemptEnd(ctx, "said", "f"); err != nil || string(end.Exit) != `{}` || end.Outcome != nil {
			t.Errorf("%+v, %v", end, err)
		}
		if end, err := db.AttemptEnd(ctx, "said", "another"); err != nil || end.Exit != nil {
			t.Errorf("under another fence: %+v, %v", end, err)
		}
		for _, fence := range []string{"another", "f"} {
			if err := db.RemoveAttempt(ctx, attempts.Ref{ID: "decided", Fence: fence}); err != nil {
				t.Fatal(err)
			}
		}
		if list, err := db.AttemptsIn(ctx, "here"); err != nil || len(list) != 1 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

// Attempts of runs that ended long ago, or are gone, are forgotten. Others stay,
// however old they are.
func TestAttemptsOfEndedRunsAreForgotten(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, now := t.Context(), time.Now()
		submitted(t, db, "a", "f") // of no run that there is
		if n, err := db.RemoveEndedAttempts(ctx, now.Add(-time.Hour)); err != nil || n != 0 {
			t.Errorf("%d that are new were removed, %v", n, err)
		}
		if unknown, err := db.UnknownAttempts(ctx, []string{"a", "b", "c"}); err != nil || !slices.Equal(unknown, []string{"b", "c"}) {
			t.Errorf("unknown are %v, %v", unknown, err)
		}
		if n, err := db.RemoveEndedAttempts(ctx, now.Add(time.Hour)); err != nil || n != 1 {
			t.Errorf("%d that are old were removed, %v", n, err)
		}
		if unknown, err := db.UnknownAttempts(ctx, []string{"a"}); err != nil || len(unknown) != 1 {
			t.Errorf("unknown are %v, %v", unknown, err)
		}
	})
}
