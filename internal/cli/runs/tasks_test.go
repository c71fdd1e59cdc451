package runs

import (
	"strings"
	"testing"
)

func TestTheTasksOfARunArePrinted(t *testing.T) {
	t.Parallel()
	const table = "task_id,process,tag,status,attempt,exit,realtime,%cpu,peak_rss,item\n1,align,'=1+1,FAILED,2,137,65000,380.5,2048,align/1\n2,align,,RUNNING,1,,,,,align/2\n"
	s := serve(t, map[string]string{
		"GET /api/runs/run_1/tasks.csv": table,
		"GET /api/runs/run_2/tasks.csv": "task_id,process\n",
		"GET /api/runs":                 data(`[{"id":"run_1"}]`),
	})
	for name, tt := range map[string]struct{ command, prints, tells string }{
		"as they come":       {"runs tasks run_1 --csv", table, ""},
		"of the newest run":  {"runs tasks --csv", table, ""},
		"none":               {"runs tasks run_2", "", ""},
		"of no run":          {"runs tasks run_3 --csv", "", "no such run (see millrace runs list)"},
		"in two ways":        {"runs tasks run_1 --csv --json", "", "--csv and --json can't be combined"},
		"as JSON, unescaped": {"runs tasks run_2 --json", "[]\n", ""},
	} {
		d, status := s.types(t, strings.Fields(tt.command)...)
		if (status == 0) != (tt.tells == "") || d.Printed.String() != tt.prints || !strings.Contains(d.Errors.String(), tt.tells) {
			t.Errorf("%s: %d, printed %q, told %q", name, status, d.Printed, d.Errors)
		}
	}
	d, _ := s.types(t, "runs", "tasks", "run_1")
	if got, want := cells(d.Printed.String()), "ITEM|PROCESS|TAG|STATUS|ATTEMPT|EXIT|DURATION|%CPU|PEAK MEMORY\nalign/1|align|=1+1|FAILED|2|137|1m 05s|380.5|2.0 KB\nalign/2|align|–|RUNNING|1|–|–|–|–"; got != want {
		t.Errorf("%s", got)
	}
	d, _ = s.types(t, "runs", "tasks", "run_1", "--json")
	if !strings.Contains(d.Printed.String(), `"tag": "=1+1"`) {
		t.Errorf("%s", d.Printed)
	}
}
