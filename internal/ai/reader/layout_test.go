package reader_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/ai/reader"
)

// part is a part of the methods with a heading of its own.
func part(number, title, text string) string { return number + " " + title + "\n" + text + "\n\n" }

// order is where the texts stand in what was read; -1: nowhere.
func places(pages []reader.Page, texts ...string) []int {
	var all strings.Builder
	for _, s := range reader.Sections(pages) {
		all.WriteString(s.Text + "\n")
	}
	var at []int
	for _, text := range texts {
		at = append(at, strings.Index(all.String(), text))
	}
	return at
}

// Columns that were taken in turn are put back; headings of a third level are no
// sign of that.
func TestColumnsAreToldFromParts(t *testing.T) {
	t.Parallel()
	const first, second, third, fourth = "The samples were taken by hand.", "The samples were kept in the dark.", "The reads were counted at night.", "The counts were compared by eye."
	for name, page := range map[string]string{
		"one after the other":  part("2.1", "Sampling", first) + part("2.2", "Keeping", second) + part("2.3", "Counting", third) + part("2.4", "Comparing", fourth),
		"two columns in turn":  part("2.1", "Sampling", first) + part("2.3", "Counting", third) + part("2.2", "Keeping", second) + part("2.4", "Comparing", fourth),
		"parts of parts":       "It began in the spring of that year.\n\n" + part("3.1", "Sampling", first) + part("3.1.1", "Keeping", second) + part("3.2", "Counting", third) + part("3.3", "Comparing", fourth),
		"parts of parts often": part("3.1", "Sampling", first) + part("3.1.1", "Keeping", second) + part("3.1.2", "Counting", third) + part("3.1.3", "Comparing", fourth),
	} {
		at := places([]reader.Page{{Number: 1, Text: "2 Methods\n" + page}}, first, second, third, fourth)
		if !slices.IsSorted(at) || at[0] < 0 {
			t.Errorf("%s: they stand at %v", name, at)
		}
	}
}

func TestTheTitleIsToldFromWhatStandsAboveIt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"On the flow of water in mills\n\nAda Weir\n\nAbstract\nIt flows.":                                        "On the flow of water in mills",
		"Research Article\n\nOn the flow of water in mills\n\nAbstract\nIt flows.":                                "On the flow of water in mills",
		"Journal of Mills 12 (2020) 1–9\n\nhttps://doi.org/10.1/x\n\nOn the flow of water\n\nAbstract\nIt flows.": "On the flow of water",
		"Received 3 May 2020\n\n© 2020 The Authors of This\n\nOn the flow of water\n\nAbstract\nIt flows.":        "On the flow of water",
		"On the flow of\nwater in mills\nA. B. Weir, C. Wheel\n\nAbstract\nIt flows.":                             "On the flow of water in mills",
		"On the flow of water in mills Ada Weir1, Ben Wheel2\n\nAbstract\nIt flows.":                              "On the flow of water in mills",
		"arXiv:2001.00001 some identifier here\n\nOn the flow of water.\n\nAbstract\nIt flows.":                   "On the flow of water",
		"Mills\n\nTwo words\n\nAbstract\nIt flows.":                                                               "",
		"Abstract\nIt flows.": "",
		strings.Repeat("word ", 41) + "\n\nAbstract\nIt flows.": "",
		"": "",
		"Über den Fluß des Wassers\n\nAbstract\nEs fließt.": "Über den Fluß des Wassers",
	} {
		if title, _ := reader.TitlePage(page(text)); title != want {
			t.Errorf("%.60q is called %q, want %q", text, title, want)
		}
	}
}

func TestTheAbstractIsThatOfThePaper(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"A title of three\n\nAbstract\nIt flows.\n\n1 Introduction\nMore.":     "It flows.",
		"A title of three\n\nAbstract—It flows.\n\nKeywords: a, b\n\nMore.":    "It flows.",
		"A title of three\n\nSUMMARY: It flows.\n\nIntroduction\nMore.":        "It flows.",
		"A title of three\n\nAbstract\nIt flows\nand turns.\n\nMethods\nMore.": "It flows and turns.",
		"A title of three\n\nIntroduction\nMore.":                              "",
	} {
		if _, abstract := reader.TitlePage(page(text)); abstract != want {
			t.Errorf("%.60q: %q, want %q", text, abstract, want)
		}
	}
}

// What stands on every page is none of the text, wherever it stands on it.
func TestHeadsAndFeetOfPagesAreLeftOut(t *testing.T) {
	t.Parallel()
	var pages []reader.Page
	for i, ordinal := range []string{"first", "second", "third", "fourth"} {
		pages = append(pages, reader.Page{Number: 10 + i, Text: fmt.Sprintf(
			"Journal of Mills vol. 3, page %d\n\n%d\n\nThe wheel of the %s mill was turned by hand until it\nstopped.\n\nDownloaded on day %d by a reader\n\nPage %d of 14\n", 10+i, 10+i, ordinal, i, 10+i)})
	}
	found := reader.Sections(pages)
	if len(found) != 1 || found[0].Page != 10 {
		t.Fatalf("%+v", found)
	}
	for _, word := range []string{"Journal", "Downloaded", "Page 1", "\n10", "\n11"} {
		if strings.Contains(found[0].Text, word) {
			t.Errorf("%q is in %q", word, found[0].Text)
		}
	}
	if n := strings.Count(found[0].Text, "was turned by hand until it stopped."); n != 4 {
		t.Errorf("%d sentences are left of 4: %q", n, found[0].Text)
	}
	// A line that only one page of three has is text.
	single := reader.Sections([]reader.Page{{1, "A line that is on one page\n"}, {2, "Another line that is here\n"}, {3, "And a third line that differs\n"}})
	if len(single) != 1 || strings.Count(single[0].Text, "line") != 3 {
		t.Errorf("%+v", single)
	}
}

// A paper is read up to a bound; what is beyond does not count, and where the
// bound is in the middle of a letter, that letter does not.
func TestAPaperIsReadUpToABound(t *testing.T) {
	t.Parallel()
	const most = 1 << 20
	const methods = "Methods\nReads were aligned with STAR (v2.7.9a) in the hall of the m\u00fc"
	for left, want := range map[int]string{
		len(methods):       "Reads were aligned with STAR (v2.7.9a) in the hall of the mü",
		len(methods) - 1:   "Reads were aligned with STAR (v2.7.9a) in the hall of the m",
		len(methods) - 2:   "Reads were aligned with STAR (v2.7.9a) in the hall of the m",
		len("Methods\nRe"): "Re",
		0:                  "",
	} {
		found := reader.Sections([]reader.Page{{Number: 1, Text: strings.Repeat(" ", most-left)}, {Number: 2, Text: methods}, {Number: 3, Text: "More of it."}})
		var got string
		for _, s := range found {
			got += s.Text
		}
		if left == len(methods) {
			got = strings.TrimSuffix(got, "More of it.")
		}
		if got != want {
			t.Errorf("with room for %d bytes it reads %q, want %q", left, got, want)
		}
	}
}
