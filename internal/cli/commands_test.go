package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/line"
)

// typed is a command, what it prints and tells, and the last that it asks the server.
type typed struct {
	command string // '' is an empty argument
	stdin   string
	prints  string // all of it
	tells   string // empty: it works
	asks    string // empty: whatever it is; "no more": it changes nothing
}

func check(t *testing.T, server *clitest.API, commands map[string]typed) {
	t.Helper()
	for name, tt := range commands {
		args := strings.Fields(tt.command)
		for i, arg := range args {
			args[i] = strings.Trim(arg, "'")
		}
		d := clitest.New(t)
		d.SignedIn(t, server.URL, line.Grant{Token: "oat_1"})
		code := d.Type(&Commands{}, tt.stdin, args...)
		if (code == 0) != (tt.tells == "") || d.Printed.String() != tt.prints || !strings.Contains(d.Errors.String(), tt.tells) {
			t.Errorf("%s: %d, printed\n%s\ntold %q", name, code, d.Printed, d.Errors)
		}
		last := ""
		for _, call := range server.Calls() {
			if last = call; tt.asks == "no more" && !strings.HasPrefix(call, "GET ") {
				t.Errorf("%s: it asks %s", name, call)
			}
		}
		if tt.asks != "" && tt.asks != "no more" && last != tt.asks {
			t.Errorf("%s: it asks\n%s, want\n%s", name, last, tt.asks)
		}
	}
}

// The list of budgets is put as a whole, so what is not meant has to go along as it was.
func TestABudgetIsChangedBesideTheOthers(t *testing.T) {
	t.Parallel()
	const (
		team   = `{"scope":"team","subject":null,"month":null,"name":null,"limit":400,"alertAt":[50],"hard":true,"spent":1,"held":0,"remaining":399,"forecast":9,"active":true}`
		march  = `{"scope":"team","subject":null,"month":"2026-03","name":null,"limit":900,"alertAt":[],"hard":false,"spent":0,"held":0,"remaining":900,"forecast":0,"active":false}`
		pilot  = `{"scope":"tag","subject":"pilot:1","month":null,"name":"pilot:1","limit":5,"alertAt":[80,100],"hard":false,"spent":0,"held":0,"remaining":5,"forecast":0,"active":true}`
		put    = "PUT /api/billing/budgets "
		kept   = `{"alertAt":[50],"hard":true,"limit":400,"scope":"team"}`
		keptM  = `{"alertAt":[],"hard":false,"limit":900,"month":"2026-03","scope":"team"}`
		keptP  = `{"alertAt":[80,100],"hard":false,"limit":5,"scope":"tag","subject":"pilot:1"}`
		listed = "OF        MONTH    LIMIT  SPENT  HELD  LEFT  FORECAST  HARD\nthe team  every    400    1      0     399   9         yes\nthe team  2026-03  900    0      0     900   0         no\npilot:1   every    5      0      0     5     0         no\n"
		list   = "[" + team + "," + march + "," + pilot + "]"
	)
	server := clitest.ServeAPI(t, map[string]string{"GET /api/billing/budgets": clitest.Data(list), "PUT /api/billing/budgets": clitest.Data(list)})
	check(t, server, map[string]typed{
		"all":                       {"budgets", "", listed, "", "GET /api/billing/budgets"},
		"the team's":                {"budgets set team 500 --hard --alert 90 --alert 10", "", listed, "", put + `{"budgets":[` + keptM + "," + keptP + `,{"alertAt":[90,10],"hard":true,"limit":500,"scope":"team"}]}`},
		"of a month":                {"budgets set team 7 --month 2026-03", "", listed, "", put + `{"budgets":[` + kept + "," + keptP + `,{"hard":false,"limit":7,"month":"2026-03","scope":"team"}]}`},
		"of another month":          {"budgets set tag:pilot:1 7 --month 2026-03", "", listed, "", put + `{"budgets":[` + kept + "," + keptM + "," + keptP + `,{"hard":false,"limit":7,"month":"2026-03","scope":"tag","subject":"pilot:1"}]}`},
		"of somebody":               {"budgets set user:user_1 0", "", listed, "", put + `{"budgets":[` + kept + "," + keptM + "," + keptP + `,{"hard":false,"limit":0,"scope":"user","subject":"user_1"}]}`},
		"no more of a tag":          {"budgets remove tag:pilot:1", "", listed, "", put + `{"budgets":[` + kept + "," + keptM + `]}`},
		"no more of a month":        {"budgets rm team --month 2026-03", "", listed, "", put + `{"budgets":[` + kept + "," + keptP + `]}`},
		"no more of none":           {"budgets rm tag:pilot", "", "", "there is no budget for tag:pilot", "no more"},
		"no more of no month":       {"budgets rm tag:pilot:1 --month 2026-04", "", "", "there is no budget for tag:pilot:1", "no more"},
		"of a team that is named":   {"budgets set team:red 5", "", "", "name the budget as team, user:ID or tag:NAME", "no more"},
		"of nobody":                 {"budgets set user: 5", "", "", "name the budget as team, user:ID or tag:NAME", "no more"},
		"of a tag without its name": {"budgets rm tag", "", "", "name the budget as team, user:ID or tag:NAME", "no more"},
		"of something else":         {"budgets set workflow:wf_1 5", "", "", "name the budget as team, user:ID or tag:NAME", "no more"},
		"of no number":              {"budgets set team lots", "", "", "lots", "no more"},
	})
}

