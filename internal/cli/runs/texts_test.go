package runs

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/api"
)

func TestARunThatDidNotCompleteIsAnExitStatus(t *testing.T) {
	t.Parallel()
	why := "Step a\x1b[2J exited\nwith 3"
	for name, tt := range map[string]struct {
		status api.RunStatus
		reason *string
		code   int
		says   string
	}{
		"failed":              {api.RunStatusFailed, &why, 1, "run_1 failed: Step a[2J exited\nwith 3"},
		"failed, without why": {api.RunStatusFailed, nil, 1, "run_1 failed"},
		"cancelled":           {api.RunStatusCancelled, &why, 2, "run_1 was cancelled"},
		"interrupted":         {api.RunStatusInterrupted, &why, 2, "run_1 was interrupted: Step a[2J exited\nwith 3"},
	} {
		err := outcome(api.Run{ID: "run_1", Status: tt.status, ErrorMessage: tt.reason})
		e, ok := errors.AsType[Ended](err)
		if !ok || e.ExitCode() != tt.code || e.Error() != tt.says {
			t.Errorf("%s: %v, %d", name, err, e.ExitCode())
		}
	}
	if err := outcome(api.Run{Status: api.RunStatusCompleted}); err != nil {
		t.Errorf("completed: %v", err)
	}
	if l := (Left{"run_1"}); l.ExitCode() != 130 || !strings.Contains(l.Error(), "millrace runs watch run_1") {
		t.Errorf("%v", l)
	}
}

func TestWhyARunWaits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		waiting *api.Waiting
		want    string
	}{
		"it does not":       {nil, ""},
		"nobody before":     {&api.Waiting{Reason: "capacity", Message: "No room."}, "No room."},
		"one before":        {&api.Waiting{Reason: "capacity", Message: "No room.", Ahead: 1}, "No room. 1 run is before it."},
		"several":           {&api.Waiting{Reason: "capacity", Message: "No room.", Ahead: 1000}, "No room. 1000 runs are before it."},
		"it says so itself": {&api.Waiting{Reason: "turn", Message: "2 runs go first.", Ahead: 2}, "2 runs go first."},
	} {
		if got := waitingText(tt.waiting); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestAnItemFitsIntoItsCell(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		item any
		want string
	}{
		"none":                    {nil, "–"},
		"a word":                  {"one", "one"},
		"an empty one":            {"", ""},
		"a number":                {float64(7), "7"},
		"a list":                  {[]any{"a", float64(1)}, `["a",1]`},
		"a file":                  {"teams/team_1/uploads/file_1/reads.fq", "reads.fq"},
		"a word with a slash":     {"a/b", "a/b"},
		"as long as it may be":    {strings.Repeat("é", 40), strings.Repeat("é", 40)},
		"one letter longer":       {strings.Repeat("é", 41), strings.Repeat("é", 39) + "…"},
		"a file with a long name": {"teams/t/" + strings.Repeat("x", 50), strings.Repeat("x", 39) + "…"},
	} {
		if got := itemText(tt.item); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestWhereOutputsAreCopiedTo(t *testing.T) {
	t.Parallel()
	trouble, next := "the bucket refuses", api.Time{Time: time.Date(2026, 3, 2, 9, 15, 0, 0, time.Local)}
	for name, tt := range map[string]struct {
		to   *api.OutputCopy
		want string
	}{
		"nowhere": {nil, ""},
		"done":    {&api.OutputCopy{URL: "s3://b/", State: "done"}, "s3://b/ (done)"},
		"copying": {&api.OutputCopy{URL: "s3://b/", State: "copying", CopiedBytes: 1024, Bytes: 4096}, "s3://b/ (copying, 1.0 KB of 4.0 KB)"},
		"failing": {&api.OutputCopy{URL: "s3://b/", State: "waiting", Message: &trouble, NextAttemptAt: &next}, "s3://b/ (waiting): the bucket refuses; next attempt: 09:15:00"},
	} {
		if got := copyText(tt.to); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestANameWithItsTags(t *testing.T) {
	t.Parallel()
	name, empty := "Five times", ""
	for _, tt := range []struct {
		name *string
		tags []string
		want string
	}{{nil, nil, "–"}, {&empty, nil, "–"}, {&name, nil, "Five times"}, {nil, []string{"a", "b:1"}, "[a] [b:1]"}, {&name, []string{"a"}, "Five times [a]"}} {
		if got := nameText(tt.name, tt.tags); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	if got := runTitle(api.RunRow{WorkflowName: "align", Number: 3}); got != "align #3" {
		t.Errorf("%q", got)
	}
}

func TestValuesAreTheSameHoweverTheyAreWritten(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{`1`, `1.0`, true},
		{`{"a":1,"b":[2]}`, ` {"b":[20e-1], "a":1}`, true},
		{`"x"`, `"\u0078"`, true},
		{`null`, `null`, true},
		{`9007199254740993`, `9007199254740993`, true},
		{`9007199254740993`, `9007199254740992`, false},
		{`[1,2]`, `[2,1]`, false},
		{`{"a":1}`, `{"a":1,"b":1}`, false},
		{`"1"`, `1`, false},
		{`1`, `"1"`, false},
		{`null`, `0`, false},
		{`{}`, `[]`, false},
		{`[]`, `{}`, false},
		{``, ``, false},
		{`1`, ``, false},
		{`1e999`, `1e998`, false},
	} {
		if same := sameJSON(json.RawMessage(tt.a), json.RawMessage(tt.b)); same != tt.same {
			t.Errorf("%s and %s: the same is %v", tt.a, tt.b, same)
		}
	}
}
