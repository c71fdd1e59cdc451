package reader

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// A slash marks where one sentence ends and the next begins.
func TestWhereSentencesEnd(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"Cells were washed. /They were dried.",
		"Is it so? /It is! /We saw it.",
		"Reads (see Fig. 3) were cut, e.g. at both ends, by Smith et al. in 2019.",
		"We followed J. R. Smith. /Nothing was changed.",
		"All was done in R. /Plots were drawn.",
		"It was computed using R. /It took a day.",
		"Vitamin C. elegans is none.",
		"This was known.1,2 /It was shown again.3–5 /We agree.",
		"It fell to approx. 3 % of vol. 2.",
		"They said \"stop.\" /We did.",
		"It ended (at last.) /Then it began.",
		"One ends. and goes on in small letters.",
		"The value of 3.5 mm is in v. 2.1 of the code.",
		"No stop at the end",
		"",
		". /. /.",
		"Ä. Öl was used. /Über all.",
	} {
		want := strings.FieldsFunc(text, func(r rune) bool { return r == '/' })
		for i := range want {
			want[i] = strings.TrimSpace(want[i])
		}
		if got := sentences(strings.ReplaceAll(text, "/", "")); !slices.Equal(got, want) {
			t.Errorf("%q\n is cut into %q", text, got)
		}
	}
}

func TestATextIsClippedAtAWord(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{"one two", 7, "one two"},
		{"one two", 6, "one …"},
		{"one two", 4, "one …"},
		{"one two", 3, "one …"},
		{"onetwo", 3, "one …"},
		{"ééé", 3, "é …"},
		{"", 0, ""},
	} {
		if got := clip(tt.text, tt.most); got != tt.want {
			t.Errorf("%q to %d is %q, want %q", tt.text, tt.most, got, tt.want)
		}
	}
}

// What is too long to be a sentence comes in pieces, none of which is lost.
func TestLongTextsComeInPieces(t *testing.T) {
	t.Parallel()
	words := strings.TrimSpace(strings.Repeat("word ", 1000))
	for name, text := range map[string]string{
		"words": words, "no space": strings.Repeat("x", 4*maxSentence+1), "letters of two bytes": strings.Repeat("é", 2*maxSentence),
		"at the bound": strings.Repeat("x", maxSentence), "one beyond": strings.Repeat("x", maxSentence+1), "nothing": "",
	} {
		var whole strings.Builder
		for _, piece := range pieces([]string{text}) {
			if len(piece) > maxSentence || !utf8.ValidString(piece) {
				t.Errorf("%s: a piece of %d bytes", name, len(piece))
			}
			whole.WriteString(strings.ReplaceAll(piece, " ", ""))
		}
		if name != "letters of two bytes" && whole.String() != strings.ReplaceAll(text, " ", "") {
			t.Errorf("%s: something is lost", name)
		}
	}
}

// said is a sentence that may be quoted, told apart from others by its number.
func said(i int, weight float64) candidate {
	return candidate{fmt.Sprintf("The mill by the stream was measured on day number %d of the long summer.", i), weight}
}

// However many sentences there are, those that count most are looked at, and
// those that are picked stand in the order of the paper.
func TestSentencesArePickedInTheirOrder(t *testing.T) {
	t.Parallel()
	type run struct {
		n      int
		weight float64
	}
	for name, tt := range map[string]struct {
		runs []run
		most float64 // all of this weight are picked
	}{
		"an end that counts":          {[]run{{maxRanked + 40, 1}, {2, 3}}, 3},
		"an end that counts a little": {[]run{{maxRanked + 40, 0.6}, {4, 1.5}}, 1.5},
		"a middle that counts":        {[]run{{200, 0.5}, {2, 4}, {200, 0.5}}, 4},
		"all alike":                   {[]run{{maxRanked + 40, 1}}, 0},
	} {
		var all []candidate
		for _, r := range tt.runs {
			for range r.n {
				all = append(all, said(len(all), r.weight))
			}
		}
		var places []int
		heavy := 0
		for _, text := range pick(all, 6, 1500) {
			i := slices.IndexFunc(all, func(c candidate) bool { return c.text == text })
			places = append(places, i)
			if all[i].weight == tt.most {
				heavy++
			}
		}
		want := 0
		for _, c := range all {
			if c.weight == tt.most {
				want++
			}
		}
		if len(places) != 6 || !slices.IsSorted(places) || heavy != want {
			t.Errorf("%s: those at %v are picked, %d of the %d that count", name, places, heavy, want)
		}
	}
}

func TestWhatIsPicked(t *testing.T) {
	t.Parallel()
	long := "The wheel " + strings.Repeat("turns and ", 48) + "stops."
	for name, tt := range map[string]struct {
		all           []candidate
		most, letters int
		want          int
	}{
		"nothing":             {nil, 6, 1500, 0},
		"the same twice":      {[]candidate{said(1, 1), said(1, 1), said(2, 1)}, 6, 1500, 2},
		"as many as asked":    {[]candidate{said(1, 1), said(2, 1), said(3, 1)}, 2, 1500, 2},
		"as long as fits":     {[]candidate{said(1, 1), said(2, 1), said(3, 1)}, 6, 2 * len(said(1, 1).text), 2},
		"one letter too long": {[]candidate{said(1, 1)}, 6, len(said(1, 1).text) - 1, 0},
		"too short":           {[]candidate{{"It was done.", 1}}, 6, 1500, 0},
		"too long":            {[]candidate{{long + long, 1}}, 6, 1500, 0},
		"no end":              {[]candidate{{strings.TrimSuffix(said(1, 1).text, "."), 1}}, 6, 1500, 0},
		"a formula":           {[]candidate{{"E = m c ^ 2 (1), F = G M m / r ^ 2 (2), H = p ^ 2 / 2 m + V (3), Z = Σ (4).", 1}}, 6, 1500, 0},
		"without weight":      {[]candidate{said(1, 0), said(2, 0)}, 6, 1500, 2},
	} {
		if got := pick(tt.all, tt.most, tt.letters); len(got) != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A heading is ranked by its number, to the second part; without one by its words.
func TestHeadingsHaveAPlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"1 Introduction": 100, "2. Methods": 200, "2.1 Sampling": 201, "2.10 Sampling": 210, "3.1.2 Field work": 301, "3.1.12. Field work": 301, "IV. RESULTS": 400,
		"Abstract": 0, "Introduction": 100, "DISCUSSION": 400, "References": 9200, "Data availability": 9000,
	} {
		if got, ok := rank(text); !ok || got != want {
			t.Errorf("%q is at %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "Some words", "the methods", "2 methods of counting", "Methods were used.", "1 Introduction.", strings.Repeat("Methods ", 20)} {
		if got, ok := rank(text); ok {
			t.Errorf("%q is at %d", text, got)
		}
	}
}
