package papers_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/papers"
)

// program is a sandbox in which this runs.
type program func(ctx context.Context, name string) (out string, status int, err error)

func (p program) Run(ctx context.Context, _ string, argv ...string) ([]byte, string, int, error) {
	out, status, err := p(ctx, argv[0])
	return []byte(out), "", status, err
}

// stuck runs until it is ended.
func stuck(ctx context.Context, _ string) (string, int, error) {
	<-ctx.Done()
	return "", 0, ctx.Err()
}

// A program that never ends is ended after half a minute, and that is the PDF's
// fault; whoever leaves before is told nothing, but has caused the work.
func TestAProgramThatNeverEnds(t *testing.T) {
	t.Parallel()
	path := write(t, []byte("%PDF-1.7\n"))
	synctest.Test(t, func(t *testing.T) {
		l := papers.New(papers.Options{Sandbox: program(stuck)})
		began := time.Now()
		_, err := l.PDFText(t.Context(), ada, path)
		wantCode(t, err, fault.KindInvalid, "pdf_unreadable")
		if took := time.Since(began); took != 30*time.Second || !errors.Is(err, ai.ErrUnreadable) || !strings.Contains(err.Error(), "takes too long") {
			t.Errorf("after %v: %v", took, err)
		}
		for _, tt := range []struct {
			leave func(context.Context) (context.Context, context.CancelFunc)
			want  error
		}{
			{func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			}, context.DeadlineExceeded},
			{func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, leave := context.WithCancel(ctx)
				time.AfterFunc(time.Second, leave)
				return ctx, leave
			}, context.Canceled},
		} {
			ctx, leave := tt.leave(t.Context())
			_, err := l.PDFText(ctx, ada, path)
			if _, told := errors.AsType[*fault.Error](err); told || !errors.Is(err, tt.want) || !errors.Is(err, ai.ErrUnreadable) {
				t.Errorf("%v: %v", tt.want, err)
			}
			leave()
		}
	})
}

// What fails for our own reasons is not the PDF's fault.
func TestWhatIsNotThePDFsFault(t *testing.T) {
	t.Parallel()
	broken := errors.New("no space left on device")
	l := papers.New(papers.Options{Sandbox: program(func(context.Context, string) (string, int, error) { return "", 0, broken })})
	if _, err := l.PDFText(t.Context(), ada, write(t, []byte("%PDF-1.7\n"))); !errors.Is(err, broken) || errors.Is(err, ai.ErrUnreadable) {
		t.Errorf("got %v", err)
	}
	if _, err := l.PDFText(t.Context(), ada, filepath.Join(t.TempDir(), "none.pdf")); err == nil || errors.Is(err, ai.ErrUnreadable) || fault.KindOf(err) != fault.KindInternal {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := l.PDFText(t.Context(), ada, t.TempDir()); err == nil || errors.Is(err, ai.ErrUnreadable) {
		t.Errorf("a folder: %v", err)
	}
}

// The pages of a long PDF are counted where that is possible; else it has as many
// as were read.
func TestHowManyPagesThereAre(t *testing.T) {
	t.Parallel()
	path := write(t, []byte("%PDF-1.7\n"))
	text := func(pages int) string { return strings.Repeat("Some words on a page.\n\f", pages) }
	for name, tt := range map[string]struct {
		read   int
		info   string
		status int
		want   int
	}{
		"few": {59, "Pages: 70\n", 0, 59}, "many": {60, "Title: Pages: 3\nPages:          70\nEncrypted: no\n", 0, 70}, "as many as are read": {60, "Pages: 60\n", 0, 60},
		"fewer than were read": {60, "Pages: 3\n", 0, 60}, "nobody knows": {60, "", 0, 60}, "it cannot be told": {60, "Pages: 70\n", 1, 60},
		"more than can be counted": {60, "Pages: 99999999999999999999\n", 0, 60}, "less than none": {60, "Pages: -70\n", 0, 60}, "not installed": {60, "", 127, 60},
	} {
		l := papers.New(papers.Options{Sandbox: program(func(_ context.Context, name string) (string, int, error) {
			if name == "pdfinfo" {
				return tt.info, tt.status, nil
			}
			return text(tt.read), 0, nil
		})})
		got, err := l.PDFText(t.Context(), ada, path)
		if err != nil || len(got.Pages) != tt.read || got.Of != tt.want || got.Pages[tt.read-1].Number != tt.read {
			t.Errorf("%s: %d pages of %d, want %d: %v", name, len(got.Pages), got.Of, tt.want, err)
		}
	}
}

// A PDF with hardly a letter is pictures, whatever else is in it.
func TestHowManyLettersMakeAText(t *testing.T) {
	t.Parallel()
	path := write(t, []byte("%PDF-1.7\n"))
	for text, ok := range map[string]bool{"tenletters": true, "nineletts": false, "\f\f\f": false, "": false, "1234567890 +-*/ 1234567890": false, "ああああああああああ": true, "te\xffn\xfelett\fer\f": false, "ten\xff\fletters": true} {
		l := papers.New(papers.Options{Sandbox: program(func(context.Context, string) (string, int, error) { return text, 0, nil })})
		got, err := l.PDFText(t.Context(), ada, path)
		if (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
		if !ok {
			wantCode(t, err, fault.KindInvalid, "pdf_without_text")
		}
		for _, p := range got.Pages {
			if !utf8.ValidString(p.Text) || strings.Contains(p.Text, "\f") {
				t.Errorf("%q has the page %q", text, p.Text)
			}
		}
	}
}
