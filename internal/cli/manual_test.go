package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// A page is read by roff, to which a dot at the beginning of a line, a backslash and a
// dash mean something else.
func TestTheManualPageSaysWhatTheCommandsSay(t *testing.T) {
	t.Parallel()
	var commands struct {
		Do struct {
			Name   string `arg:"" help:"What to do."`
			Dry    bool   `help:".hidden files, or C:\\temp."`
			Secret string `hidden:"" help:"never shown"`
			Bare   bool
		} `cmd:"" help:"Do it.\n\n'Quoted' first.\n\nMore-or-less."`
		Group struct {
			Inner struct{} `cmd:"" help:"Inside."`
			Quiet struct{} `cmd:"" hidden:"" help:"never shown"`
		} `cmd:"" help:"A group."`
	}
	parser, err := kong.New(&commands, kong.Name("millrace"), kong.Description("Runs workflows.\n\n.Second paragraph."))
	if err != nil {
		t.Fatal(err)
	}
	var first, again bytes.Buffer
	for _, page := range []*bytes.Buffer{&first, &again} {
		if err := writeManual(page, parser.Model, "1.2-rc"); err != nil {
			t.Fatal(err)
		}
	}
	if first.String() != again.String() {
		t.Error("the same program has two pages")
	}
	for _, want := range []string{
		".TH MILLRACE 1 \"\" \"millrace 1.2\\-rc\"", "millrace \\- Runs workflows.\n", "\n.PP\n\\&.Second paragraph.\n", ".SS do <name> [flags]\nDo it.\n.PP\n\\&'Quoted' first.\n.PP\nMore\\-or\\-less.\n",
		".TP\n.B <name>\nWhat to do.\n", ".B \\-\\-dry\n\\&.hidden files, or C:\\etemp.\n", ".SS group inner",
	} {
		if !strings.Contains(first.String(), want) {
			t.Errorf("no %q in\n%s", want, &first)
		}
	}
	for _, hidden := range []string{"never shown", "secret", "bare", "quiet"} {
		if strings.Contains(first.String(), hidden) {
			t.Errorf("it has %q", hidden)
		}
	}
	for line := range strings.Lines(first.String()) {
		if strings.HasPrefix(line, ".") && !strings.HasPrefix(line, ".TH ") && !strings.HasPrefix(line, ".SH ") && !strings.HasPrefix(line, ".SS ") && !strings.HasPrefix(line, ".TP") &&
			!strings.HasPrefix(line, ".B ") && !strings.HasPrefix(line, ".I ") && !strings.HasPrefix(line, ".PP") {
			t.Errorf("roff is asked for %q", line)
		}
	}
}