// A cell that a spreadsheet would take for a formula is text.
func TestUsageIsATableForSpreadsheets(t *testing.T) {
	t.Parallel()
	server := clitest.ServeAPI(t, map[string]string{"GET /api/dashboard/usage": clitest.Data(`{"days":2,"totalCredits":1.5,"series":[{"date":"2026-03-01","credits":1},{"date":"2026-03-02","credits":0.5}],"groups":[
		{"by":"tag","key":"=1+1","name":"=1+1","runs":2,"credits":1.5,"series":[1,0.5]},{"by":"tag","key":null,"name":"@x, \"y\"","runs":1,"credits":0.000001,"series":[0,0.000001]},
		{"by":"user","key":"user_1","name":"+49","runs":0,"credits":0,"series":[0,0]}]}`)})
	check(t, server, map[string]typed{
		"by day": {"usage --by tag,user --csv --days 7", "", "date,by,key,name,credits\n2026-03-01,tag,'=1+1,'=1+1,1\n2026-03-02,tag,'=1+1,'=1+1,0.5\n2026-03-02,tag,,\"'@x, \"\"y\"\"\",0.000001\n", "", "GET /api/dashboard/usage?by=tag%2Cuser&days=7"},
		"in all": {"usage", "", "BY    NAME     RUNS  CREDITS\ntag   =1+1     2     1.5\ntag   @x, \"y\"  1     under 0.0001\nuser  +49      0     0\n", "", "GET /api/dashboard/usage?by=workflow&days=30"},
	})
}

func TestWorkflowsOfAFolder(t *testing.T) {
	t.Parallel()
	row := func(id, name, folder string) string {
		return `{"id":"` + id + `","name":"` + name + `","folder":"` + folder + `","nodeCount":2,"revision":3,"lastRuns":[],"updatedAt":"2020-03-02T12:00:00.000Z"}`
	}
	server := clitest.ServeAPI(t, map[string]string{
		"GET /api/workflows":      clitest.Data("[" + strings.Join([]string{row("wf_1", "a", ""), row("wf_2", "b", "RNA"), row("wf_3", "c", "RNA/Cells"), row("wf_4", "d", "RNAseq"), row("wf_5", "b", "rna")}, ",") + "]"),
		"GET /api/favorites":      clitest.Data(`{"workflows":["wf_3","wf_4"],"runs":[]}`),
		"PUT /api/workflows/wf_1": clitest.Data(`{"id":"wf_1","name":"a","folder":"RNA"}`),
	})
	ids := func(flags string) string {
		t.Helper()
		d := clitest.New(t)
		d.SignedIn(t, server.URL, line.Grant{Token: "oat_1"})
		if code := d.Type(&Commands{}, "", append([]string{"workflows"}, strings.Fields(flags)...)...); code != 0 {
			t.Errorf("%s: %q", flags, d.Errors)
		}
		var out []string
		for text := range strings.Lines(d.Printed.String()) {
			for word := range strings.FieldsSeq(text) {
				if strings.HasPrefix(word, "wf_") || word == "*" {
					out = append(out, word)
				}
			}
		}
		return strings.Join(out, " ")
	}
	for flags, want := range map[string]string{
		"":                            "* wf_3 * wf_4 wf_1 wf_2 wf_5",
		"--folder RNA":                "* wf_3 wf_2",
		"--folder /RNA/":              "* wf_3 wf_2",
		"--folder RNA/Cells":          "* wf_3",
		"--folder Cells":              "",
		"--favorite":                  "* wf_3 * wf_4",
		"--favorite --folder RNAseq":  "* wf_4",
		"--favorite --folder nothing": "",
	} {
		if got := ids(flags); got != want {
			t.Errorf("%q lists %q", flags, got)
		}
	}
	server.Calls()
	check(t, server, map[string]typed{
		"moved":             {"workflows move a --to RNA", "", "a is in RNA\n", "", `PUT /api/workflows/wf_1 {"folder":"RNA"}`},
		"out of all":        {"workflows move wf_1 --to ''", "", "a is in RNA\n", "", `PUT /api/workflows/wf_1 {"folder":""}`},
		"of a name of two":  {"workflows move b --to RNA", "", "", `2 workflows are called "b": use the ID (wf_2, wf_5)`, "no more"},
		"to nowhere":        {"workflows move a", "", "", "missing flags: --to=FOLDER", "no more"},
		"until one is not":  {"workflows move a nothing --to RNA", "", "a is in RNA\n", `the team has no workflow "nothing"`, ""},
		"marked, all known": {"workflows favorite a nothing", "", "", `the team has no workflow "nothing"`, "no more"},
	})
}

