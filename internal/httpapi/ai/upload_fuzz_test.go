package ai

import (
	"bytes"
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/kernel"
)

// FuzzUpload gives anything as a form with a PDF: what is taken is whole, and
// what is refused leaves nothing behind.
func FuzzUpload(f *testing.F) {
	const kind = "multipart/form-data; boundary=x"
	field := func(name, value string) string {
		return "--x\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	pdf := field("file", "%PDF-1.7\nhello")
	for _, body := range []string{
		pdf + "--x--", pdf + field("doi", "10.1000/a") + field("title", "On mills") + "--x--", pdf + pdf + "--x--", pdf, field("file", "MZ") + "--x--",
		field("title", strings.Repeat("a", 1001)) + pdf + "--x--", field("title", "\xff") + "--x--", field("other", "a") + "--x--", "--x--", "", "--x\r\n\r\n--x--",
		"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"../../etc/passwd\"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=25PDF-1.7\r\n--x--",
		strings.ReplaceAll(pdf, "\r\n", "\n") + "--x--",
	} {
		f.Add(kind, []byte(body))
	}
	f.Add("multipart/form-data", []byte(pdf))
	f.Add("multipart/mixed; boundary=x", []byte(pdf+"--x--"))
	f.Add("multipart/form-data; boundary=\"\"", []byte(pdf))
	f.Add("application/json", []byte("{}"))
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		scratch := t.TempDir()
		r := httptest.NewRequest("POST", "/api/ai/upload", bytes.NewReader(body))
		r.Header.Set("Content-Type", kind)
		u := &paperForm{}
		err := u.read(&kernel.Exchange{Request: r, Writer: &kernel.Writer{ResponseWriter: httptest.NewRecorder()}}, scratch)
		if err != nil {
			refusedWell(t, err)
		} else {
			takenWell(t, u)
		}
		u.remove()
		if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
			t.Errorf("%v is left behind: %v", left, err)
		}
	})
}

// takenWell looks at a form that was taken.
func takenWell(t *testing.T, u *paperForm) {
	t.Helper()
	file, err := os.ReadFile(u.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := ai.MustBePDF(file[:min(len(file), ai.PDFHead)]); err != nil || len(u.SHA256) != 64 {
		t.Errorf("%q was taken with hash %q: %v", file, u.SHA256, err)
	}
	if !utf8.ValidString(u.DOI+u.Title) || utf8.RuneCountInString(u.DOI) > 300 || utf8.RuneCountInString(u.Title) > 1000 {
		t.Errorf("taken with doi %q and title %q", u.DOI, u.Title)
	}
}

// refusedWell wants a failure that is the caller's, with a sentence.
func refusedWell(t *testing.T, err error) {
	t.Helper()
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Message == "" || e.Kind == fault.KindInternal {
		t.Errorf("refused with %v", err)
	}
}
