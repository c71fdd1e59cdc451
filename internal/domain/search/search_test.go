package search

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWordsOfATextAreSmallAndPlain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"50% Done_it, done":          "50 done it",
		"run_0190AB GRCh38/hg38":     "run 0190ab grch38 hg38",
		"Örjan O\u0308rjan ﬁne":      "orjan fine",
		"基因组 かな x":                   "基 因 组 か な x",
		"\x00a\xffb 'c' \"d\" & ! *": "a b c d",
		"# #12 _ -":                  "12",
		"":                           "",
	} {
		if got := strings.Join(Words(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestWordsAreBounded(t *testing.T) {
	t.Parallel()
	var long strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&long, "w%d ", i)
	}
	if n := len(Words(long.String())); n != maxWords {
		t.Errorf("%d words", n)
	}
	if w := Words(strings.Repeat("é", 1000)); len(w) != 1 || len(w[0]) != maxLetters {
		t.Errorf("%q", w)
	}
	// What is cut is found by the whole, and by its beginning.
	for _, n := range []int{1000, maxLetters, 3} {
		if n > 3 != slices.Contains(Words(strings.Repeat("x", 1000)), cut(strings.Repeat("x", n))) {
			t.Error(n)
		}
		if !Parse(strings.Repeat("x", n)).Finds(Words(strings.Repeat("x", 1000))) {
			t.Errorf("%d letters do not find it", n)
		}
	}
}

func TestAQueryFindsWhatHasAllItsWords(t *testing.T) {
	t.Parallel()
	words := append(Words("Trim reads of sample_12 基因"), Number("7"))
	for text, want := range map[string]bool{
		"trim": true, "TRI sam": true, "reads trim": true, "rim": false, "trim nothing": false, "12": true, "1": false,
		"t": false, "因": true, "#7": true, "#007": true, "#12": false, "7": false, "#7 trim": false, "": false, "#": false, `"&|!`: false, "trim OR nothing": false,
		"#99999999999999999999": false,
	} {
		if got := Parse(text).Finds(words); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestEndingsFindTheMiddleOfWords(t *testing.T) {
	t.Parallel()
	words := Endings(Words("Align reads 基 " + strings.Repeat("x", 30) + "middle"))
	for text, want := range map[string]bool{"lign": true, "gn": true, "n": false, "lign ead": true, "xmidd": true, "lignr": false, "基": true} {
		if got := Parse(text).Finds(words); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, "word%d ", i)
	}
	if n := len(Endings(Words(many.String()))); n != 1000+maxEndings {
		t.Errorf("%d words with endings", n)
	}
}

// Whatever comes in, words are made of letters and digits alone: a database may
// be handed them as they are.
func FuzzWords(f *testing.F) {
	f.Add("a'b\"c\\d\x00 & | ! ( ) : * NEAR AND # _ \u202e")
	f.Fuzz(func(t *testing.T, text string) {
		for _, w := range Words(text) {
			if w == "" || strings.ContainsAny(w, " '\"\\\x00&|!():*#_-") || !utf8.ValidString(w) || utf8.RuneCountInString(w) > maxLetters {
				t.Errorf("%q", w)
			}
		}
	})
}
