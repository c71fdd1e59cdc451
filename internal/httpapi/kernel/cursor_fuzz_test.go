package kernel

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
)

// FuzzCursor gives anything as a cursor: it is a text that a database takes,
// and that makes the same cursor again, or it is refused.
func FuzzCursor(f *testing.F) {
	for _, query := range []string{
		"", "cursor", "cursor=", "cursor=%00", "cursor=" + *AsCursor("run_019557419d0e7b5a8c11f24e6b90d7a3"), "cursor=" + *AsCursor("12"),
		"cursor=" + *AsCursor("a\x00b"), "cursor=" + *AsCursor("\xff"), "cursor=" + *AsCursor(strings.Repeat("a", 1001)), "cursor=YQ==", "cursor=Y%0AQ", "cursor=YR",
	} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		given := (&url.URL{RawQuery: query}).Query()["cursor"]
		got, err := Cursor(&http.Request{URL: &url.URL{RawQuery: query}})
		switch {
		case err != nil:
			refusedWell(t, err)
		case given == nil:
			if got != "" {
				t.Errorf("%q is %q", query, got)
			}
		case got == "" || len(got) > 1000 || !Printable(got):
			t.Errorf("%q is %q", query, got)
		case *AsCursor(got) != given[0]:
			t.Errorf("%q and %q are the same place", given[0], *AsCursor(got))
		}
	})
}

// refusedWell wants a failure that is the caller's, with a sentence.
func refusedWell(t *testing.T, err error) {
	t.Helper()
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Message == "" || e.Kind == fault.KindInternal {
		t.Errorf("refused with %v", err)
	}
}
