package reader

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/graph"
)

func TestTheLexiconIsWellFormed(t *testing.T) {
	t.Parallel()
	d := lexicon()
	tools, fields, seen := 0, map[string]bool{}, map[string]string{}
	for _, tool := range d.tools {
		if tool.kind.name != "database" {
			tools++
			fields[tool.field] = true
		}
		key := strings.ToLower(tool.name)
		if other := seen[key]; other != "" {
			t.Errorf("%s is in %s and in %s", tool.name, other, tool.field)
		}
		seen[key] = tool.field
		for _, p := range append(append([]port{}, tool.kind.inputs...), tool.kind.outputs...) {
			if _, ok := d.holdings[p.holds]; !ok {
				t.Errorf("%s: nothing says what %s holds", tool.kind.name, p.holds)
			}
		}
	}
	if tools < 400 || len(fields) < 16 {
		t.Errorf("%d tools of %d fields", tools, len(fields))
	}
	for first, list := range d.spellings {
		if first == "" {
			t.Errorf("%s begins with no letter", list[0].text)
		}
	}
}

var variable = regexp.MustCompile(`\$\{?INPUT_([a-z]+)`)

func TestEveryToolMakesATaskThatCanRun(t *testing.T) {
	t.Parallel()
	var script bytes.Buffer
	for _, tool := range lexicon().tools {
		if tool.kind.name == "database" || tool.how == "" {
			continue
		}
		u := use{tool: tool, version: "1.2.3"}
		s := suggest("", []use{u}, nil)
		if s == nil {
			t.Errorf("%s suggests nothing", tool.name)
			continue
		}
		g, problems := graph.Parse(s.Definition)
		if len(problems) > 0 || len(g.Incomplete()) > 0 {
			t.Errorf("%s: %v %v", tool.name, problems, g.Incomplete())
			continue
		}
		text, _ := command(u)
		for _, m := range variable.FindAllStringSubmatch(text, -1) {
			if _, ok := g.Nodes[0].Input(m[1]); !ok {
				t.Errorf("%s reads from the port %s, which it does not have", tool.name, m[1])
			}
		}
		script.WriteString("f() {\n" + text + "}\n")
	}
	check := exec.CommandContext(t.Context(), "bash", "-n")
	check.Stdin = &script
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("bash: %v: %s", err, out)
	}
}

func TestASketchSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, want string }{
		{"GraphPad Prism", "GraphPad Prism is a program for the screen"},
		{"Picard", "Nothing came in by the port alignments: Aligned reads (BAM)"},
	} {
		for _, tool := range lexicon().tools {
			if tool.name != tt.name {
				continue
			}
			text, _ := command(use{tool: tool})
			run := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", text)
			run.Dir = t.TempDir()
			run.Env = []string{"PATH=/usr/bin:/bin", "INPUT_alignments=", "INPUT_table=x"}
			if out, err := run.CombinedOutput(); err == nil || !strings.Contains(string(out), tt.want) {
				t.Errorf("%s: %v: %s", tt.name, err, out)
			}
		}
	}
}

func TestNamesThatAreAlsoWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Reads were aligned with STAR v2.7.9a.":                                           "STAR 2.7.9a",
		"Transcripts were quantified using Salmon (v1.4.0).":                              "Salmon 1.4.0",
		"Transcripts were quantified using salmon (v1.4.0).":                              "Salmon 1.4.0",
		"Atlantic salmon were kept at 12 °C.":                                             "",
		"Star formation was traced with Hα.":                                              "",
		"All analyses were done in R (version 4.0.2; R Core Team).":                       "R 4.0.2",
		"Statistical analyses were performed in R [12].":                                  "R",
		"The correlation was high (R = 0.93).":                                            "",
		"R2 was 0.4 and R > 0.8 in all groups.":                                           "",
		"Duplicates were marked with Picard Tools (2.23.8).":                              "Picard 2.23.8",
		"Mr Picard collected the samples.":                                                "",
		"Posteriors were sampled in Stan using four chains.":                              "Stan",
		"Stan Laurel was filmed.":                                                         "",
		"Dose was simulated with the GATE toolkit.":                                       "GATE",
		"The gate voltage was swept; GATE electrodes were gold.":                          "",
		"Group means were compared in Prism 9 (GraphPad).":                                "GraphPad Prism 9",
		"A prism of glass splits the beam.":                                               "",
		"The code was written in Julia 1.6.":                                              "Julia 1.6",
		"Julia collected the data in spring.":                                             "",
		"Docking was performed using MOE software.":                                       "MOE",
		"Ants were collected from four colonies with aspirators.":                         "",
		"Images were registered with ANTs 2.3.":                                           "ANTs 2.3",
		"Stress was computed in ANSYS 2021.":                                              "ANSYS 2021",
		"Geometries were optimised with Gaussian 16 at the B3LYP level.":                  "Gaussian 16",
		"Images were smoothed with a Gaussian kernel of 6 mm.":                            "",
		"Data were processed in MATLAB (R2020b, The MathWorks).":                          "MATLAB R2020b",
		"Images were analysed in MATLAB (The MathWorks, Natick, version 9.4).":            "MATLAB 9.4",
		"Unlike Cufflinks, our method needs no reference.":                                "",
		"We used HISAT2 instead of TopHat.":                                               "HISAT2",
		"Cells were clustered with the package Seurat (v4.1), and drawn with ggplot2.":    "Seurat 4.1, ggplot2",
		"Gene models were built with scikit-learn (1.0) and the package XGBoost.":         "scikit-learn 1.0, XGBoost",
		"SAMTOOLS 1.9 and bcftools v1.9 were used.":                                       "SAMtools 1.9, BCFtools 1.9",
		"Reads were mapped using Bowtie 2 (v2.3.4.1).":                                    "Bowtie 2 2.3.4.1",
		"Statistics were done in SPSS (IBM SPSS Statistics, version 26.0, Armonk, USA).":  "SPSS 26.0",
		"The model in Fiji (islands of the Pacific) was compared with that of Samoa.":     "",
		"Write to fastp@example.org about my_fastp_script.":                               "",
		"Brain images were preprocessed with fMRIPrep 20.2.3, which is based on Nipype.":  "fMRIPrep 20.2.3, Nipype",
		"Variants were called with GATK HaplotypeCaller (v4.1.9.0) in GVCF mode.":         "GATK 4.1.9.0",
		"Genes were tested with DESeq2 (Love et al., 2014) v1.30.0 in one go.":            "DESeq2 1.30.0",
		"Genes were tested with DESeq2 [Love et al.] (version 1.30) in one go.":           "DESeq2 1.30",
		"Cells were clustered with Seurat (version 4.0.3; Hao et al. 2021).":              "Seurat 4.0.3",
		"Analyses were done with SPSS Statistics for Windows, version 25.0 (IBM).":        "SPSS 25.0",
		"Data were analysed in MATLAB 2019b (MathWorks).":                                 "MATLAB 2019b",
		"Reads were trimmed with Trimmomatic-0.39 and sorted with SAMtools/1.9.":          "Trimmomatic 0.39, SAMtools 1.9",
		"Reads were trimmed with Trimmomatic - 0.39 of them were kept.":                   "Trimmomatic",
		"FastQC 12 times on each file was enough.":                                        "FastQC",
		"The trees were compared with those of RAxML, and rendered in FigTree (v.1.4.4).": "FigTree 1.4.4",
	} {
		var got []string
		seen := map[*tool]bool{}
		for _, u := range uses([]finding{{method: true, prose: true, text: text, mentions: mentions(text, true)}}) {
			if !seen[u.tool] {
				got = append(got, u.String())
			}
			seen[u.tool] = true
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q: %q, not %q", text, strings.Join(got, ", "), want)
		}
	}
}
