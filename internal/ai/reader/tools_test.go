package reader_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/ai/reader"
	"github.com/millrace/millrace/internal/domain/graph"
)

func read(text string) reader.Reading { return reader.Read(reader.Paper{Pages: page(text)}) }

func TestWhichToolsWereUsed(t *testing.T) {
	t.Parallel()
	const methods = "Methods\nReads were trimmed with fastp v0.23.4 and were kept cold.\n\n"
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"those of the methods":              {methods, []string{"fastp 0.23.4"}},
		"what others used":                  {"Introduction\nPrevious studies have been carried out using HISAT2 in other labs.\n\n" + methods, []string{"fastp 0.23.4"}},
		"what could be used":                {methods + "Discussion\nFuture work could use HISAT2 v2.2.1 for all of this.\n", []string{"fastp 0.23.4"}},
		"what the references name":          {methods + "References\n1. Kim D. HISAT2 is a fast aligner. Nature 2015.\n", []string{"fastp 0.23.4"}},
		"what the discussion says was done": {methods + "Discussion\nAll reads were aligned using HISAT2 v2.2.1 before that.\n", []string{"fastp 0.23.4", "HISAT2 2.2.1"}},
		"a program that nobody knows":       {methods + "Wheels were counted with MillCounter v1.4.2 on the same day.\n", []string{"fastp 0.23.4", "MillCounter 1.4.2"}},
		"a word that is no program":         {methods + "Wheels were counted in section v1.4.2 on the same day.\n", []string{"fastp 0.23.4"}},
		"the same twice":                    {methods + "Reads were trimmed again with fastp and were kept warm.\n", []string{"fastp 0.23.4"}},
		"a version after a stop":            {"Methods\nReads were trimmed with fastp v. 0.23.4 and aligned with STAR (ver. 2.7.9a) on that day.\n", []string{"fastp 0.23.4", "STAR 2.7.9a"}},
		"a tool with those who made it":     {"Methods\nReads were trimmed with fastp (Chen et al., 2018) and aligned with STAR [Dobin et al. 2013] on that day.\n", []string{"fastp", "STAR"}},
		"others who used a tool":            {methods + "Chen et al. (2018) trimmed their reads with HISAT2 and were done.\n", []string{"fastp 0.23.4"}},
		"no methods at all":                 {"Reads were trimmed with fastp v0.23.4 and were kept cold.\n", []string{"fastp 0.23.4"}},
	} {
		if got := read(tt.text).Methodology.Software; !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestDataIsNotGuessed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Structures were taken from the Protein Data Bank in 2021.":                "Protein Data Bank",
		"Structures were taken from the PDB in 2021 (6LU7).":                       "PDB 6LU7",
		"Structures are in the PDB under 10GS and in PDB entry 148L, or PDB 1abc.": "PDB 10GS, PDB 148L, PDB 1abc",
		"Reads are in GSE12 and SRR1.":                                             "",
		"Reads are in GSE123.":                                                     "GEO GSE123",
		"Tables are at 10.5281/ zenodo. 123456.":                                   "Zenodo 10.5281/zenodo.123456",
		"Genomes are GCF_000001405.40 and GCA_000001635.":                          "Assembly GCF_000001405.40, Assembly GCA_000001635",
		"Reads are in GSE1234 and again in GSE1234.":                               "GEO GSE1234",
		"Sequences have GenBank accession MN908947.3.":                             "GenBank MN908947.3, GenBank",
		"Proteins have UniProt entries P0DTC2.":                                    "UniProt P0DTC2, UniProt",
		"Our phone is 555-1234 and the room is E-MTAB.":                            "",
	} {
		if got := strings.Join(read("Data availability\n"+text+"\n").Methodology.Datasets, ", "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	broken := read("Data availability\nTables are at 10.5281/\n\nzenodo.123456\n")
	if got := broken.Methodology.Datasets; len(got) != 1 || got[0] != "Zenodo 10.5281/zenodo.123456" {
		t.Errorf("%q", got)
	}
}

// Lists stay such as somebody reads them.
func TestAReadingIsBounded(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("Methods\n")
	for i := range 150 {
		fmt.Fprintf(&text, "2.%d Counting of W%d\nThe reads in GSE%d were counted with WheelTool%d v1.%d.0 on that day and were kept.\n\n", i%99+1, i, 1000+i, i, i)
	}
	r := read(text.String())
	m := r.Methodology
	if len(m.Datasets) != 100 || len(m.Software) != 100 || len(m.Steps) != 40 {
		t.Errorf("%d datasets, %d programs, %d steps", len(m.Datasets), len(m.Software), len(m.Steps))
	}
	long := read("Methods\n" + strings.Repeat("Reads were trimmed with fastp and were looked at again with great care on that long day. ", 50) + "\n").Methodology.Steps
	if len(long) != 1 || len(long[0].Evidence) != 4 || len(long[0].Description) > 710 || !slices.Equal(long[0].Tools, []string{"fastp"}) {
		t.Errorf("%+v", long)
	}
}

// suggested is the workflow that a paper's methods lead to.
func suggested(t *testing.T, methods string) (*graph.Graph, *reader.Suggestion) {
	t.Helper()
	s := read("Methods\n" + methods + "\n").Suggestion
	if s == nil {
		return nil, nil
	}
	g, problems := graph.Parse(s.Definition)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return g, s
}

func TestWhatIsSuggested(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		methods string
		want    []string
	}{
		"a task for each, in order":       {"Reads were trimmed with fastp, aligned with HISAT2 and counted with featureCounts on that day.", []string{"fastp", "HISAT2", "featureCounts"}},
		"a language only if it is all":    {"All analyses were done in R (version 4.0.2) by one of us.", []string{"R"}},
		"no language beside its packages": {"Expression was computed with DESeq2 v1.40 in R (version 4.0.2) by one of us.", []string{"DESeq2"}},
		"nothing for people at a park":    {"People were asked to walk for an hour in the park.", nil},
	} {
		g, s := suggested(t, tt.methods)
		var got []string
		if g != nil {
			var d struct {
				Nodes []struct {
					Tool string `json:"x-tool"`
				}
			}
			if err := json.Unmarshal(s.Definition, &d); err != nil {
				t.Fatal(err)
			}
			for _, n := range d.Nodes {
				got = append(got, n.Tool)
			}
			if len(g.Edges) < len(g.Nodes)-1 || s.Confidence <= 0 || s.Confidence > 0.8 {
				t.Errorf("%s: %d edges, confidence %v", name, len(g.Edges), s.Confidence)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// Nothing of a command is the paper's own text, whatever a version looks like.
func TestAVersionIsNoCommand(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1.2$(id)", "v1.2`id`", "v1.2;id", "v1.2|id", "v1.2&id", "v1.2>x", "v1.2'x", `v1.2"x`, "v1.2\\x", "v1.2#x", "v1.2\nid", "v1.2" + strings.Repeat("3", 500), "v1.2\u2028id"} {
		g, _ := suggested(t, "Reads were trimmed with fastp "+version+" and were kept.")
		if g == nil {
			t.Fatalf("%q: nothing is suggested", version)
		}
		first, _, _ := strings.Cut(g.Nodes[0].Command, "\n")
		if strings.Contains(g.Nodes[0].Command, "id`") || strings.Contains(g.Nodes[0].Command, "$(id") || strings.ContainsAny(first, "$`;|&<>'\"\\") || len(first) > 120 {
			t.Errorf("%q: %s", version, g.Nodes[0].Command)
		}
	}
}

func TestASuggestionIsNamedAfterThePaper(t *testing.T) {
	t.Parallel()
	methods := page("Methods\nReads were trimmed with fastp and were kept.\n")
	for title, want := range map[string]string{
		"": "Workflow of a paper", "On mills": "On mills", strings.Repeat("mill ", 40): strings.TrimSpace(strings.Repeat("mill ", 30)) + " …", strings.Repeat("ü", 100): strings.Repeat("ü", 75) + " …",
	} {
		r := reader.Read(reader.Paper{Title: title, Pages: methods})
		if r.Suggestion == nil || r.Suggestion.Name != want || r.Title != title {
			t.Errorf("%q: %+v", title, r.Suggestion)
		}
	}
}
