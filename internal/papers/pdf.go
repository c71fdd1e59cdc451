package papers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/ai/reader"
	"github.com/millrace/millrace/internal/domain/fault"
)

var _ ai.PDFs = (*Library)(nil)

// Sandbox runs a program on a stranger's file, where it can do no harm: without
// network, and with limits on what it uses. In argv, FileArgument stands for the
// file's path. A program that fails is no error: its status is a shell's, and
// what was ended for its limits has one of those below. Where there is no
// sandbox, it is fault.KindUnavailable.
type Sandbox interface {
	Run(ctx context.Context, file string, argv ...string) (out []byte, complaint string, status int, err error)
}

// FileArgument stands for the file among a program's arguments.
const FileArgument = "{file}"

// The statuses that the sandbox gives.
const (
	notInstalled = 127
	timedOut     = 124
	outOfCPU     = 152
	outOfDisk    = 153
	outOfMemory  = 137
)

// What is read of a PDF.
const (
	mostPages   = 60
	leastText   = 10 // letters: fewer are the number of a picture
	readingTime = 30 * time.Second
)

// LargestText is how much is read of what a PDF says, in bytes.
const LargestText = 4 << 20

// PDFText reads a file with pdftotext, page by page, when it is the payer's
// turn.
func (l *Library) PDFText(ctx context.Context, p ai.Payer, path string) (ai.Text, error) {
	if err := mustBePDF(path); err != nil {
		return ai.Text{}, err
	}
	done, err := l.turns.take(ctx, p)
	if err != nil {
		return ai.Text{}, err
	}
	defer done()
	within, cancel := context.WithTimeoutCause(ctx, readingTime, errPDFTooSlow)
	defer cancel()
	text, err := l.text(within, path)
	if err != nil && !fault.Is(err, fault.KindUnavailable) {
		err = unreadablePDF(within, err)
	}
	return text, err
}

var errPDFTooSlow = errors.New("the PDF takes too long to read")

// unreadablePDF is one that cost us our work. Whoever left before it was done is
// told nothing, but has caused it all the same.
func unreadablePDF(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errPDFTooSlow) {
		err = pdfTooSlow()
	}
	if e, foreseen := errors.AsType[*fault.Error](err); foreseen {
		return e.WithCause(errors.Join(ai.ErrUnreadable, e.Cause))
	}
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), ai.ErrUnreadable)
	}
	return err
}

func pdfTooSlow() *fault.Error {
	return fault.Invalid("this PDF takes too long to read").WithCode("pdf_unreadable")
}

func (l *Library) text(ctx context.Context, path string) (ai.Text, error) {
	out, err := l.poppler(ctx, path, "pdftotext", "-enc", "UTF-8", "-l", strconv.Itoa(mostPages), FileArgument, "-")
	if err != nil {
		return ai.Text{}, err
	}
	text := ai.Text{Pages: pages(out)}
	text.Of = len(text.Pages)
	if text.Of == mostPages {
		text.Of = max(text.Of, l.pageCount(ctx, path))
	}
	if letters(text.Pages) < leastText {
		return ai.Text{}, fault.Invalid("this PDF has images of pages but no text: upload a version with text, or run OCR on it first").WithCode("pdf_without_text")
	}
	return text, nil
}

func mustBePDF(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, ai.PDFHead))
	if err != nil {
		return err
	}
	return ai.MustBePDF(head)
}

// poppler runs one of its programs, and says in plain words why it gave up.
func (l *Library) poppler(ctx context.Context, path string, argv ...string) ([]byte, error) {
	out, said, status, err := l.Sandbox.Run(ctx, path, argv...)
	if e, foreseen := errors.AsType[*fault.Error](err); foreseen {
		e := *e
		e.Message = "PDFs cannot be read on this server: " + e.Message
		return nil, &e
	}
	switch {
	case err != nil:
		return nil, err
	case status == 0:
		return out, nil
	case status == notInstalled:
		return nil, fault.Unavailable("PDFs cannot be read on this server until its operator installs %s (apt-get install poppler-utils)", argv[0]).WithCode("pdftotext_missing")
	case status == timedOut || status == outOfCPU:
		return nil, pdfTooSlow()
	case status == outOfMemory:
		return nil, fault.Invalid("this PDF needs too much memory to read").WithCode("pdf_unreadable")
	case status == outOfDisk:
		return nil, fault.Invalid("this PDF contains too much text").WithCode("pdf_unreadable")
	case strings.Contains(said, "Incorrect password"):
		return nil, fault.Invalid("this PDF is encrypted: upload one that opens without a password").WithCode("pdf_encrypted")
	}
	return nil, fault.Invalid("this PDF is damaged or incomplete: its text cannot be read").WithCode("pdf_unreadable").
		WithCause(fmt.Errorf("%s ended with %d: %s", argv[0], status, said))
}

// pages cuts at the form feeds that end each page.
func pages(out []byte) (list []reader.Page) {
	text := strings.TrimSuffix(strings.ToValidUTF8(string(out), ""), "\f")
	for i, page := range strings.Split(text, "\f") {
		list = append(list, reader.Page{Number: i + 1, Text: page})
	}
	return list
}

func letters(list []reader.Page) (n int) {
	for _, p := range list {
		for _, r := range p.Text {
			if unicode.IsLetter(r) {
				n++
			}
		}
	}
	return n
}

var pagesLine = regexp.MustCompile(`(?m)^Pages:\s+([0-9]+)$`)

// pageCount is how many pages a long PDF has, or 0 when that is unknown.
func (l *Library) pageCount(ctx context.Context, path string) int {
	out, err := l.poppler(ctx, path, "pdfinfo", FileArgument)
	if err != nil {
		return 0
	}
	m := pagesLine.FindSubmatch(out)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil { // more than can be counted
		return 0
	}
	return n
}
