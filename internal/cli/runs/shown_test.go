package runs

import (
	"fmt"
	"strings"
	"testing"
)

// typed is a command, what it prints and tells, and what it asks the server.
type typed struct {
	command string
	prints  string // all of it
	tells   string // empty: it works
	asks    string // the last call; empty: whatever it is
}

func (s stub) check(t *testing.T, commands map[string]typed) {
	t.Helper()
	for name, tt := range commands {
		args := strings.Fields(tt.command)
		for i, arg := range args {
			args[i] = strings.Trim(arg, "'") // '' is an empty one
		}
		d, status := s.types(t, args...)
		calls := s.Calls()
		if (status == 0) != (tt.tells == "") || d.Printed.String() != tt.prints || !strings.Contains(d.Errors.String(), tt.tells) {
			t.Errorf("%s: %d, printed\n%s\ntold %q", name, status, d.Printed, d.Errors)
		}
		switch {
		case tt.asks == "nothing" && len(calls) > 0:
			t.Errorf("%s: it asks %q", name, calls)
		case tt.asks != "" && tt.asks != "nothing" && (len(calls) == 0 || calls[len(calls)-1] != tt.asks):
			t.Errorf("%s: it asks %q", name, calls)
		}
	}
}

func TestARunIsRenamedAsItWasTyped(t *testing.T) {
	t.Parallel()
	const at = "PATCH /api/runs/run_1 "
	s := serve(t, map[string]string{"PATCH /api/runs/run_1": data(`{"id":"run_1","name":"one\u202e","tags":["a"]}`)})
	const is = "run_1 is one [a]\n"
	s.check(t, map[string]typed{
		"a name":                  {"runs rename run_1 two", is, "", at + `{"name":"two"}`},
		"no name":                 {"runs rename run_1 ''", is, "", at + `{"name":""}`},
		"a note alone":            {"runs rename run_1 --note why", is, "", at + `{"note":"why"}`},
		"no note":                 {"runs rename run_1 --note=", is, "", at + `{"note":""}`},
		"tags, with a comma":      {"runs rename run_1 --tag a,b --tag c", is, "", at + `{"tags":["a,b","c"]}`},
		"no tags":                 {"runs rename run_1 --no-tags", is, "", at + `{"tags":[]}`},
		"tags in place of others": {"runs rename run_1 --no-tags --tag c", is, "", at + `{"tags":["c"]}`},
		"nothing":                 {"runs rename run_1", "", "nothing to change: set a name, --note, --tag or --no-tags", "nothing"},
		"of no run":               {"runs rename run_2 x", "", "no such run (see millrace runs list)", ""},
	})
}

// A sentence is one of the facts, and what the task printed is below them.
func TestWhyARunFailedIsShownLineByLine(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]string{"GET /api/runs/run_1": `{"id":"run_1","status":"failed","errorMessage":"Task A failed: no luck\n\nbegin\u001b[2J\nno luck","nodes":[]}`})
	d, _ := s.types(t, "runs", "view", "run_1")
	if got := d.Printed.String(); !strings.Contains(got, " Task A failed: no luck\n") || !strings.Contains(got, "\n\nbegin[2J\nno luck\n\nSTEP") {
		t.Errorf("it prints\n%s", got)
	}
}

func TestWhatMayHelpAFailedRunIsShown(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]string{"GET /api/runs/run_1": `{"id":"run_1","status":"failed","errorMessage":"Step a exited with status 127","nodes":[],
		"failure":{"node":"a","item":null,"attempt":1,"exitCode":127,"lines":["bash: samtools: command not found"],"suggestions":[{"code":"missing_program","message":"samtools: command not found: use conda\u001b[2J or an image.","edit":null}]}}`})
	d, _ := s.types(t, "runs", "view", "run_1")
	if got := d.Printed.String(); !strings.Contains(got, "\nSuggestion: samtools: command not found: use conda[2J or an image.\n") {
		t.Errorf("it prints\n%s", got)
	}
}

