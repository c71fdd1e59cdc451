//go:build linux

package transfer_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/cli/clitest"
	"github.com/millrace/millrace/internal/cli/transfer"
)

// Somebody sees how far a file is, and how fast, and nothing of it afterwards.
func TestAPersonSeesHowFarAFileIs(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(answering(strings.Repeat("x", 3<<20)))
	t.Cleanup(server.Close)
	for name, shows := range map[string]string{
		"f":                   "f                  ━━━━━━━━━━━━━━━━━━",
		"eighteen letters.x":  "eighteen letters.x ━━",
		"nineteen letters.xy": "nineteen letters.… ━━",
		"漢字":                  "漢字               ━━",
		"漢字漢字漢字漢字漢字":          "漢字漢字漢字漢字…  ━━",
	} {
		d := clitest.New(t)
		person := d.UseScreen(t)
		d.Now = func() time.Time { d.Clock = d.Clock.Add(time.Second); return d.Clock }
		to := &transfer.Folder{Console: d.Console, HTTP: http.DefaultClient}
		if err := to.Open(t.TempDir()); err != nil {
			t.Fatal(err)
		}
		if err := to.Fetch(transfer.File{Path: name, URL: server.URL, Size: 3 << 20}); err != nil {
			t.Error(err)
		}
		to.Close()
		d.Say("the end")
		if shown := person.Sees("the end"); !strings.Contains(shown, "\r\x1b[K"+shows) || !strings.HasSuffix(shown, "\r\x1b[Kthe end\r\n") {
			t.Errorf("%s: %q", name, shown[max(0, len(shown)-400):])
		}
	}
}
