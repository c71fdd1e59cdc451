package cli

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/line"
)

// noticing is a server with a notice, of which it says this.
func noticing(t *testing.T, notice string, read func()) string {
	t.Helper()
	return clitest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/notice" {
			read()
			_, _ = io.WriteString(w, notice)
			return
		}
		w.Header().Set("X-Notice", "notice_1")
		page := `{"hasMore":false}`
		if r.URL.Query().Get("cursor") == "" {
			page = `{"hasMore":true,"nextCursor":"c"}`
		}
		clitest.Answer(w, http.StatusOK, `{"success":true,"data":[],"page":`+page+`}`)
	})
}

// A notice goes to people, once per command, and never into what programs read.
func TestANoticeIsToldOncePerCommand(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args, notice, tells string
		read                int
	}{
		"to inform":       {"files", clitest.Data(`{"id":"notice_1","text":"New disks","level":"info","until":null}`), "Notice from the operator: New disks\n", 1},
		"a warning":       {"files", clitest.Data(`{"id":"notice_1","text":"It \u001b[31mstops","level":"warning","until":null}`), "Warning from the operator: It [31mstops\n", 1},
		"removed by now":  {"files", clitest.Data(`{"id":null,"text":null,"level":null,"until":null}`), "", 1},
		"unreadable":      {"files", "<html>", "", 1},
		"for a program":   {"files --json", "", "", 0},
		"of a plain call": {"api GET /api/files", "", "", 0},
	} {
		read := 0
		d, server := clitest.New(t), noticing(t, tt.notice, func() { read++ })
		d.SignedIn(t, server, line.Grant{Token: "oat_1"})
		if code := d.Type(&Commands{}, "", strings.Fields(tt.args)...); code != 0 || d.Errors.String() != tt.tells || read != tt.read {
			t.Errorf("%s: %d, told %q, the notice was read %d times; printed %q", name, code, d.Errors, read, d.Printed)
		}
	}
}
