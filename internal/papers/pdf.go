package papers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/ai/reader"
	"github.com/millrace/millrace/internal/domain/fault"
)

var _ ai.PDFs = (*Library)(nil)

// What pdftotext may use and print.
const (
	mostReaders = 4 // at once
	mostPages   = 60
	largestText = 4 << 20 // bytes
	pdfSeconds  = 30
	pdfMemoryKB = 2 << 20
	leastText   = 10 // letters: fewer are the number of a picture
)

// PDFText reads a file with pdftotext, page by page.
func (l *Library) PDFText(ctx context.Context, path string) (ai.Text, error) {
	if err := mustBePDF(path); err != nil {
		return ai.Text{}, err
	}
	select {
	case l.desks <- struct{}{}:
		defer func() { <-l.desks }()
	case <-ctx.Done():
		return ai.Text{}, ctx.Err()
	}
	out, err := poppler(ctx, "pdftotext", "-enc", "UTF-8", "-l", strconv.Itoa(mostPages), path, "-")
	if err != nil {
		return ai.Text{}, err
	}
	text := ai.Text{Pages: pages(out)}
	text.Of = len(text.Pages)
	if text.Of == mostPages {
		text.Of = max(text.Of, pageCount(ctx, path))
	}
	if letters(text.Pages) < leastText {
		return ai.Text{}, fault.Invalid("this PDF holds pictures of pages, but no text: upload a version with text, or run OCR on it first").WithCode("pdf_without_text")
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

// bounded runs a program that reads strangers' files: its memory and its time
// are limited by the shell that becomes it.
const bounded = `ulimit -v "$1"; ulimit -t "$2"; ulimit -f 0; ulimit -c 0; shift 2; exec "$@"`

func poppler(ctx context.Context, program string, args ...string) ([]byte, error) {
	if _, err := exec.LookPath(program); err != nil {
		return nil, fault.Unavailable("PDFs cannot be read on this server until its operator installs %s (apt-get install poppler-utils)", program).
			WithCode("pdftotext_missing").WithCause(err)
	}
	ctx, cancel := context.WithTimeout(ctx, pdfSeconds*time.Second)
	defer cancel()
	argv := append([]string{"-c", bounded, "sh", strconv.Itoa(pdfMemoryKB), strconv.Itoa(pdfSeconds), program}, args...)
	c := exec.CommandContext(ctx, "sh", argv...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "HOME=/nonexistent"}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second
	out, said := &capped{most: largestText, stops: true}, &capped{most: 4 << 10}
	c.Stdout, c.Stderr = out, said
	if err := c.Run(); err != nil && !out.full {
		return nil, unreadable(ctx, err, said.String())
	}
	return out.Bytes(), nil
}

// unreadable says in plain words why poppler gave up.
func unreadable(ctx context.Context, err error, said string) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault.Invalid("this PDF takes too long to read").WithCode("pdf_unreadable")
	case ctx.Err() != nil:
		return ctx.Err()
	case strings.Contains(said, "Incorrect password"):
		return fault.Invalid("this PDF is encrypted: upload one that opens without a password").WithCode("pdf_encrypted")
	}
	return fault.Invalid("this PDF is damaged or incomplete: its text cannot be read").WithCode("pdf_unreadable").WithCause(fmt.Errorf("%w: %s", err, said))
}

// capped keeps the first bytes, and may stop the writer at the last of them.
type capped struct {
	bytes.Buffer
	most  int
	stops bool
	full  bool
}

func (c *capped) Write(p []byte) (int, error) {
	room := max(0, c.most-c.Len())
	c.full = c.full || len(p) > room
	n, err := c.Buffer.Write(p[:min(len(p), room)])
	if err == nil && n < len(p) && c.stops {
		return n, io.ErrShortWrite
	}
	return len(p), err
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
func pageCount(ctx context.Context, path string) int {
	out, err := poppler(ctx, "pdfinfo", path)
	if err != nil {
		return 0
	}
	if m := pagesLine.FindSubmatch(out); m != nil {
		n, _ := strconv.Atoi(string(m[1])) // digits only; too many are 0
		return n
	}
	return 0
}
