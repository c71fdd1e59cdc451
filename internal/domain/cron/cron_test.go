package cron

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

func parsed(t *testing.T, text, zone string) Schedule {
	t.Helper()
	z, err := Zone(zone)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(text, z)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return s
}

func TestTheClocksChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cron, zone, after, want string }{
		// Forward: 02:00 is 03:00.
		{"30 2 * * *", "Europe/Berlin", "2027-03-27T12:00:00Z", "2027-03-28T01:00:00Z 2027-03-29T00:30:00Z"},
		{"0,30 2 * * *", "Europe/Berlin", "2027-03-27T12:00:00Z", "2027-03-28T01:00:00Z 2027-03-29T00:00:00Z"},
		{"0 3 * * *", "Europe/Berlin", "2027-03-27T12:00:00Z", "2027-03-28T01:00:00Z 2027-03-29T01:00:00Z"},
		{"30 * * * *", "Europe/Berlin", "2027-03-28T00:00:00Z", "2027-03-28T00:30:00Z 2027-03-28T01:30:00Z"},
		{"0 * * * *", "Europe/Berlin", "2027-03-28T00:00:00Z", "2027-03-28T01:00:00Z 2027-03-28T02:00:00Z"},
		// Back: 03:00 is 02:00 again.
		{"30 2 * * *", "Europe/Berlin", "2027-10-30T12:00:00Z", "2027-10-31T00:30:00Z 2027-11-01T01:30:00Z"},
		{"30 * * * *", "Europe/Berlin", "2027-10-31T00:00:00Z", "2027-10-31T00:30:00Z 2027-10-31T01:30:00Z"},
		{"0 3 * * *", "Europe/Berlin", "2027-10-30T12:00:00Z", "2027-10-31T02:00:00Z 2027-11-01T02:00:00Z"},
		// By half an hour.
		{"15 2 * * *", "Australia/Lord_Howe", "2027-10-02T00:00:00Z", "2027-10-02T15:30:00Z 2027-10-03T15:15:00Z"},
		// Words, and Sunday by either number.
		{"@daily", "America/New_York", "2027-01-01T00:00:00Z", "2027-01-01T05:00:00Z 2027-01-02T05:00:00Z"},
		{"0 0 * * 7", "", "2027-01-01T00:00:00Z", "2027-01-03T00:00:00Z 2027-01-10T00:00:00Z"},
		{"0 0 * * 6-7", "", "2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z 2027-01-03T00:00:00Z"},
		{"0 0 29 2 *", "", "2027-01-01T00:00:00Z", "2028-02-29T00:00:00Z 2032-02-29T00:00:00Z"},
	} {
		after, err := time.Parse(time.RFC3339, c.after)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, at := range parsed(t, c.cron, c.zone).After(after, 2) {
			got = append(got, at.Format(time.RFC3339))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s in %s after %s: %s, want %s", c.cron, c.zone, c.after, text, c.want)
		}
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "0 0 30 2 *", "@every 1s", "TZ=UTC 0 0 * * *", "CRON_TZ=", "TZ=", ", * * * *",
		"@reboot", "@", "*/0 * * * *", "1-0 * * * *", "\x00 * * * *", strings.Repeat("1,", 200) + "1 * * * *", "-1 * * * *", "99999999999999999999 * * * *",
	} {
		if s, err := Parse(text, time.UTC); err == nil {
			t.Errorf("%q is taken: %v", text, s.After(time.Now(), 1))
		}
	}
	for _, name := range []string{"Local", "Mars/Base", "../etc/passwd", "/etc/localtime", "Europe", strings.Repeat("x", 100)} {
		if _, err := Zone(name); err == nil {
			t.Errorf("%q is a time zone", name)
		}
	}
}

