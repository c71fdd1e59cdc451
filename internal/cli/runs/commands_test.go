package runs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/line"
)

// stub is a server with the answers of a test.
type stub struct{ *clitest.API }

func serve(t *testing.T, answers map[string]string) stub {
	t.Helper()
	return stub{clitest.ServeAPI(t, answers)}
}

// types runs a command of the program at the stub.
func (s stub) types(t *testing.T, args ...string) (d *clitest.Terminal, status int) {
	t.Helper()
	d = clitest.New(t)
	d.SignedIn(t, s.URL, line.Grant{Token: "oat_1"})
	var commands struct {
		Run  Start   `cmd:""`
		Runs Command `cmd:""`
		Logs Logs    `cmd:""`
	}
	return d, d.Type(&commands, "", args...)
}

var data = clitest.Data

func quoted(text string) string {
	raw, _ := json.Marshal(text) // a string always can be
	return string(raw)
}

func TestALogIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	page := func(text string, offset, next, size int, eof bool) string {
		return data(fmt.Sprintf(`{"text":%s,"offset":%d,"nextOffset":%d,"size":%d,"eof":%v}`, quoted(text), offset, next, size, eof))
	}
	s := serve(t, map[string]string{
		"GET /api/runs/run_1":                                 `{"id":"run_1","status":"completed","nodes":[{"id":"a"},{"id":"b"}]}`,
		"GET /api/runs/run_1/logs?offset=0":                   page("one\n", 0, 4, 9, false),
		"GET /api/runs/run_1/logs?offset=4":                   page("", 4, 6, 9, false), // what the server left out
		"GET /api/runs/run_1/logs?offset=6":                   page("\x1b[2Jx", 6, 9, 9, true),
		"GET /api/runs/run_1/logs?nodeId=b&offset=0&shard=2":  page("shard 2\n", 0, 8, 8, true),
		"GET /api/runs/run_2/logs?offset=0":                   page("so far\n", 0, 7, 7, false),
		"GET /api/runs/run_2/logs?offset=7":                   page("", 7, 7, 7, false), // it goes on, and nobody follows
		"GET /api/runs/run_3/logs?offset=0":                   page("begun\n", 0, 6, 90, false),
		"GET /api/runs/run_3/logs?offset=6":                   `500 {"success":false,"error":"broken","code":"internal","requestId":"r"}`,
		"GET /api/runs":                                       data(`[{"id":"run_1"}]`),
		"GET /api/runs/run_1/logs?nodeId=a&offset=0&shard=0":  page("", 0, 0, 0, true),
		"GET /api/runs/run_1/logs?nodeId=a&offset=0&shard=-1": `400 {"success":false,"error":"shard must be at least 0","code":"validation","requestId":"r"}`,
	})
	for name, tt := range map[string]struct {
		command string
		prints  string
		tells   string // empty: it works
	}{
		"all of it":                  {"logs run_1", "one\n\x1b[2Jx", ""},
		"of the newest run":          {"logs", "one\n\x1b[2Jx", ""},
		"so far":                     {"logs run_2", "so far\n", ""},
		"of an item":                 {"logs run_1 --node b --shard 2", "shard 2\n", ""},
		"of an item by its ID":       {"logs run_1 --node b/2", "shard 2\n", ""},
		"of two items":               {"logs run_1 --node b/2 --shard 1", "", "b/2 and --shard 1 are different items"},
		"of a node that wrote none":  {"runs logs run_1 --node a", "", ""},
		"of a node that there isn't": {"logs run_1 --node c", "", `the run has no step "c": "millrace runs view run_1" lists them`},
		"of an item of no node":      {"logs run_1 --shard 1", "", "--shard needs --node"},
		"of an item below none":      {"logs run_1 --node a --shard=-1", "", "shard must be at least 0"},
		"as JSON, for ever":          {"logs run_1 --json -f", "", "--json and --follow can't be combined"},
		"until it breaks":            {"logs run_3", "begun\n", "broken"},
		"of no run":                  {"logs run_9", "", "no such run (see millrace runs list)"},
	} {
		d, status := s.types(t, strings.Fields(tt.command)...)
		if (status == 0) != (tt.tells == "") || d.Printed.String() != tt.prints || !strings.Contains(d.Errors.String(), tt.tells) {
			t.Errorf("%s: %d, printed %q, told %q", name, status, d.Printed, d.Errors)
		}
	}
	d, _ := s.types(t, "logs", "run_1", "--json")
	pages := json.NewDecoder(d.Printed)
	for _, want := range []string{"one\n", "", "\x1b[2Jx"} {
		var got struct{ Text string }
		if err := pages.Decode(&got); err != nil || got.Text != want {
			t.Errorf("a page has %q, %v, want %q", got.Text, err, want)
		}
	}
}

