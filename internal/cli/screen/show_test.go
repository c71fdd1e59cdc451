package screen_test

import (
	"testing"
	"time"

	"github.com/millrace/millrace/internal/cli/screen"
)

func TestWhatPeopleRead(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	w := screen.Console{Now: func() time.Time { return now }}
	for ago, want := range map[time.Duration]string{
		0: "just now", 61 * time.Second: "1 minute ago", 3 * time.Hour: "3 hours ago", 50 * time.Hour: "2 days ago", -7*24*time.Hour + time.Second: "in 7 days",
	} {
		if got := w.Ago(now.Add(-ago)); got != want {
			t.Errorf("%v: %q, want %q", ago, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KB", 5 << 30: "5.0 GB"} {
		if got := screen.Size(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
	for n, want := range map[float64]string{0: "0", 0.0056: "0.0056", 12345678.5: "12,345,678.5", -1000: "-1,000", 0.000001: "under 0.0001", 500: "500"} {
		if got := screen.Amount(n); got != want {
			t.Errorf("%v: %q", n, got)
		}
	}
	for d, want := range map[time.Duration]string{5 * time.Millisecond: "5 ms", 1200 * time.Millisecond: "1.2 s", 125 * time.Second: "2m 05s", 90 * time.Minute: "1h 30m"} {
		if got := screen.Duration(d); got != want {
			t.Errorf("%v: %q", d, got)
		}
	}
	if got := screen.Clean("a\x1b[2Jb\nc\x07"); got != "a[2Jb c" {
		t.Errorf("%q", got)
	}
}
