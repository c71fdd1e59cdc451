package reported_test

import (
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