// written is a file with a text, below a folder of its own.
func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const counting = `{"id":"wf_1","name":"count","revision":1,"definition":{"parameters":{"n":{"type":"integer","default":1},"word":{"type":"string"}},"inputs":{"reads":{"type":"file"}},"nodes":[]}}`

// A run is asked for as it was typed, and nothing is sent for one that cannot start.
func TestARunIsStartedAsItWasTyped(t *testing.T) {
	t.Parallel()
	reads := written(t, "reads.fq", "ACGT")
	for name, tt := range map[string]struct {
		command string
		body    string // of the call that starts it; empty: there is none
		tells   string
	}{
		"as it is":                {"run wf_1", `{"workflowId":"wf_1"}`, ""},
		"by its name":             {"run count", `{"workflowId":"wf_1"}`, ""},
		"with values":             {"run wf_1 -p n=007 -p word=7", ``, `-p n: "007" is not a valid integer`},
		"with typed values":       {"run wf_1 -p n=7 -p word=7", `{"workflowId":"wf_1","parameters":{"n":7,"word":"7"}}`, ""},
		"with labels":             {"run wf_1 --name= --note x --tag a --tag b,c", `{"workflowId":"wf_1","name":"","note":"x","tags":["a","b,c"]}`, ""},
		"for nothing":             {"run wf_1 --max-credits 0", `{"workflowId":"wf_1","maxCredits":0}`, ""},
		"of a size":               {"run wf_1 --compute 4x16", `{"workflowId":"wf_1","compute":{"vcpu":4,"ramGb":16}}`, ""},
		"of two sizes":            {"run wf_1 --compute 4x16 --gpu", ``, "--compute and --gpu can't be combined"},
		"with a file by its key":  {"run wf_1 -i reads=teams/t/uploads/1/r.fq", `{"workflowId":"wf_1","inputs":{"reads":"teams/t/uploads/1/r.fq"}}`, ""},
		"somewhere":               {"run wf_1 --executor slurm", `{"workflowId":"wf_1","executor":"slurm"}`, ""},
		"of no parameter":         {"run wf_1 -p m=1", ``, `the workflow has no parameter "m"; it takes n, word`},
		"copied by nothing":       {"run wf_1 -i reads=" + reads + " --output-to s3://lab/", ``, "--output-to needs a connection that can write to it"},
		"varied by nothing":       {"run wf_1 -i reads=" + reads + " --vary m=1,2", ``, `the workflow has no parameter "m"`},
		"varied wrongly":          {"run wf_1 -i reads=" + reads + " --vary n=1,x", ``, `--vary n: "x" is not a valid integer`},
		"varied and watched":      {"run wf_1 --vary n=1,2 --watch", ``, "--watch follows one run"},
		"varied and limited":      {"run wf_1 --vary n=1,2 --max-credits 1", ``, "--max-credits and --output-to are for one run"},
		"varied and copied":       {"run wf_1 --vary n=1,2 --output-to s3://lab/", ``, "--max-credits and --output-to are for one run"},
		"of no workflow":          {"run other", ``, `the team has no workflow "other": see millrace workflows list`},
		"of a file that is not":   {"run ./gone.json", ``, "gone.json"},
		"varied":                  {"run wf_1 --vary n=1,2 --vary word=a,b --tag x", `{"workflowId":"wf_1","tags":["x"],"vary":{"n":[1,2],"word":["a","b"]}}`, ""},
		"varied beside one value": {"run wf_1 --vary n=1,2 -p word=a --name x", `{"workflowId":"wf_1","name":"x","parameters":{"word":"a"},"vary":{"n":[1,2]}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, map[string]string{
				"GET /api/workflows": data(`[{"id":"wf_1","name":"count"}]`), "GET /api/workflows/wf_1": data(counting),
				"POST /api/runs": "202 " + data(`{"runId":"run_1","status":"queued"}`), "POST /api/sweeps": "202 " + data(`{"sweepId":"swp_1","runIds":["run_1","run_2"]}`),
			})
			d, status := s.types(t, strings.Fields(tt.command)...)
			if (status == 0) != (tt.tells == "") || !strings.Contains(d.Errors.String(), tt.tells) {
				t.Errorf("%d, told %q", status, d.Errors)
			}
			calls := s.Calls()
			posts := slices.DeleteFunc(calls, func(call string) bool { return !strings.HasPrefix(call, "POST ") })
			if tt.body == "" {
				if len(posts) > 0 {
					t.Errorf("it asks %q", posts)
				}
				return
			}
			prints, path := "run_1\n", "POST /api/runs "
			if strings.Contains(tt.body, "vary") {
				prints, path = "swp_1\n", "POST /api/sweeps "
			}
			if len(posts) != 1 || !strings.HasPrefix(posts[0], path) || d.Printed.String() != prints {
				t.Fatalf("it asks %q, and prints %q", posts, d.Printed)
			}
			if got := posts[0][len(path):]; !equalJSON(t, got, tt.body) {
				t.Errorf("it sends %s, want %s", got, tt.body)
			}
		})
	}
}

func equalJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Errorf("%s: %v", a, err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Errorf("%s: %v", b, err)
	}
	return reflect.DeepEqual(x, y)
}

// A run is done again with its own values, but for those that are named; as the workflow is
// now, without what that does not ask for, and with its defaults where the old ones stood.
func TestARetryHasTheValuesOfTheRun(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]string{
		"GET /api/runs/run_1": `{"id":"run_1","workflowId":"wf_1","parameters":{"n":1,"word":"a","old":true},
			"definition":{"parameters":{"n":{"type":"integer","default":1},"word":{"type":"string","default":"x"},"old":{"type":"boolean"}},"nodes":[]}}`,
		"GET /api/workflows/wf_1":    data(`{"id":"wf_1","definition":{"parameters":{"n":{"type":"integer","default":5},"word":{"type":"string"},"fresh":{"type":"number"}},"nodes":[]}}`),
		"POST /api/runs/run_1/retry": "202 " + data(`{"runId":"run_2","status":"queued"}`),
	})
	for command, want := range map[string]string{
		"":                              `{}`,
		"-p n=2":                        `{"parameters":{"n":2,"word":"a","old":true}}`,
		"-p word=":                      `{"parameters":{"n":1,"word":"","old":true}}`,
		"--current":                     `{"definition":"current"}`,
		"--current -p fresh=0.5":        `{"definition":"current","parameters":{"word":"a","fresh":0.5}}`,
		"--current -p n=1":              `{"definition":"current","parameters":{"n":1,"word":"a"}}`,
		"--current -p old=false":        `the workflow has no parameter "old"; it takes fresh, n, word`,
		"-p fresh=1":                    `the workflow has no parameter "fresh"; it takes n, old, word`,
		"--only a --only b,c":           `{"only":["a","b,c"]}`,
		"--compute 2x8":                 `{"compute":{"vcpu":2,"ramGb":8}}`,
		"--compute 2":                   `--compute 2: enter vCPUs x GB, such as 4x16`,
		"-p n=2 --only a --compute 2x8": `{"parameters":{"n":2,"word":"a","old":true},"only":["a"],"compute":{"vcpu":2,"ramGb":8}}`,
	} {
		d, status := s.types(t, append([]string{"runs", "retry", "run_1"}, strings.Fields(command)...)...)
		calls := s.Calls()
		if !strings.HasPrefix(want, "{") {
			if status != 1 || !strings.Contains(d.Errors.String(), want) {
				t.Errorf("%s: %d, told %q", command, status, d.Errors)
			}
			continue
		}
		got := strings.TrimPrefix(calls[len(calls)-1], "POST /api/runs/run_1/retry ")
		if status != 0 || d.Printed.String() != "run_2\n" || !equalJSON(t, got, want) {
			t.Errorf("%s: %d, it sends %s, printed %q, told %q", command, status, got, d.Printed, d.Errors)
		}
	}
}
