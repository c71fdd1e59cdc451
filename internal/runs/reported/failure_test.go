package reported_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/runs/reported"
)

func TestAFailureNamesItsTaskAndTheLastLine(t *testing.T) {
	t.Parallel()
	code := 127
	for want, tt := range map[string]struct {
		failed  reported.FailedTask
		printed string
	}{
		"": {reported.FailedTask{}, "bwa: command not found"},
		"Task ALIGN (S2) exited with status 127: bwa: command not found":                 {reported.FailedTask{Step: "ALIGN", Name: "ALIGN (S2)", ExitCode: &code, Failed: 1}, "Error\n\nCommand error:\n  starting\n  bwa: command not found\n\nWork dir:\n  /work\n\nTip: look"},
		"Task ALIGN (S2) exited with status 127: from its own message":                   {reported.FailedTask{Step: "ALIGN", Name: "ALIGN (S2)", ExitCode: &code, Said: "Error\nfrom its own message\n", Failed: 1}, "another"},
		"Task sample=S2 of align failed (2 other tasks failed too)":                      {reported.FailedTask{Step: "align", Name: "sample=S2", Said: "Error in rule align, jobid 3", Failed: 3}, ""},
		"Task align failed: " + strings.Repeat("é", 150) + "… (1 other task failed too)": {reported.FailedTask{Step: "align", Said: strings.Repeat("é", 400), Failed: 2}, ""},
	} {
		if got := tt.failed.Sentence(tt.printed); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestALongReportStaysBelowTheSentence(t *testing.T) {
	t.Parallel()
	failed := reported.FailedTask{Name: "REPORT", Failed: 1}
	for said, want := range map[string]string{
		"":                "Task REPORT failed",
		"no disk":         "Task REPORT failed: no disk",
		"Error\n\nCaused": "Task REPORT failed\n\nError\n\nCaused",
	} {
		if got := failed.Message(said); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	if got := (reported.FailedTask{}).Message("no\ndisk"); got != "no\ndisk" {
		t.Errorf("%q", got)
	}
}

const snakemakeLog = `localrule align:
    output: a.bam
begin
bwa: command not found
[Thu Nov 19 20:56:02 2026]
Finished jobid: 2 (Rule: trim)
1 of 3 steps (33%) done
RuleException:
CalledProcessError in file "Snakefile", line 5:
Command 'set -euo pipefail;  bwa mem' returned non-zero exit status 127.
[Thu Nov 19 20:56:02 2026]
Error in rule align:
    message: None
    jobid: 1
WorkflowError:
At least one job did not complete successfully.
`

func TestTheLastLinesOfATaskFollowTheSentence(t *testing.T) {
	t.Parallel()
	numbered := func(from, to int) string {
		var lines []string
		for i := from; i <= to; i++ {
			lines = append(lines, fmt.Sprint("line ", i))
		}
		return strings.Join(lines, "\n")
	}
	long := strings.Repeat("x", 900)
	for name, tt := range map[string]struct{ said, log, want string }{
		"one":         {"alone", "", "Task A failed: alone"},
		"its own":     {numbered(1, 30) + "\n\n", "", "Task A failed: line 30\n\n" + numbered(21, 30)},
		"colors":      {"10%\r20%\r\x1b[31mError\x1b[0m\r\nno luck", "", "Task A failed: no luck\n\nError\nno luck"},
		"too long":    {strings.Join([]string{long, long, long}, "\n"), "", "Task A failed: " + long[:300] + "…\n\n" + long + "\n" + long},
		"Nextflow's":  {"", "Error\n\nCommand error:\n  starting\n  bwa: not found\n\nWork dir:\n  /work", "Task A failed: bwa: not found\n\nstarting\nbwa: not found"},
		"Snakemake's": {"Error in rule align, jobid 1", snakemakeLog, "Task A of align failed: bwa: command not found\n\nbegin\nbwa: command not found"},
	} {
		failed := reported.FailedTask{Name: "A", Said: tt.said, Failed: 1}
		if strings.Contains(tt.want, " of align") {
			failed.Step = "align"
		}
		if got := failed.Cause(tt.log); got != tt.want {
			t.Errorf("%s: %q, not %q", name, got, tt.want)
		}
	}
	failed := reported.FailedTask{Name: "A", Said: "Error in rule a, jobid 1\na.log:\nno luck", Failed: 1}
	if got, want := failed.Message("WorkflowError:\nAt least one job"), "Task A failed: no luck\n\na.log:\nno luck\n\nWorkflowError:\nAt least one job"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}
