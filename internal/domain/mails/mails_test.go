package mails

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestANameInALetterIsShortQuotedAndNoLink(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Ada Lovelace":                "“Ada Lovelace”",
		"Dr. A.B. O'Neill-Żółw":       "“Dr. A. B. O'Neill-Żółw”",
		"李 小龍 (lab 3)":                "“李 小龍 (lab 3)”",
		"http://evil.example/x":       "“http evil. example x”",
		"win@evil.example":            "“win evil. example”",
		"www。evil。example":            "“www evil example”",
		"Ada” says: “open":            "“Ada says open”",
		"Ada\r\nBcc: eve@example.org": "“Ada Bcc eve example. org”",
		"a\u202eb\u200bc":             "“a b c”",
		"***":                         "Someone",
		strings.Repeat("long ", 60):   "“long long long long long long long long…”",
	} {
		if got := QuotedName(name); got != want {
			t.Errorf("%q is shown as %s, want %s", name, got, want)
		}
	}
}

func TestSentenceInAMailHasNoLink(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`Step "Count reads" exited with status 3`:      `Step "Count reads" exited with status 3`,
		"Step \"http://evil.example/x\"\nfailed: a.b.": `Step "http evil. example x" failed a. b.`,
		"":                           "",
		strings.Repeat("long ", 100): strings.Repeat("long ", 59) + "long…",
	} {
		if got := Sentence(text); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
	}
}

func TestTheLinesInAMailHaveNoLink(t *testing.T) {
	t.Parallel()
	if got, want := Lines("Task A failed: no luck\n\nsee http://evil.example\r\n \nno luck\n"), "Task A failed no luck\n  see http evil. example\n  no luck"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Lines(strings.Repeat("line\n", 100)); strings.Count(got, "line") != maxLines {
		t.Errorf("it shows %q", got)
	}
}

// FuzzShown holds every name against what mail programs make links of.
func FuzzShown(f *testing.F) {
	for _, seed := range []string{"Ada", "a.b", "http://a", "a@b", "\x00\r\n", "x．y", "a․b", "a:b/c\\d"} {
		f.Add(seed)
	}
	linkable := regexp.MustCompile(`[^\s]\.[^\s”…]|[@:/\\<>"\x00-\x1f]`)
	f.Fuzz(func(t *testing.T, name string) {
		got := QuotedName(name)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > nameRunes+2 || linkable.MatchString(got) {
			t.Errorf("%q is shown as %q", name, got)
		}
	})
}
