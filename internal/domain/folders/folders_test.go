package folders

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

var sum = strings.Repeat("ab", 32)

func file(path string) Entry        { return Entry{Path: path, Size: 3, SHA256: sum} }
func link(path, to string) Entry    { return Entry{Path: path, Link: to} }
func emptyFolder(path string) Entry { return Entry{Path: path, Folder: true} }

func TestAManifestIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	tool := file("bin/tool")
	tool.Executable = true
	for name, entries := range map[string][]Entry{
		"nothing":    {},
		"one file":   {file("a <&> ü.txt")},
		"everything": {file("b/c/d/e/f.txt"), link("b/up", "../a"), emptyFolder("a-b"), file("a"), tool, link("b/gone", "nowhere")},
	} {
		m, err := New(entries)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var hashless []Entry
		for _, e := range m.Entries {
			e.SHA256 = ""
			hashless = append(hashless, e)
		}
		if size := (Manifest{hashless}).Size(); size != int64(len(m.Text())) {
			t.Errorf("%s: %d bytes were said, and it has %d", name, size, len(m.Text()))
		}
		again, err := Parse(m.Text())
		if err != nil || len(again.Entries) != len(entries) || !bytes.Equal(again.Text(), m.Text()) {
			t.Errorf("%s: %v\n%s", name, err, m.Text())
		}
		if len(entries) > 0 && !reflect.DeepEqual(again, m) {
			t.Errorf("%s: %+v, not %+v", name, again, m)
		}
	}
}

func TestWhatIsInAFolderStaysInIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		entries []Entry
		wrong   string
	}{
		"a link beside":               {[]Entry{link("a/b", "c")}, ""},
		"a link up, and down":         {[]Entry{link("a/b/c", "../../d/e")}, ""},
		"a link to the folder itself": {[]Entry{link("a/b", "..")}, ""},
		"a link to itself":            {[]Entry{link("a", "a")}, ""},
		"a link above":                {[]Entry{link("a/b", "../..")}, "leads out"},
		"a link above, and back":      {[]Entry{link("a/b", "../../x/a")}, "leads out"},
		"an absolute link":            {[]Entry{link("a", "/etc/passwd")}, "leads out"},
		"a link over a link":          {[]Entry{link("d", "."), link("a/b/l", "../../d/..")}, "leads out"},
		"a link over a link, inside":  {[]Entry{link("d", "x/y"), link("l", "d/../z")}, ""},
		"a link over links":           {[]Entry{link("d", "x/y"), link("l", "d/../../.."), file("x/y/z")}, "leads out"},
		"links in a hidden folder":    {[]Entry{link(".d/e", ".."), link(".d/l", "e/../x")}, "leads out"},
		"a path above":                {[]Entry{file("../a")}, "no path below"},
		"an absolute path":            {[]Entry{file("/a")}, "no path below"},
		"no path":                     {[]Entry{file("")}, "no path below"},
		"the folder itself":           {[]Entry{file(".")}, "no path below"},
		"a path that is not clean":    {[]Entry{file("a//b")}, "no path below"},
		"a name with a line break":    {[]Entry{file("a\nb")}, "control character"},
		"a name with a backslash":     {[]Entry{file(`a\b`)}, "backslash"},
		"a name that is no text":      {[]Entry{file("a\xff")}, "broken text"},
		"a link with a NUL":           {[]Entry{link("a", "b\x00")}, "control character"},
		"a long path":                 {[]Entry{file(strings.Repeat("a/", 500) + "b")}, "longer than"},
		"a long name":                 {[]Entry{file("a/" + strings.Repeat("b", 256))}, "longer than 255"},
		"a name of the most bytes":    {[]Entry{file("a/" + strings.Repeat("b", 255))}, ""},
		"sizes that have no sum":      {[]Entry{{Path: "a", Size: math.MaxInt64, SHA256: sum}, {Path: "b", Size: 1, SHA256: sum}}, "that many bytes"},
		"twice":                       {[]Entry{file("a"), file("a")}, "twice"},
		"a file and a folder":         {[]Entry{file("a"), file("a-b"), file("a/b/c")}, "both a folder"},
		"a file below a link":         {[]Entry{link("a", "b"), file("a/c")}, "both a folder"},
		"a link that is a file":       {[]Entry{{Path: "a", Link: "b", Size: 1}}, "not one thing"},
		"a size below nothing":        {[]Entry{{Path: "a", Size: -1, SHA256: sum}}, "not one thing"},
		"no hash":                     {[]Entry{{Path: "a"}}, "sha256"},
	} {
		m, err := New(tt.entries)
		if (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%s: %v", name, err)
		}
		if _, again := Parse(m.Text()); (again == nil) != (tt.wrong == "") && !strings.Contains(name, "no text") {
			t.Errorf("%s, read again: %v", name, again)
		}
	}
}

func TestAFolderIsBounded(t *testing.T) {
	t.Parallel()
	if _, err := New(make([]Entry, MaxEntries+1)); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
	for links, want := range map[int]string{5_000: "", 5_100: "too many folders"} { // through 400 names each
		entries := []Entry{file("a/b")}
		for i := range links {
			entries = append(entries, link(fmt.Sprint(i), strings.Repeat("a/../", 199)+"a/b"))
		}
		if _, err := New(entries); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d links: %v", links, err)
		}
	}
	for _, text := range []string{"", "[]", `{"version":2,"entries":[]}`, `{"version":1,"entries":[{"path":"b"},{"path":"a"}]}`, `{"version":1,"x":1}`} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}

// A folder whose paths are deep, or whose links lead far along other links, takes about as
// long to check as another one with as much text.
func TestDeepPathsAndLongLinksAreCheckedInLinearTime(t *testing.T) {
	t.Parallel()
	files := func(below string) (entries []Entry) {
		for i := range 1_000 {
			entries = append(entries, file(fmt.Sprintf("%06d/", i)+below+"f"))
		}
		return entries
	}
	links := func(steps string) (entries []Entry) {
		for i := range maxHops {
			entries = append(entries, link(fmt.Sprintf("d%02d", i), fmt.Sprintf("d%02d/", i+1)+steps))
		}
		for i := range 10 {
			entries = append(entries, link(fmt.Sprintf("l%02d", i), "d01"))
		}
		return entries
	}
	for name, tt := range map[string]struct{ hard, easy []Entry }{
		"deep paths": {files(strings.Repeat("b/", 495)), files(strings.Repeat(strings.Repeat("b", 197)+"/", 5))},
		"long links": {links(strings.Repeat("x/", 400)), links(strings.Repeat("x/../", 200)[:990])},
	} {
		hard, easy := shortest(t, tt.hard), shortest(t, tt.easy)
		if hard > 10*easy {
			t.Errorf("%s: %v, and %v for the other folder", name, hard, easy)
		}
	}
}

// shortest is the least of several times that a folder takes to check.
func shortest(t *testing.T, entries []Entry) time.Duration {
	t.Helper()
	least := time.Hour
	for range 5 {
		began := time.Now()
		if err := (Manifest{entries}).Check(); err != nil {
			t.Fatal(err)
		}
		least = min(least, time.Since(began))
	}
	return least
}
