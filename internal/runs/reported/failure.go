package reported

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"
)

// FailedTask is the task of a pipeline that failed first for good, and how many did.
type FailedTask struct {
	Step     string
	Name     string
	ExitCode *int
	Said     string // the message that the engine reported with the task
	Failed   int    // 0: none
}

// Sentence names the task and gives the last line that it printed. What the engine said
// of the failure is read where the task has no message of its own. Without a failed task
// there is no sentence.
func (f FailedTask) Sentence(engineSaid string) string {
	if f.Failed == 0 {
		return ""
	}
	said := "Task " + cmp.Or(f.Name, f.Step)
	if f.Step != "" && f.Name != "" && !strings.HasPrefix(f.Name, f.Step) {
		said += " of " + f.Step
	}
	if f.ExitCode != nil {
		said += fmt.Sprintf(" exited with status %d", *f.ExitCode)
	} else {
		said += " failed"
	}
	if last := cmp.Or(lastLine(f.Said), lastLine(commandError(engineSaid))); last != "" && !strings.HasPrefix(last, "Error in rule ") { // which Snakemake says of every failure
		said += ": " + last
	}
	if others := f.Failed - 1; others > 0 {
		said += fmt.Sprintf(" (%s failed too)", countOf(others, "other task"))
	}
	return said
}

// Message is what people are told of a failed run: the sentence, and below it what the
// engine said, unless the sentence contains it.
func (f FailedTask) Message(engineSaid string) string {
	said := f.Sentence(engineSaid)
	switch {
	case said == "":
		return engineSaid
	case strings.Contains(said, strings.TrimSpace(engineSaid)):
		return said
	}
	return said + "\n\n" + engineSaid
}

// commandError is what a task printed, as Nextflow quotes it in its report of a failure, or
// all that an engine said if it is one line.
func commandError(said string) string {
	const begins, ends = "\nCommand error:\n", "\nWork dir:"
	if at := strings.LastIndex(said, begins); at >= 0 {
		said, _, _ = strings.Cut(said[at+len(begins):], ends)
		return said
	}
	if strings.Contains(strings.TrimSpace(said), "\n") {
		return ""
	}
	return said
}

const longestLine = 300

// lastLine is the last line of a text that is not empty.
func lastLine(text string) string {
	text = strings.TrimRight(text, "\r\n\t ")
	text = strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
	if len(text) > longestLine {
		cut := longestLine
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return text
}
