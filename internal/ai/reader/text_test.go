package reader_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/ai/reader"
	"github.com/millrace/millrace/internal/domain/graph"
)

func page(text string) []reader.Page { return []reader.Page{{Number: 1, Text: text}} }

func TestHeadingsOfAllKindsAreFound(t *testing.T) {
	t.Parallel()
	const body = "\nThe samples were taken by hand and were kept cold until the next day.\n\n"
	for heading, want := range map[string]reader.Kind{
		"Abstract": reader.Abstract, "ABSTRACT": reader.Abstract, "1 Introduction": reader.Introduction, "I. I NTRODUCTION": reader.Introduction,
		"2. Materials and Methods": reader.Methods, "MATERIAL AND METHODS": reader.Methods, "Online Methods": reader.Methods,
		"Experimental Section": reader.Methods, "Computational Details": reader.Methods, "2 Data and methods": reader.Methods,
		"II. METHODOLOGY": reader.Methods, "Observations and data reduction": reader.Methods, "Patients and methods": reader.Methods,
		"3 Results and Discussion": reader.Results, "DISCUSSION": reader.Discussion, "5. Conclusions": reader.Conclusion,
		"Data availability": reader.Availability, "Data and code availability": reader.Availability, "Availability of data and materials": reader.Availability,
		"Acknowledgements": reader.Back, "Competing interests": reader.Back, "Funding": reader.Back,
		"References": reader.References, "LITERATURE CITED": reader.References, "Bibliography": reader.References,
	} {
		found := reader.Sections(page("A title of a paper\n\n" + heading + body))
		if last := found[len(found)-1]; last.Kind != want {
			t.Errorf("%q opens %q, not %q", heading, last.Kind, want)
		}
	}
	for _, plain := range []string{"ethics committee.", "results of the second group were", "12 or 16 samples and kept"} {
		if found := reader.Sections(page("Introduction\nIt was approved by the\n" + plain + body)); len(found) != 1 {
			t.Errorf("%q is taken for a heading", plain)
		}
	}
}

func TestTextIsCleaned(t *testing.T) {
	t.Parallel()
	pages := []reader.Page{
		{Number: 1, Text: "Journal of Tests 12 (2020) 101\n\n1\n\nMethods\nThe ﬁrst cells were classi-\nﬁed with a high-\nthroughput scanner. A high-throughput scanner is use-\nful. Reads were aligned with BWA-\nMEM and models trained with scikit-\nlearn and DE-\nSeq2; the run went\n\f"},
		{Number: 2, Text: "Journal of Tests 12 (2020) 102\n\n2\n\non for a day.\n\nReferences\n1. Somebody. Something.\n"},
	}
	found := reader.Sections(pages)
	const want = "The first cells were classified with a high-throughput scanner. A high-throughput scanner is useful. " +
		"Reads were aligned with BWA-MEM and models trained with scikit-learn and DESeq2; the run went on for a day."
	if len(found) != 2 || found[0].Text != want || found[0].Page != 1 || found[1].Page != 2 {
		t.Errorf("%+v", found)
	}
}

func TestQuotesAreFoundWordForWord(t *testing.T) {
	t.Parallel()
	pages := []reader.Page{
		{Number: 3, Text: "A running head of this journal\n\nThe ﬁrst sam-\nples were “kept” at 4 °C until they were\n"},
		{Number: 4, Text: "A running head of this journal\n\nsequenced on a single ﬂow cell.\n"},
	}
	for quote, want := range map[string]int{
		"The first samples were \"kept\" at 4 °C":          3,
		"first sam-\nples  were “kept”":                    3,
		"kept” at 4 °C until they were sequenced on":       3,
		"sequenced on a single flow cell.":                 4,
		"sequenced on a single flow cells":                 0,
		"The First samples were":                           0,
		"The first samples were kept at 4 °C":              0,
		"samples":                                          0, // says too little
		"":                                                 0,
		"A running head of this journal The first samples": 3,
	} {
		if page, ok := reader.Quoted(pages, quote); page != want || ok != (want > 0) {
			t.Errorf("%q: page %d, %v", quote, page, ok)
		}
	}
}