// Nothing is sent for a schedule or a trigger that cannot be made.
func TestSchedulesAndTriggersAreMadeAsTheyWereTyped(t *testing.T) {
	t.Parallel()
	reads := filepath.Join(t.TempDir(), "reads.fq")
	if err := os.WriteFile(reads, []byte("ACGT"), 0o600); err != nil {
		t.Fatal(err)
	}
	const (
		schedule = "POST /api/workflows/wf_1/schedules "
		trigger  = "POST /api/workflows/wf_1/triggers "
	)
	server := clitest.ServeAPI(t, map[string]string{
		"GET /api/workflows/wf_1":            clitest.Data(`{"id":"wf_1","name":"count","definition":{"parameters":{"n":{"type":"integer"}},"inputs":{"reads":{"type":"file"}},"nodes":[]}}`),
		"GET /api/connections":               clitest.Data(`[{"id":"conn_1","name":"Lab"},{"id":"conn_2","name":"Twin"},{"id":"conn_3","name":"Twin"}]`),
		"POST /api/workflows/wf_1/schedules": "201 " + clitest.Data(`{"id":"sch_1","nextTimes":["2026-03-02T09:15:00.000Z"]}`),
		"POST /api/workflows/wf_1/triggers":  "201 " + clitest.Data(`{"id":"trg_1","url":"https://x/t/secret"}`),
	})
	input := " -i reads=" + reads
	check(t, server, map[string]typed{
		"a schedule":                    {"schedules create wf_1 @daily -p n=3 --catch-up --overlap queue --time-zone Europe/Berlin", "", "sch_1\n", "", schedule + `{"catchUp":true,"cron":"@daily","overlap":"queue","parameters":{"n":3},"timeZone":"Europe/Berlin"}`},
		"one that copies":               {"schedules create wf_1 @daily --connection Lab --output-to s3://lab/{runId}/", "", "sch_1\n", "", schedule + `{"catchUp":false,"cron":"@daily","outputTo":{"connection":"conn_1","url":"s3://lab/{runId}/"},"overlap":"skip","timeZone":"UTC"}`},
		"one that copies otherwise":     {"schedules create wf_1 @daily --connection Lab --output-connection conn_9 --output-to s3://lab/", "", "sch_1\n", "", schedule + `{"catchUp":false,"cron":"@daily","outputTo":{"connection":"conn_9","url":"s3://lab/"},"overlap":"skip","timeZone":"UTC"}`},
		"one that copies by nothing":    {"schedules create wf_1 @daily --output-to s3://lab/" + input, "", "", "--output-to needs a connection that can write to it", "no more"},
		"one that copies by two":        {"schedules create wf_1 @daily --output-connection Twin --output-to s3://lab/" + input, "", "", `2 connections are called "Twin": use one of the IDs conn_2, conn_3`, "no more"},
		"of no number":                  {"schedules create wf_1 @daily -p n=three" + input, "", "", `-p n: "three" is not a valid integer`, "no more"},
		"of no overlap":                 {"schedules create wf_1 @daily --overlap both", "", "", `--overlap must be one of "skip","queue"`, "no more"},
		"a trigger":                     {"triggers create wf_1 --map n=/a/0 --map m=", "", "https://x/t/secret\n", "", trigger + `{"map":{"m":"","n":"/a/0"}}`},
		"one that refreshes":            {"triggers create wf_1 --refresh", "", "https://x/t/secret\n", "", trigger + `{"action":"refresh"}`},
		"one that is signed":            {"triggers create wf_1 --signed", "two\nlines\n", "https://x/t/secret\n", "", trigger + `{"secret":"two\nlines"}`},
		"one that is signed by nothing": {"triggers create wf_1 --signed" + input, "", "", "standard input is empty", "no more"},
		"one that maps nothing":         {"triggers create wf_1 --map =/a", "", "", "--map =/a: enter name=/pointer", "no more"},
		"one that maps to nothing":      {"triggers create wf_1 --map n", "", "", "--map n: enter name=/pointer", "no more"},
	})
}

