package papers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"codeberg.org/go-pdf/fpdf"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor/tool"
	"github.com/millrace/millrace/internal/engine/executor/tool/tooltest"
	"github.com/millrace/millrace/internal/papers"
	"github.com/millrace/millrace/internal/papers/paperstest"
)

func write(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.pdf")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func made(t *testing.T, draw func(*fpdf.Fpdf)) []byte {
	t.Helper()
	f := fpdf.New("P", "mm", "A4", "")
	f.AddPage()
	f.SetFont("Helvetica", "", 12)
	draw(f)
	var b bytes.Buffer
	if err := f.Output(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func reader(t *testing.T) *papers.Library {
	t.Helper()
	return papers.New(papers.Options{Sandbox: tooltest.New(t, tooltest.Limits)})
}

func TestAPDFThatCannotBeReadSaysWhy(t *testing.T) {
	t.Parallel()
	l := reader(t)
	for name, tt := range map[string]struct {
		content []byte
		kind    fault.Kind
		code    string
	}{
		"no PDF":      {[]byte("hello"), fault.KindUnsupported, ""},
		"empty":       {nil, fault.KindUnsupported, ""},
		"only a head": {[]byte("%PDF-1.7\nand that was it"), fault.KindInvalid, "pdf_unreadable"},
		"encrypted": {made(t, func(f *fpdf.Fpdf) {
			f.SetProtection(0, "secret", "more secret")
			f.MultiCell(0, 5, paperstest.Sample, "", "", false)
		}), fault.KindInvalid, "pdf_encrypted"},
		"only pictures": {made(t, func(f *fpdf.Fpdf) { f.Rect(10, 10, 100, 100, "F") }), fault.KindInvalid, "pdf_without_text"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := l.PDFText(t.Context(), ai.Payer{Owner: name}, write(t, tt.content))
			wantCode(t, err, tt.kind, tt.code)
			if cost := tt.kind == fault.KindInvalid; errors.Is(err, ai.ErrUnreadable) != cost {
				t.Errorf("that it cost us work is %t: %v", !cost, err)
			}
		})
	}
}

func TestAShortPDFIsRead(t *testing.T) {
	t.Parallel()
	text, err := reader(t).PDFText(t.Context(), ada, write(t, paperstest.PDF("Reads were mapped with BWA.")))
	if err != nil || len(text.Pages) != 1 || !strings.Contains(text.Pages[0].Text, "mapped with BWA") {
		t.Errorf("%+v, %v", text, err)
	}
}

func TestALongPDFIsReadInPart(t *testing.T) {
	t.Parallel()
	pages := make([]string, 70)
	for i := range pages {
		pages[i] = fmt.Sprintf("This is page %d.", i+1)
	}
	text, err := reader(t).PDFText(t.Context(), ada, write(t, paperstest.PDF(pages...)))
	if err != nil || len(text.Pages) != 60 || text.Of != 70 || text.Pages[59].Number != 60 || !strings.Contains(text.Pages[59].Text, "This is page 60.") {
		t.Errorf("%d pages of %d, %v", len(text.Pages), text.Of, err)
	}
}

func TestReadingEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := reader(t).PDFText(ctx, ada, write(t, paperstest.PDF(paperstest.Sample)))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A small file that would take hours is cut off when its processor time is up.
func TestABombIsCutOff(t *testing.T) {
	t.Parallel()
	bomb := paperstest.Bomb("")
	if len(bomb) > 8<<10 {
		t.Errorf("the bomb has %d bytes", len(bomb))
	}
	limits := tooltest.Limits
	limits.CPU = time.Second
	sandbox := &counting{Sandbox: tooltest.New(t, limits)}
	_, err := papers.New(papers.Options{Sandbox: sandbox}).PDFText(t.Context(), ada, write(t, bomb))
	wantCode(t, err, fault.KindInvalid, "pdf_unreadable")
	if !errors.Is(err, ai.ErrUnreadable) || sandbox.status != tool.OutOfCPU {
		t.Errorf("%v, status %d", err, sandbox.status)
	}
}

// counting remembers how the last program ended.
type counting struct {
	papers.Sandbox
	status int
}

func (c *counting) Run(ctx context.Context, file string, argv ...string) ([]byte, string, int, error) {
	out, said, status, err := c.Sandbox.Run(ctx, file, argv...)
	c.status = status
	return out, said, status, err
}

// ended is a sandbox whose programs all end like this.
type ended struct {
	status int
	said   string
	err    error
}

func (e ended) Run(context.Context, string, ...string) ([]byte, string, int, error) {
	return nil, e.said, e.status, e.err
}

func TestHowAProgramEndedIsToldInPlainWords(t *testing.T) {
	t.Parallel()
	path := write(t, paperstest.PDF(paperstest.Sample))
	for name, tt := range map[string]struct {
		ended ended
		kind  fault.Kind
		code  string
		says  string
		costs bool
	}{
		"not installed": {ended{status: tool.NotFound}, fault.KindUnavailable, "pdftotext_missing", "installs pdftotext", false},
		"no sandbox": {
			ended{err: fault.Unavailable("tasks cannot be isolated").WithCode("no_sandbox")},
			fault.KindUnavailable, "no_sandbox", "PDFs cannot be read on this server: tasks cannot be isolated", false,
		},
		"time":      {ended{status: tool.TimedOut}, fault.KindInvalid, "pdf_unreadable", "too long", true},
		"processor": {ended{status: tool.OutOfCPU}, fault.KindInvalid, "pdf_unreadable", "too long", true},
		"memory":    {ended{status: tool.OutOfMemory}, fault.KindInvalid, "pdf_unreadable", "too much memory", true},
		"disk":      {ended{status: tool.OutOfDisk}, fault.KindInvalid, "pdf_unreadable", "too much text", true},
		"crash":     {ended{status: 139}, fault.KindInvalid, "pdf_unreadable", "damaged", true},
		"password":  {ended{status: 1, said: "Command Line Error: Incorrect password"}, fault.KindInvalid, "pdf_encrypted", "without a password", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := papers.New(papers.Options{Sandbox: tt.ended}).PDFText(t.Context(), ada, path)
			wantCode(t, err, tt.kind, tt.code)
			if err == nil || !strings.Contains(err.Error(), tt.says) || errors.Is(err, ai.ErrUnreadable) != tt.costs {
				t.Errorf("it says %v", err)
			}
		})
	}
}