func TestADefinitionIsCheckedAndLaidOut(t *testing.T) {
	t.Parallel()
	arranged, problems := reader.Arrange([]byte(`{"version":1,"nodes":[
		{"id":"a","command":"true","position":{"x":7,"y":7},"outputs":{"o":{"path":"o"}}},{"id":"b","command":"true","position":{"x":7,"y":7}}],
		"edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"i"}]}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	g, _ := graph.Parse(arranged)
	if a, b := g.Nodes[0].Position, g.Nodes[1].Position; a.X >= b.X {
		t.Errorf("%v %v", a, b)
	}
	for _, bad := range []string{
		`{"nodes":[{"id":"a"}]}`, `{"nodes":[]}`, `{"nodes":[{"id":"a","command":"x","inputs":{"i":{}}}]}`, `nonsense`, `[]`, `{"nodes":7}`, `null`,
		`{"nodes":[{"id":"a","command":"x"},{"id":"a","command":"y"}]}`,
	} {
		if got, problems := reader.Arrange([]byte(bad)); len(problems) == 0 || got != nil {
			t.Errorf("%s: %s", bad, got)
		}
	}
}

func TestAPaperWithoutToolsSuggestsNothing(t *testing.T) {
	t.Parallel()
	r := reader.Read(reader.Paper{Title: "On walking", Pages: page("Methods\nPeople were asked to walk for an hour in the park, and were watched from a bench.\n")})
	if r.Suggestion != nil || len(r.Methodology.Steps) != 1 || r.Title != "On walking" {
		t.Errorf("%+v", r)
	}
	text, err := json.Marshal(reader.Read(reader.Paper{}).Methodology)
	if err != nil || string(text) != `{"overview":"","steps":[],"datasets":[],"software":[]}` {
		t.Errorf("%s %v", text, err)
	}
}

func TestDataAndCodeAreListed(t *testing.T) {
	t.Parallel()
	r := reader.Read(reader.Paper{Pages: page(`Data availability
Reads are in GEO (GSE12345), SRA (SRP123456) and under PRJNA99887; spectra under PXD012345. Structures have PDB codes 1ABC and the map EMD-12345.
Scans are ds000117 on OpenNeuro; tables at 10.5281/zenodo.123456, 10.5061/dryad.abc12, 10.6084/m9.figshare.1234567, osf.io/ab3de and kaggle.com/some/data.
Code: https://github.com/some-lab/some-code and gitlab.com/a/b.

References
1. Other data are in GSE99999 and github.com/not/ours.
`)})
	want := []string{
		"GEO GSE12345", "SRA SRP123456", "BioProject PRJNA99887", "PDB 1ABC", "EMDB EMD-12345", "PRIDE PXD012345", "OpenNeuro ds000117",
		"Zenodo 10.5281/zenodo.123456", "Dryad 10.5061/dryad.abc12", "figshare 10.6084/m9.figshare.1234567", "OSF osf.io/ab3de", "Kaggle kaggle.com/some/data",
	}
	if got := r.Methodology.Datasets; !slices.Equal(sorted(got), sorted(want)) {
		t.Errorf("%q", got)
	}
	if got := r.Methodology.Software; !slices.Equal(got, []string{"https://github.com/some-lab/some-code", "https://gitlab.com/a/b"}) {
		t.Errorf("%q", got)
	}
}

// noise is pages of words, numbers and names that make no sense.
func noise(pages, words int) []reader.Page {
	r := rand.New(rand.NewPCG(1, 2))
	some := strings.Fields("Methods were STAR v2.1 ( ) . . ; - ﬁ 2.1 References using R in = [12] samtools fastp the of and cells\n \n\n Results the-\n 3.5). Table 1 GSE1234 doi:10.5281/zenodo.1 A. B. C.")
	var all []reader.Page
	for n := range pages {
		var b strings.Builder
		for range words {
			b.WriteString(some[r.IntN(len(some))])
			b.WriteString([]string{" ", " ", " ", "\n", "\n\n", "-\n", ". "}[r.IntN(7)])
		}
		all = append(all, reader.Page{Number: n + 1, Text: b.String()})
	}
	return all
}

func TestNoiseIsRead(t *testing.T) {
	t.Parallel()
	for name, pages := range map[string][]reader.Page{
		"words": noise(60, 300), "one word": page(strings.Repeat("a", 1<<16)), "no stop": page(strings.Repeat("were aligned with STAR ", 1<<11)),
		"stops": page(strings.Repeat(". ", 1<<14)), "headings": page(strings.Repeat("2.1 Methods and more\n\n", 1<<10)), "brackets": page(strings.Repeat("fastp (", 1<<11)),
		"sentences": page(strings.Repeat("The cells were measured with FastQC (v1.2) in the second room. ", 1<<9)), "not text": page("\xff\xfe\x00" + strings.Repeat("\x00\n", 1000)),
	} {
		r := reader.Read(reader.Paper{Pages: pages})
		if len(r.Notes) == 0 || len(r.Methodology.Steps) > 100 || len(r.Summary) > 4000 {
			t.Errorf("%s: %d steps, a summary of %d", name, len(r.Methodology.Steps), len(r.Summary))
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("A title\n\nAbstract\nWe did it.\n\n2 Methods\nReads were aligned with STAR (v2.7) and sorted with SAM-\ntools.\n", "References\n1. None.")
	f.Add("2.1 A\n\n1 B\n\n3 C\n\nD.\n\n2 E\n\nF.", "\x00\xff ﬁ")
	f.Fuzz(func(t *testing.T, first, second string) {
		pages := []reader.Page{{Number: 1, Text: first}, {Number: 2, Text: second}}
		r := reader.Read(reader.Paper{Pages: pages})
		for _, s := range r.Methodology.Steps {
			for _, e := range s.Evidence {
				if page, ok := reader.Quoted(pages, e.Quote); !ok || page != e.Page {
					t.Errorf("page %d does not say %q", e.Page, e.Quote)
				}
			}
		}
		if r.Suggestion == nil {
			return
		}
		if g, problems := graph.Parse(r.Suggestion.Definition); len(problems) > 0 || len(g.Incomplete()) > 0 {
			t.Errorf("%v", problems)
		}
	})
}
