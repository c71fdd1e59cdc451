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

func TestPartsAreFoundAnywhereInAName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		query, name string
		want        bool
	}{
		{"reads", "sample_reads.fq", true},
		{"reads_1", "reads_10.fq", true},
		{"ple_re", "Sample_Reads.fq", true},
		{"FQ sample", "sample_reads.fq", true},
		{"sample bam", "sample_reads.fq", false},
		{"raksmorgas", "Räksmörgås 1.csv", true},
		{"RÄK", "Ra\u0308ksmörgås", true},
		{"%", "100%.csv", true},
		{"_", "ab.csv", false},
		{"日本", "日本語.txt", true},
		{"  ", "anything", true},
		{"", "anything", true},
		{"\xff", "anything", false},
	} {
		if got := ParseParts(tt.query).In(tt.name); got != tt.want {
			t.Errorf("%q in %q: %v", tt.query, tt.name, got)
		}
	}
}

func TestFindLooksAtNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	const all = 3*foundIn + 5
	read := 0
	page := func(after, n int) (list []int, err error) {
		for i := after + 1; i <= all && len(list) < n; i++ {
			list = append(list, i)
		}
		read += len(list)
		return list, nil
	}
	find := func(words string, limit, after int) ([]int, *int) {
		read = 0
		found, last, err := Find(ParseParts(words), limit, after, func(i int) string { return fmt.Sprint("file ", i, ".csv") }, page)
		if err != nil {
			t.Fatal(err)
		}
		return found, last
	}
	if found, last := find("", 3, 0); fmt.Sprint(found) != "[1 2 3]" || *last != 3 || read != 4 {
		t.Errorf("the first three: %v until %d, %d read", found, *last, read)
	}
	if found, last := find("", 3, all-3); len(found) != 3 || last != nil {
		t.Errorf("the last three: %v, %v", found, last)
	}
	if found, last := find("file 77", 2, 0); fmt.Sprint(found) != "[77 177]" || *last != 177 || read > foundAtOnce {
		t.Errorf("by name: %v until %d, %d read", found, *last, read)
	}
	// One far down is found by going on.
	after, rounds := 0, 0
	var found []int
	for last := &after; last != nil; rounds++ {
		if found, last = find(fmt.Sprint("file ", all), 1, after); last != nil {
			after = *last
		}
		if read > foundIn {
			t.Fatalf("%d were read at once", read)
		}
	}
	if fmt.Sprint(found) != fmt.Sprint("[", all, "]") || rounds != 4 {
		t.Errorf("%v after %d rounds", found, rounds)
	}
}