func TestWhatASchedulesNextAndLastTimesAre(t *testing.T) {
	t.Parallel()
	at := api.Time{Time: time.Date(2026, 3, 2, 9, 15, 0, 0, time.Local)}
	run := "run_1"
	for name, tt := range map[string]struct {
		schedule   api.Schedule
		next, last string
	}{
		"due":                  {api.Schedule{NextTimes: []api.Time{at, {}}}, "2026-03-02 09:15", "never"},
		"off":                  {api.Schedule{}, "off", "never"},
		"paused by itself":     {api.Schedule{NextTimes: []api.Time{at}, Paused: &api.SchedulePause{Message: "x"}}, "paused", "never"},
		"that started a run":   {api.Schedule{Firings: []api.ScheduleFiring{{DueAt: at, Outcome: "started", RunID: &run}, {DueAt: at, Outcome: "skipped"}}}, "off", "2026-03-02 09:15 started run_1"},
		"that started nothing": {api.Schedule{Firings: []api.ScheduleFiring{{DueAt: at, Outcome: "skipped"}}}, "off", "2026-03-02 09:15 skipped"},
	} {
		if next, last := nextOf(tt.schedule), lastOf(tt.schedule); next != tt.next || last != tt.last {
			t.Errorf("%s: %q, %q", name, next, last)
		}
	}
}

// A size that costs nothing lasts without end, and one that is not allowed is an answer, too.
func TestHowLongCreditsLast(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int64]string{0: "0 ms", 59: "59.0 s", 3600: "1h 00m", 9223372036: "2562047h 47m", 9223372037: "unlimited", 9223372036854775807: "unlimited"} {
		if got := affordable(seconds); got != want {
			t.Errorf("%d: %s", seconds, got)
		}
	}
	server := clitest.ServeAPI(t, map[string]string{
		"POST /api/billing/estimate": `{"success":true,"compute":{"vcpu":512,"ramGb":4096,"gpu":0},"allowed":false,"reason":"The plan\u001b[2J has no such size.","creditsPerHour":0,"creditPerSecond":0,"affordableSeconds":9223372036854775807,"plan":"free",
			"typical":{"p50Seconds":90.5,"p90Seconds":3600,"credits":0.00001}}`,
		"GET /api/workflows": clitest.Data(`[]`),
	})
	check(t, server, map[string]typed{
		"of a size":        {"estimate --compute 512x4096", "", "size         512x4096\nallowed      no\nreason       The plan[2J has no such size.\nprice        0 credits/hour\na minute     0 credits\naffordable   unlimited\ntypical run  1m 30s (9 of 10 within 1h 00m), under 0.0001 credits\nplan         free\n", "", ""},
		"of no size":       {"estimate --compute large", "", "", "--compute large: enter vCPUs x GB, such as 4x16", "no more"},
		"of two sizes":     {"estimate --compute 4x16 --gpu", "", "", "can't be combined", "no more"},
		"of no workflow":   {"estimate nothing", "", "", `the team has no workflow "nothing"`, "no more"},
		"of half a size":   {"estimate --compute 4x", "", "", "enter vCPUs x GB", "no more"},
		"of more than two": {"estimate --compute 4x16x2", "", "", "enter vCPUs x GB", "no more"},
	})
}

// Nobody has to be signed in to learn what to install, and every command has its hash.
func TestClientsAreListedWithTheirCommands(t *testing.T) {
	t.Parallel()
	const (
		python  = `{"name":"millrace_python-1-py3-none-any.whl","kind":"python","project":"millrace-python","version":"1","platform":null,"size":1,"sha256":"aa","url":"u","install":"pip install 'millrace-python @ u#sha256=aa'"}`
		program = `{"name":"millrace-client-darwin-arm64","kind":"program","project":null,"version":null,"platform":"darwin/arm64","size":1,"sha256":"bb","url":"u","install":"curl -fo millrace u"}`
		other   = `{"name":"SHA256SUMS","kind":"other","project":null,"version":null,"platform":null,"size":1,"sha256":"cc","url":"u","install":null}`
	)
	server := clitest.ServeAPI(t, map[string]string{"GET /clients/index.json": clitest.Data("[" + python + "," + program + "," + other + "]")})
	d := clitest.New(t)
	if code := d.Type(&Commands{}, "", "clients", "--server", server.URL); code != 0 {
		t.Fatalf("%d %s", code, d.Errors)
	}
	want := "NAME                                 FOR                               SHA-256\n" +
		"millrace_python-1-py3-none-any.whl   the Python client                 aa\n" +
		"millrace-client-darwin-arm64         the command line on darwin/arm64  bb\n" +
		"SHA256SUMS                           –                                 cc\n" +
		"\nTo install the Python client:\n\n    pip install 'millrace-python @ u#sha256=aa'\n" +
		"\nTo install the command line on darwin/arm64:\n\n    curl -fo millrace u\n"
	if got := strings.Join(strings.Fields(d.Printed.String()), " "); got != strings.Join(strings.Fields(want), " ") {
		t.Errorf("it prints\n%s\nwant\n%s", d.Printed, want)
	}
}