// zones are all that this machine knows, by name.
func zones(t *testing.T) (names []string) {
	t.Helper()
	for _, file := range []string{"/usr/share/zoneinfo/tzdata.zi", "/usr/share/zoneinfo/zone1970.tab", "/usr/share/zoneinfo/zone.tab"} {
		f, err := os.Open(filepath.Clean(file))
		if err != nil {
			continue
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			words := strings.Fields(lines.Text())
			switch {
			case strings.HasSuffix(file, ".tab") && len(words) >= 3 && !strings.HasPrefix(words[0], "#"):
				names = append(names, words[2])
			case strings.HasSuffix(file, ".zi") && len(words) >= 2 && words[0] == "Z":
				names = append(names, words[1])
			}
		}
		if len(names) > 0 {
			return names
		}
	}
	return []string{
		"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "America/Santiago", "Asia/Gaza", "Europe/Dublin",
		"America/Nuuk", "Pacific/Chatham", "Asia/Tehran", "Antarctica/Troll", "UTC",
	}
}

// Over all changes of the clocks in ten years and all time zones: a schedule
// that names hours is due exactly once for each time on the clock, and one of
// every hour whenever the clock shows it.
func TestNoTimeIsMissedOrDoubled(t *testing.T) {
	t.Parallel()
	from, until := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), time.Date(2036, 11, 1, 0, 0, 0, 0, time.UTC)
	type kind struct {
		at            int64
		before, after int
	}
	tried := map[kind]bool{} // most zones change as others do
	for _, name := range zones(t) {
		zone, err := time.LoadLocation(name)
		if err != nil {
			continue // older than the machine's list
		}
		for change := from; ; {
			_, end := change.In(zone).ZoneBounds()
			if change = end; end.IsZero() || end.After(until) {
				break
			}
			_, before := end.Add(-time.Second).In(zone).Zone()
			_, after := end.In(zone).Zone()
			if k := (kind{end.Unix(), before, after}); !tried[k] && before != after {
				tried[k] = true
				around(t, name, zone, end)
			}
		}
	}
}

func around(t *testing.T, name string, zone *time.Location, change time.Time) {
	t.Helper()
	begin, end := change.Add(-4*time.Hour).Truncate(time.Minute), change.Add(4*time.Hour)
	for _, hour := range []string{"*", "0-22", "0-12", "12-23"} {
		s, err := Parse("*/10 "+hour+" * * *", zone)
		if err != nil {
			t.Fatal(err)
		}
		var got []time.Time
		for at := s.Next(begin); at.Before(end); at = s.Next(at) {
			if n := len(got); n > 0 && !at.After(got[n-1]) {
				t.Fatalf("%s: %v comes after %v", name, at, got[n-1])
			}
			got = append(got, at)
		}
		if want := byHand(s, zone, begin, end, hour == "*"); !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Errorf("%s, hours %s, at %v:\n got %v\nwant %v", name, hour, change, got, want)
		}
	}
}

// byHand looks at the clock minute by minute, as somebody would who has to
// press the button.
func byHand(s Schedule, zone *time.Location, begin, end time.Time, everyHour bool) (due []time.Time) {
	const wall = "2006-01-02 15:04"
	matches := func(text string) bool {
		at, _ := time.Parse(wall, text)
		return s.fields.Next(at.Add(-time.Second)).Equal(at)
	}
	seen := map[string]bool{}
	for at := begin.Add(-3 * time.Hour); !at.After(begin); at = at.Add(time.Minute) {
		seen[at.In(zone).Format(wall)] = true
	}
	for at := begin.Add(time.Minute); at.Before(end); at = at.Add(time.Minute) {
		now, _ := time.Parse(wall, at.In(zone).Format(wall))
		last, _ := time.Parse(wall, at.Add(-time.Minute).In(zone).Format(wall))
		press := matches(now.Format(wall)) && (everyHour || !seen[now.Format(wall)])
		for skipped := last.Add(time.Minute); !everyHour && skipped.Before(now); skipped = skipped.Add(time.Minute) {
			press = press || matches(skipped.Format(wall)) && !seen[skipped.Format(wall)]
		}
		seen[now.Format(wall)] = true
		if press {
			due = append(due, at)
		}
	}
	return due
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"* * * * *", "0 6 * * 1-5", "@weekly", "*/5 1,2 1-3 jan sun", "TZ=x", ", , , , ,"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text, time.UTC)
		if err != nil {
			return
		}
		last := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
		for _, at := range s.After(last, 5) {
			if !at.After(last) || at.Second() != 0 {
				t.Fatalf("%q: %v after %v", text, at, last)
			}
			last = at
		}
	})
}
