package objects_test

import (
	"errors"
	"io"
	"mime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/objects"
)

func TestADownloadIsNamedWithoutMisleading(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"":                  `attachment`,
		"a.csv":             `attachment; filename="a.csv"`,
		"a b (1).csv":       `attachment; filename="a b (1).csv"`,
		"50%41.csv":         `attachment; filename="50_41.csv"; filename*=UTF-8''50%2541.csv`,
		"żółw.csv":          `attachment; filename="___w.csv"; filename*=UTF-8''%C5%BC%C3%B3%C5%82w.csv`,
		`a"; x="b.csv`:      `attachment; filename="a_; x=_b.csv"`,
		"a\r\nX: y":         `attachment; filename="a__X: y"`,
		"../../etc/passwd":  `attachment; filename=".._.._etc_passwd"`,
		"a\u202evsc.exe":    `attachment; filename="a_vsc.exe"`,
		"broken\xff\xfe.md": `attachment; filename="broken_.md"`,
	} {
		got := objects.Attachment(name)
		if got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
		if kind, _, err := mime.ParseMediaType(strings.Replace(got, "filename*", "extended*", 1)); err != nil || kind != "attachment" {
			t.Errorf("%q: %s: %v", name, got, err)
		}
	}
}

// exactly reads as much as was announced and not a byte more, as a client of
// S3 does.
func exactly(r io.Reader, size int) error {
	_, err := io.ReadFull(r, make([]byte, size))
	return err
}

func TestTheLastByteIsGivenOnlyWhenNoneFollows(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]func(string) io.Reader{
		"at once":         func(s string) io.Reader { return strings.NewReader(s) },
		"byte by byte":    func(s string) io.Reader { return iotest.OneByteReader(strings.NewReader(s)) },
		"end with data":   func(s string) io.Reader { return iotest.DataErrReader(strings.NewReader(s)) },
		"half and halves": func(s string) io.Reader { return iotest.HalfReader(strings.NewReader(s)) },
	} {
		for text, kind := range map[string]fault.Kind{"hell": fault.KindInvalid, "hello": "", "hello!": fault.KindInvalid} {
			m := objects.Measure(t.Context(), source(text), 5)
			err := exactly(m, 5)
			if (kind == "") != (err == nil) || (kind == "") != (m.Err() == nil) || (kind != "" && !fault.Is(m.Err(), kind)) {
				t.Errorf("%s, %q: %v, %v", name, text, err, m.Err())
			}
		}
	}
}

func TestWhyASourceFailedIsRemembered(t *testing.T) {
	t.Parallel()
	why := errors.New("the cable was pulled")
	m := objects.Measure(t.Context(), iotest.ErrReader(why), 5)
	for range 2 {
		if _, err := m.Read(make([]byte, 5)); !errors.Is(err, why) || !errors.Is(m.Err(), why) {
			t.Errorf("%v, %v", err, m.Err())
		}
	}
}

func TestCopyingMeasuresLikeReading(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("GATTACA", 300_000) // several pieces, the last one not full
	var nothing strings.Builder
	if _, err := objects.Measure(t.Context(), strings.NewReader(""), 0).WriteTo(&nothing); err != nil || nothing.Len() > 0 {
		t.Errorf("an empty object: %v", err)
	}
	for name, size := range map[string]int{"as announced": len(text), "too long": len(text) - 1, "too short": len(text) + 1, "any length": -1} {
		read := objects.Measure(t.Context(), strings.NewReader(text), int64(size))
		_, wantErr := io.Copy(io.Discard, struct{ io.Reader }{read})
		copied := objects.Measure(t.Context(), iotest.HalfReader(strings.NewReader(text)), int64(size))
		var b strings.Builder
		_, err := copied.WriteTo(&b)
		if (err == nil) != (wantErr == nil) || fault.KindOf(err) != fault.KindOf(wantErr) {
			t.Errorf("%s: %v instead of %v", name, err, wantErr)
		}
		if err == nil && (b.String() != text || copied.Object("k", "t") != read.Object("k", "t")) {
			t.Errorf("%s: another content or hash", name)
		}
	}
}