func TestRunsAreListedAsTheyWereAskedFor(t *testing.T) {
	t.Parallel()
	const row = `{"id":"run_%d","number":%d,"workflowName":"count","status":"failed","progressPercent":66.7,"compute":{"vcpu":2,"ramGb":8,"gpu":1},"durationMs":61000,"creditsUsed":1234.5,"createdAt":"2020-03-02T12:00:00.000Z"}`
	rows := func(numbers ...int) string {
		var list []string
		for _, n := range numbers {
			list = append(list, fmt.Sprintf(row, n, n))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	s := serve(t, map[string]string{
		"GET /api/runs": data(rows(1)),
		"GET /api/runs?favorite=false&status=failed":          `{"success":true,"data":` + rows(1, 2) + `,"page":{"hasMore":true,"nextCursor":"c"}}`,
		"GET /api/runs?cursor=c&favorite=false&status=failed": data(rows(3)),
		"GET /api/me":        data(`{"id":"user_7"}`),
		"GET /api/workflows": data(`[{"id":"wf_1","name":"count"},{"id":"wf_2","name":"twin"},{"id":"wf_3","name":"twin"}]`),
		"GET /api/runs?favorite=true&q=%2312&tag=a":            data(`[]`),
		"GET /api/runs?favorite=false&startedBy=user_9":        data(`[]`),
		"GET /api/runs?favorite=false&startedBy=user_7":        data(`[]`),
		"GET /api/runs?favorite=false&workflowId=wf_1":         data(`[]`),
		"GET /api/runs?favorite=false&workflowId=wf_not_there": data(`[]`),
	})
	const (
		head = "ID     WORKFLOW  NAME  STATUS  PROGRESS  SIZE     DURATION  CREDITS  STARTED\n"
		line = "run_%d  count #%d  –     failed  67 %%      2x8 gpu  1m 01s    1,234.5  2020-03-02\n"
	)
	lines := func(numbers ...int) string {
		text := head
		for _, n := range numbers {
			text += fmt.Sprintf(line, n, n)
		}
		return text
	}
	s.check(t, map[string]typed{
		"to the end":             {"runs --status failed", lines(1, 2, 3), "", "GET /api/runs?cursor=c&favorite=false&status=failed"},
		"as many as asked":       {"runs --status failed -n 2", lines(1, 2), "", "GET /api/runs?favorite=false&status=failed"},
		"one":                    {"runs --status failed -n 1", lines(1), "", ""},
		"none":                   {"runs -n 0", "", "--limit must be at least 1", "nothing"},
		"by words and tag":       {"runs -s #12 --tag a --favorite", "", "", "GET /api/runs?favorite=true&q=%2312&tag=a"},
		"by one's own":           {"runs --by me", "", "", "GET /api/runs?favorite=false&startedBy=user_7"},
		"by a workflow":          {"runs --workflow count", "", "", "GET /api/runs?favorite=false&workflowId=wf_1"},
		"by a workflow's id":     {"runs --workflow wf_not_there", "", "", "GET /api/runs?favorite=false&workflowId=wf_not_there"},
		"by one of two the same": {"runs --workflow twin", "", `2 workflows are called "twin": use the ID (wf_2, wf_3)`, ""},
		"by no workflow":         {"runs --workflow none", "", `the team has no workflow "none"`, ""},
		"of a time to come":      {"runs --since=-1h", "", "--since and --until say how long ago", "nothing"},
		"by a time of no kind":   {"runs --since 1", "", "duration", "nothing"},
	})
}

func TestWhatBecameOfRunsThatWereCancelled(t *testing.T) {
	t.Parallel()
	answers := map[string]string{}
	for id, status := range map[string]string{"run_1": "queued", "run_2": "running", "run_3": "cancelled", "run_4": "completed", "run_5": "interrupted"} {
		answers["POST /api/runs/"+id+"/cancel"] = data(fmt.Sprintf(`{"runId":%q,"status":%q}`, id, status))
	}
	serve(t, answers).check(t, map[string]typed{
		"all":              {"runs cancel run_1 run_2 run_3 run_4 run_5", "run_1 is being cancelled\nrun_2 is being cancelled\nrun_3 is cancelled\nrun_4 had already ended: completed\nrun_5 had already ended: interrupted\n", "", ""},
		"until one is not": {"runs cancel run_1 run_9 run_2", "run_1 is being cancelled\n", "no such run", "POST /api/runs/run_9/cancel"},
		"none":             {"runs cancel", "", "expected", "nothing"},
	})
}

func TestEventsAreReadPageByPage(t *testing.T) {
	t.Parallel()
	event := func(seq int, message string) string {
		return fmt.Sprintf(`{"seq":%d,"type":"node.failed","nodeId":"a","at":"2026-03-02T09:15:00.000Z","message":%s}`, seq, quoted(message))
	}
	page := func(more bool, list ...string) string {
		return data(fmt.Sprintf(`{"events":[%s],"lastSeq":9,"hasMore":%v}`, strings.Join(list, ","), more))
	}
	s := serve(t, map[string]string{
		"GET /api/runs/run_1/events?after_seq=0&limit=500": page(true, event(1, "one"), event(4, "four\x1b[2J")),
		"GET /api/runs/run_1/events?after_seq=4&limit=500": page(false, event(9, "nine")),
		"GET /api/runs/run_1/events?after_seq=9&limit=500": page(false),
	})
	for command, want := range map[string]string{"runs events run_1": "one four[2J nine", "runs events run_1 --after 4": "nine", "runs events run_1 --after 9": ""} {
		d, status := s.types(t, strings.Fields(command)...)
		var said []string
		for line := range strings.Lines(d.Printed.String()) {
			words := strings.Fields(line)
			said = append(said, words[len(words)-1])
		}
		if got := strings.Join(said[1:], " "); status != 0 || said[0] != "MESSAGE" || got != want {
			t.Errorf("%s: %d, %q", command, status, d.Printed)
		}
	}
}

// A comparison says what is different, and with --all what is not. Another member's words
// do not steer the terminal.
func TestTwoRunsAreSetSideBySide(t *testing.T) {
	t.Parallel()
	const run = `{"id":"run_%d","number":%d,"workflowName":"count","status":"completed","compute":{"vcpu":2,"ramGb":8},"durationMs":null,"creditsUsed":0}`
	s := serve(t, map[string]string{"GET /api/runs/compare": data(`{"a":` + fmt.Sprintf(run, 1, 1) + `,"b":` + fmt.Sprintf(run, 2, 2) + `,
		"definitionChanges":["changed \u001b]0;x\u0007\u202eTrim"],
		"parameters":[{"name":"n","a":1,"b":2,"same":false},{"name":"m","a":"x","b":"x","same":true},{"name":"new","b":null,"same":false}],
		"inputs":[{"name":"reads","a":[{"key":"k","name":"a.fq"},{"key":"l","name":"b.fq"}],"b":[],"same":false}],
		"nodes":[{"id":"t","name":"Trim","a":{"id":"t","status":"completed","cached":true,"durationMs":1500},"b":null}],
		"outputs":[{"nodeId":"t","port":"o","name":"x.txt","a":{"sha256":"0123456789abcdef"},"b":{"sha256":"beef"},"same":false},{"nodeId":"t","port":"p","name":"y","a":{"sha256":null},"b":null,"same":true}],
		"outputCounts":{"same":1,"different":2,"onlyA":3,"onlyB":4}}`)})
	const counts = "definition: changed ]0;xTrim\n1 outputs are the same, 2 differ, 3 are only in A, 4 only in B.\n"
	for flag, rows := range map[string][]string{
		"": {
			"|A|B", "run|count #1|count #2", "status|completed|completed", "duration|–|–", "credits|0|0", "parameter n|1|2", "parameter new|–|null",
			"input reads|a.fq b.fq|–", "step Trim|completed (cached), 1.5 s|–", "output t.o x.txt|0123456789ab|beef",
		},
		"--all": {
			"|A|B", "run|count #1|count #2", "status|completed|completed", "duration|–|–", "credits|0|0", "size|2x8|2x8", "parameter n|1|2", `parameter m|"x"|"x"`, "parameter new|–|null",
			"input reads|a.fq b.fq|–", "step Trim|completed (cached), 1.5 s|–", "output t.o x.txt|0123456789ab|beef", "output t.p y|–|–",
		},
	} {
		d, status := s.types(t, append([]string{"runs", "compare", "run_1", "run_2"}, strings.Fields(flag)...)...)
		table, isTable := strings.CutSuffix(d.Printed.String(), counts)
		if status != 0 || !isTable || cells(table) != strings.Join(rows, "\n") {
			t.Errorf("%q: %d\n%s", flag, status, d.Printed)
		}
	}
	d, status := s.types(t, "runs", "compare", "run_1")
	if status == 0 {
		t.Errorf("one run: %s", d.Printed)
	}
}

// cells are those of a printed table, whose columns are two spaces apart.
func cells(table string) string {
	var out []string
	for line := range strings.Lines(table) {
		var row []string
		for cell := range strings.SplitSeq(strings.TrimRight(line, "\n"), "  ") {
			if cell = strings.TrimSpace(cell); cell != "" || len(row) == 0 {
				row = append(row, cell)
			}
		}
		out = append(out, strings.Join(row, "|"))
	}
	return strings.Join(out, "\n")
}

func TestASweepIsATable(t *testing.T) {
	t.Parallel()
	const run = `{"parameters":{"n":%s},"run":{"id":"run_%d","number":%d,"status":"completed","durationMs":61000,"creditsUsed":0.5},"outputs":[%s]}`
	s := serve(t, map[string]string{
		"GET /api/sweeps/swp_1": data(`{"id":"swp_1","varied":["n"],"ports":["a.o","a.p"],"runs":[` +
			fmt.Sprintf(run, "1", 1, 1, `{"port":"a.o","name":"x.txt","sha256":"0123456789abcdef","value":"42\u001b[2J"}`) + "," +
			fmt.Sprintf(run, `"two"`, 2, 2, `{"port":"a.p","name":"y.bin","sha256":"0123456789abcdef","value":null},{"port":"a.o","name":"x.txt","sha256":"","value":null}`) + `]}`),
		"GET /api/sweeps/swp_1/table.csv?outputs=a.o%2Ca.p": "run,n\nrun_1,1\n",
		"GET /api/sweeps": data(`[]`),
	})
	for command, want := range map[string]string{
		"runs sweep swp_1":                     "RUN|#|n|STATUS|DURATION|CREDITS\nrun_1|1|1|completed|1m 01s|0.5\nrun_2|2|\"two\"|completed|1m 01s|0.5",
		"runs sweep swp_1 -o a.o -o a.p":       "RUN|#|n|STATUS|DURATION|CREDITS|a.o|a.p\nrun_1|1|1|completed|1m 01s|0.5|42[2J|–\nrun_2|2|\"two\"|completed|1m 01s|0.5|x.txt|y.bin 0123456789ab",
		"runs sweep":                           "",
		"runs sweep swp_1 --csv -o a.o -o a.p": "run,n\nrun_1,1",
	} {
		d, status := s.types(t, strings.Fields(command)...)
		if got := cells(d.Printed.String()); status != 0 || got != want {
			t.Errorf("%s: %d\n%s\n%s", command, status, got, d.Errors)
		}
	}
	if d, status := s.types(t, "runs", "sweep", "swp_2"); status != 1 || d.Printed.Len() > 0 {
		t.Errorf("no sweep: %d, %q", status, d.Printed)
	}
}

func TestItemsOfAScatter(t *testing.T) {
	t.Parallel()
	item := func(n int, attempts string) string {
		return fmt.Sprintf(`{"index":%d,"item":"teams/t/u/r%d.fq","status":"failed","cached":%v,"attempts":[%s],"outputs":[]}`, n, n, n == 1, attempts)
	}
	const (
		first  = `{"attempt":1,"status":"failed","exitCode":1,"startedAt":"2026-03-02T09:15:00.000Z","finishedAt":"2026-03-02T09:15:01.000Z"}`
		second = `{"attempt":2,"status":"failed","exitCode":137,"peakMemBytes":2048,"startedAt":"2026-03-02T09:15:00.000Z","finishedAt":"2026-03-02T09:16:05.000Z"}`
	)
	const at = "GET /api/runs/run_1/nodes/a/shards?"
	s := serve(t, map[string]string{
		at + "limit=500&status=failed":          `{"success":true,"data":[` + item(0, first+","+second) + `],"page":{"hasMore":true,"nextCursor":"c"}}`,
		at + "cursor=c&limit=500&status=failed": data("[" + item(1, "") + "]"),
		at + "limit=500&status=succeeded":       data(`[{"index":2,"item":"x","status":"succeeded","attempts":[],"outputs":[]}]`),
		at + "limit=500":                        data("[]"),
	})
	const head = "ITEM|VALUE|STATUS|ATTEMPTS|DURATION|PEAK MEMORY|EXIT|FILES"
	for command, want := range map[string]string{
		"--status failed":      head + "\na/0|r0.fq|failed|2|1m 05s|2.0 KB|137|0\na/1|r1.fq|failed (cached)|0|–|–|–|0",
		"--status failed -n 1": head + "\na/0|r0.fq|failed|2|1m 05s|2.0 KB|137|0",
		"--status completed":   head + "\na/2|x|completed|0|–|–|–|0",
		"--status succeeded":   head + "\na/2|x|completed|0|–|–|–|0",
		"":                     "",
	} {
		d, status := s.types(t, append([]string{"runs", "items", "run_1", "a"}, strings.Fields(command)...)...)
		if got := cells(d.Printed.String()); status != 0 || got != want {
			t.Errorf("%s: %d\n%s\n%s", command, status, got, d.Errors)
		}
	}
	s.check(t, map[string]typed{"fewer than none": {"runs items run_1 a --limit=-1", "", "--limit must be at least 0", ""}})
}

func TestTheSoftwareOfAStep(t *testing.T) {
	t.Parallel()
	const at = "GET /api/runs/run_1/nodes/"
	s := serve(t, map[string]string{
		at + "a/environment": data(`{"nodeId":"a","state":"ready","python":"3.12","lock":"numpy==2.0\n","log":"built\u001b[2J\n","packages":[{"name":"numpy","version":"2.0"}]}`),
		at + "b/environment": data(`{"nodeId":"b","state":"failed","error":"no such package","lock":null,"log":"","packages":[]}`),
	})
	s.check(t, map[string]typed{
		"its packages":         {"runs environment run_1 a", "PACKAGE  VERSION\nnumpy    2.0\n", "", ""},
		"its lock":             {"runs environment run_1 a --lock", "numpy==2.0\n", "", ""},
		"its log, into a file": {"runs environment run_1 a --log", "built\x1b[2J\n", "", ""}, // as it is
		"no lock":              {"runs environment run_1 b --lock", "", "the installed packages aren't known yet: the environment is failed", ""},
		"no log":               {"runs environment run_1 b --log", "", "", ""},
		"both":                 {"runs environment run_1 a --lock --log", "", "can't be used together", "nothing"},
		"of no step":           {"runs environment run_1 c", "", "no such run", ""},
	})
}

// Where nothing is charged, nobody is shown credits.
func TestRunsHaveNoCreditsWithoutBilling(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]string{
		"GET /api/features":   data(`{"billing":false}`),
		"GET /api/runs":       data(`[{"id":"run_1","number":1,"workflowName":"count","status":"failed","compute":{"vcpu":2,"ramGb":8},"creditsUsed":0,"createdAt":"2020-03-02T12:00:00.000Z"}]`),
		"GET /api/runs/run_1": `{"id":"run_1","status":"failed","creditsUsed":0,"nodes":[]}`,
	})
	for _, command := range []string{"list", "view"} {
		d, _ := s.types(t, "runs", command)
		if got := d.Printed.String(); !strings.Contains(got, "run_1") || strings.Contains(strings.ToLower(got), "credits") {
			t.Errorf("runs %s prints\n%s", command, got)
		}
	}
}
