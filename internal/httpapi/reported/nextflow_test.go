package reported

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs/reported"
)

func frameOf(t *testing.T, text string) frame {
	t.Helper()
	in, ok := readFrame([]byte(text))
	if !ok {
		t.Fatal(text)
	}
	return in
}

// A task is read as far as it can be: fields change their types between versions, and
// what says nothing is left out.
func TestANextflowTaskIsReadAsFarAsItCanBe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"taskId":1,"status":"COMPLETED","exit":0}`:                             "1 succeeded attempt 0 exit 0 cpu 0s",
		`{"taskId":"1","status":"COMPLETED","exit":"3","attempt":"2"}`:           "1 succeeded attempt 2 exit 3 cpu 0s",
		`{"taskId":1,"status":"RUNNING","exit":0}`:                               "1 running attempt 0 no exit cpu 0s",
		`{"taskId":1,"status":"FAILED","exit":2147483647,"errorAction":"RETRY"}`: "1 failed attempt 0 no exit cpu 0s retry",
		`{"taskId":1,"status":"FAILED","exit":-1,"errorAction":"IGNORE"}`:        "1 failed attempt 0 no exit cpu 0s ignored",
		`{"taskId":1,"status":"COMPLETED","errorAction":"RETRY"}`:                "1 succeeded attempt 0 no exit cpu 0s",
		`{"taskId":1,"status":"CACHED","realtime":2000,"pcpu":150.0}`:            "1 cached attempt 0 no exit cpu 3s",
		`{"taskId":1,"status":"CACHED","realtime":2000,"pcpu":-5}`:               "1 cached attempt 0 no exit cpu 0s",
		`{"taskId":1,"status":"CACHED","realtime":1e300,"pcpu":100}`:             "1 cached attempt 0 no exit cpu 0s",
		`{"taskId":1,"status":"CACHED","realtime":4e18,"pcpu":1e18}`:             "1 cached attempt 0 no exit cpu 277777h46m40s",
		`{"taskId":1,"status":"ABORTED","attempt":99999999999}`:                  "1 cancelled attempt 2147483647 no exit cpu 0s",
		`{"taskId":2147483647,"status":"NEW"}`:                                   "2147483647 queued attempt 0 no exit cpu 0s",
		`{"taskId":2147483648,"status":"NEW"}`:                                   "none",
		`{"taskId":-1,"status":"NEW"}`:                                           "none",
		`{"taskId":null,"status":"NEW"}`:                                         "none",
		`{"taskId":{},"status":"NEW"}`:                                           "none",
		`{"taskId":1,"status":"PAUSED"}`:                                         "none",
		`{"taskId":1,"status":"new"}`:                                            "none",
		`{"taskId":1}`:                                                           "none",
		`{"taskId":1,"status":["NEW"]}`:                                          "none",
		`{"taskId":"NaN","status":"NEW"}`:                                        "none",
	} {
		got := "none"
		if task, ok := nextflowTask(frameOf(t, text), 5); ok {
			exit := "no exit"
			if task.ExitCode != nil {
				exit = fmt.Sprint("exit ", *task.ExitCode)
			}
			got = fmt.Sprint(task.ID, " ", task.State, " attempt ", task.Attempt, " ", exit, " cpu ", task.CPU)
			if task.WillRetry {
				got += " retry"
			}
			if task.Ignored {
				got += " ignored"
			}
		}
		if got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

// Of two frames about a task that came in one moment, the one that is further along is
// the newer; of two that are as far, the later one.
func TestAFurtherFrameIsTheNewer(t *testing.T) {
	t.Parallel()
	version := func(status string, instant any) int64 {
		r := tasksAndProgress(frameOf(t, fmt.Sprintf(`{"instant":%v,"tasks":[{"taskId":1,"status":%q}]}`, instant, status)))
		if len(r.Tasks) != 1 {
			t.Fatal(status)
		}
		return r.Tasks[0].Version
	}
	rising := []int64{
		version("NEW", 9), version("SUBMITTED", 1), version("RUNNING", `-5`), version("RUNNING", 1), version("RUNNING", 2), version("COMPLETED", `"none"`),
		version("COMPLETED", 1), version("COMPLETED", int64(1)<<50-1),
	}
	if !slices.IsSorted(rising) || version("NEW", `1e18`) >= version("SUBMITTED", 0) || version("FAILED", 3) != version("CACHED", 3) {
		t.Error(rising)
	}
}

func TestTimesAreReadAsTextOrMilliseconds(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		`"2026-08-01T14:00:00+02:00"`: at, `1785585600000`: at, `"1785585600000"`: at, `null`: {}, `""`: {}, `"yesterday"`: {}, `-1`: {}, `[]`: {}, `1e300`: {},
	} {
		if got := frameOf(t, `{"t":`+text+`}`).time("t"); !got.Equal(want) {
			t.Errorf("%s is %s", text, got)
		}
	}
	if got := frameOf(t, `{"t":1e18}`).time("t"); got.Year() > 20_000 {
		t.Errorf("a time that no database takes: %s", got)
	}
}

// How a run ended is what Nextflow says of it: in one field or another.
func TestANextflowRunEndsAsItSays(t *testing.T) {
	t.Parallel()
	for workflow, want := range map[string]string{
		`{"success":true,"exitStatus":0}`:                                  "completed ",
		`{"success":"true"}`:                                               "completed ",
		`{"success":false,"errorReport":"why","errorMessage":"less"}`:      "failed why",
		`{"success":false,"errorMessage":"less","errorReport":null}`:       "failed less",
		`{"success":false}`:                                                "failed ",
		`{"success":false,"errorReport":"SIGTERM"}`:                        "cancelled Nextflow was stopped by SIGTERM",
		`{"success":true,"errorMessage":"a task failed, and was ignored"}`: "completed ",
		`{"exitStatus":1,"errorMessage":"why"}`:                            "failed why",
		`{"exitStatus":0,"errorMessage":"a warning"}`:                      "completed ",
		`{}`:   "completed ",
		`null`: "completed ",
		`[1]`:  "completed ",
	} {
		var r reported.Report
		ending(frameOf(t, `{"workflow":`+workflow+`}`), &r)
		if got := string(r.Finish.Status) + " " + r.Finish.Message; got != want {
			t.Errorf("%s is %q, want %q", workflow, got, want)
		}
	}
}

// Metrics call processes by the last part of their names. Where two have the same, it
// is nobody's.
func TestMetricsAreOfTheProcessThatTheyName(t *testing.T) {
	t.Parallel()
	var r reported.Report
	ending(frameOf(t, `{"workflow":{},"progress":{"processes":[{"name":"A:MAP"},{"name":"B:SORT"},{"name":"C:SORT"},{"name":"PLAIN"},{"name":""},1]},
		"metrics":[{"process":"MAP","cpu":{"max":2,"min":1},"mem":{"min":1},"time":"x"},{"process":"SORT","cpu":{"max":3}},{"process":"PLAIN","reads":{"max":"4"}},{"process":"NEW","cpu":{"max":null}}]}`), &r)
	var got []string
	for _, m := range r.Metrics {
		got = append(got, fmt.Sprint(m.Node, " ", m.Of, " ", m.Min, "-", m.Max))
	}
	if want := "A:MAP cpu 1-2; SORT cpu 0-3; PLAIN reads 0-4"; strings.Join(got, "; ") != want {
		t.Errorf("%q", got)
	}
}

func TestWhatARunIsCalledIsOneShortLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "-", "  ": "-", "\n\t": "-", "a\nb": "a b", " a ": "a", "\xff": "?", "a\x7fb\x00c": "a b c", strings.Repeat("é", 10): strings.Repeat("é", 10), strings.Repeat("é", 11): strings.Repeat("é", 10),
	} {
		if got := shorten(text, 10); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// Ids of other services in the settings of Nextflow say nothing, those of another team
// of ours do.
func TestAnotherTeamsWorkspaceIsRefused(t *testing.T) {
	t.Parallel()
	for query, refused := range map[string]bool{
		"": false, "workspaceId=": false, "workspaceId=12345": false, "workspaceId=team_1": false, "workspaceId=team_2": true, "workspaceId=team_": true, "workspaceId=TEAM_2": false,
	} {
		x := &kernel.Exchange{Request: httptest.NewRequest("POST", "/api/nextflow/trace/create?"+query, nil), Caller: access.Caller{Team: "team_1"}}
		if err := inWorkspace(x); fault.Is(err, fault.KindForbidden) != refused || !refused && err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}
