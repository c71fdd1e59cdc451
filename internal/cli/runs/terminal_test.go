//go:build linux

package runs

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/line"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

// What others wrote is shown without what would steer a terminal: logs of commands, and of
// the building of software.
func TestWhatOthersWroteDoesNotSteerATerminal(t *testing.T) {
	t.Parallel()
	wrote := quoted("\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b[2J\n")
	s := serve(t, map[string]string{
		"GET /api/runs/run_1/logs":                data(`{"text":` + wrote + `,"offset":0,"nextOffset":9,"size":9,"eof":true}`),
		"GET /api/runs/run_1/nodes/a/environment": data(`{"nodeId":"a","state":"failed","lock":` + wrote + `,"log":` + wrote + `,"error":` + wrote + `,"packages":[{"name":` + wrote + `,"version":"1"}]}`),
	})
	for name, command := range map[string]interface{ Run(w screen.Console) error }{
		"a log":                 &Logs{runArg: runArg{Run: "run_1"}},
		"the log of a building": &runsEnvironment{Run_: "run_1", Node: "a", Log: true},
		"a lock":                &runsEnvironment{Run_: "run_1", Node: "a", Lock: true},
		"software":              &runsEnvironment{Run_: "run_1", Node: "a"},
	} {
		d := clitest.New(t)
		d.SignedIn(t, s.URL, line.Grant{Token: "oat_1"})
		person := d.UseScreen(t)
		if err := command.Run(d.Console); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		d.Say("the end")
		shown := strings.NewReplacer("\x1b[31m", "", "\x1b[0m", "").Replace(person.Sees("the end"))
		if !strings.Contains(shown, "red") || !strings.Contains(shown, "title") || strings.ContainsAny(shown, "\x1b\x07") {
			t.Errorf("%s: it shows %q", name, shown)
		}
	}
}

// A run is drawn at the bottom while lines go by above it, and leaves no trace.
func TestARunIsWatchedAtATerminal(t *testing.T) {
	t.Parallel()
	b := &broadcast{}
	b.connections = []func(io.Writer){func(w io.Writer) {
		fmt.Fprint(w, "id: 0:0\ndata: {\"type\":\"snapshot\",\"runId\":\"run_1\",\"status\":\"queued\",\"seq\":0,\"waiting\":{\"reason\":\"inputs\",\"message\":\"Inputs are fetched.\",\"fetching\":{\"fetchedBytes\":1024,\"totalBytes\":4096}}}\n\n")
		b.send(w, "progress", 1, "one\n")
		fmt.Fprint(w, "id: 1:4\ndata: {\"type\":\"progress\",\"runId\":\"run_1\",\"status\":\"running\",\"seq\":1,\"progressPercent\":50,\"completedNodes\":1,\"totalNodes\":2}\n\n")
		fmt.Fprint(w, "id: 1:4\ndata: {\"type\":\"done\",\"runId\":\"run_1\",\"status\":\"completed\"}\n\n")
	}}
	d := clitest.New(t)
	d.SignedIn(t, clitest.Serve(t, b.ServeHTTP), line.Grant{Token: "oat_1"})
	person := d.UseScreen(t)
	d.Now = func() time.Time { d.Clock = d.Clock.Add(time.Second); return d.Clock } // every line is due
	s, err := session.Flags{}.Open(d.Console)
	if err != nil {
		t.Fatal(err)
	}
	if err := watch(s, "run_1", true); err != nil {
		t.Fatal(err)
	}
	d.Say("the end")
	shown := person.Sees("the end")
	at := 0
	for _, next := range []string{
		"Watching run_1; Ctrl-C stops watching", "Waiting: Inputs are fetched.\r\n", "━━━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌  25 %  fetching in\r", "event 1\r\n", "one\r\n", "━━╌", "━━━━━━━━━━╌╌╌╌╌╌╌╌╌╌  50 %  1 of 2 step\r",
		"\r\x1b[K\x1b[32mcompleted\x1b[0m run_1", "millrace runs outputs download run_1", "the end",
	} {
		found := strings.Index(shown[at:], next)
		if found < 0 {
			t.Fatalf("no %q behind %q in %q", next, shown[:at], shown[at:])
		}
		at += found
	}
}
