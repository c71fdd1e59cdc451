package reported

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
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
	if last := lastLine(f.printed(engineSaid)); last != "" {
		said += ": " + last
	}
	if others := f.Failed - 1; others > 0 {
		said += fmt.Sprintf(" (%s failed too)", countOf(others, "other task"))
	}
	return said
}

// Cause is the sentence, and below it the last lines that the task printed if there are
// several.
func (f FailedTask) Cause(engineSaid string) string {
	said := f.Sentence(engineSaid)
	if lines := LastLines(f.printed(engineSaid)); said != "" && strings.Contains(lines, "\n") {
		said += "\n\n" + lines
	}
	return said
}

// Message is what people are told of a failed run: the cause, and below it what the
// engine said, unless the cause contains it.
func (f FailedTask) Message(engineSaid string) string {
	said := f.Cause(engineSaid)
	switch {
	case said == "":
		return engineSaid
	case strings.Contains(said, strings.TrimSpace(engineSaid)):
		return said
	}
	return said + "\n\n" + engineSaid
}

// printed is what the task printed, as far as it is known.
func (f FailedTask) printed(engineSaid string) string {
	said := strings.TrimSpace(plain(f.Said))
	if strings.HasPrefix(said, ruleFailed) {
		_, said, _ = strings.Cut(said, "\n")
	}
	engineSaid = plain(engineSaid)
	return cmp.Or(said, commandError(engineSaid), beforeError(engineSaid, f.Step))
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]|[^\n]*\r")

// plain is a text without colors, and of lines that were written anew the last.
func plain(text string) string {
	return escapes.ReplaceAllString(strings.ReplaceAll(text, "\r\n", "\n"), "")
}

// commandError is what a task printed, as Nextflow quotes it in its report of a failure, or
// all that an engine said if it is one line.
func commandError(said string) string {
	const begins, ends, indent = "\nCommand error:", "\nWork dir:", "  "
	if at := strings.LastIndex(said, begins+"\n"); at >= 0 {
		said, _, _ = strings.Cut(said[at+len(begins):], ends)
		return strings.TrimSpace(strings.ReplaceAll(said, "\n"+indent, "\n"))
	}
	if said = strings.TrimSpace(said); strings.Contains(said, "\n") || strings.HasPrefix(said, ruleFailed) {
		return ""
	}
	return said
}

// ruleFailed is what Snakemake says of every failure.
const ruleFailed = "Error in rule "

// ownLine is a line that Snakemake prints between those of its jobs.
var ownLine = regexp.MustCompile(`^(\[\w{3} \w{3} [\d: ]+\]|Finished jobid: .*|\d+ of \d+ steps .*|(local)?(rule|checkpoint) \w+:|    (input|output|log|jobid|benchmark|reason|wildcards|threads|resources|priority): .*|Select jobs to execute\.\.\.|Execute \d+ jobs?\.\.\.)$`)

// beforeError is what a log of Snakemake has before it says that a job of a rule failed. What
// jobs print stands there, unless their rule has a log of its own.
func beforeError(log, rule string) string {
	log, _, failed := strings.Cut(log, "\n"+ruleFailed+rule+":\n")
	if !failed {
		return ""
	}
	if at := strings.LastIndex(log, "\nRuleException:\n"); at >= 0 {
		log = log[:at]
	}
	var lines []string
	for line := range strings.SplitSeq(log, "\n") {
		if !ownLine.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// The most of a failed task's output that people are told.
const (
	maxLastLines = 10
	maxLastBytes = 2 << 10
)

// LastLines are the last lines of a text: at most 10, and 2 KB.
func LastLines(text string) string {
	text = strings.TrimRight(text, "\r\n\t ")
	lines := strings.Split(text, "\n")
	lines = lines[max(0, len(lines)-maxLastLines):]
	size := 0
	for i, line := range slices.Backward(lines) {
		if size += len(line) + 1; size > maxLastBytes+1 {
			if lines = lines[i+1:]; len(lines) == 0 {
				return lastLine(text)
			}
			break
		}
	}
	return strings.Join(lines, "\n")
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
