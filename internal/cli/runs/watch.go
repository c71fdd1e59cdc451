package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

// watch follows a run to its end, and the copy of its outputs where there is to be one, and
// returns how that ended: nil only when the run completed and all was copied.
func watch(s *session.Session, run string, logs bool) error {
	v := &view{Session: s, run: run, bar: screen.NewBar(s.Console), logs: logs}
	if !s.JSON {
		s.Note("Watching %s; Ctrl-C stops watching, not the run.", run)
	}
	err := follow(s, run, v.see)
	var r api.Run
	if err == nil {
		r, err = v.copied()
	}
	v.bar.Close()
	if err != nil {
		return err
	}
	if err := s.Emit(r, func() { summary(s, r) }); err != nil {
		return err
	}
	err = outcome(r)
	if e, ok := errors.AsType[Ended](err); ok && s.ForPerson() && s.Interactive() {
		if sentence, lines := reasonOf(r); sentence == v.failed { // the person has read it above
			if e.Reason = lines; lines != "" {
				e.Reason = "the task printed\n" + lines
			}
			return e
		}
	}
	return err
}

// reasonOf is why a run failed, in a sentence, and the lines below it.
func reasonOf(r api.Run) (sentence, lines string) {
	sentence, lines, _ = strings.Cut(text(r.ErrorMessage), "\n")
	return sentence, strings.Trim(lines, "\n")
}

// outcome is how a run ended, as an error.
func outcome(r api.Run) error {
	if r.Status == api.RunStatusCompleted {
		if c := r.OutputTo; c != nil && c.State == copyFailed {
			return fmt.Errorf("the outputs were not copied to %s: %s", c.URL, screen.Clean(text(c.Message)))
		}
		return nil
	}
	return Ended{Run: r.ID, Status: r.Status, Reason: text(r.ErrorMessage)}
}

// The states of a copy of outputs.
const (
	copyWaiting   = "waiting"
	copyCopying   = "copying"
	copyCompleted = "completed"
	copyFailed    = "failed"
)

const copyPause = 3 * time.Second // between two looks at a copy

// copied waits until a run that has ended has copied its outputs, and returns the run.
func (v *view) copied() (api.Run, error) {
	for said := ""; ; {
		got, err := v.API.GetRunWithResponse(v.Ctx, v.run, nil)
		if v.Ctx.Err() != nil {
			return api.Run{}, Left{v.run}
		}
		if err != nil {
			return api.Run{}, v.Explain(err)
		}
		r := *got.JSON200
		c := r.OutputTo
		if c == nil || r.Status != api.RunStatusCompleted || c.State != copyWaiting && c.State != copyCopying {
			return r, nil
		}
		if why := text(c.Message); why != "" && why != said && !v.JSON {
			v.bar.Above(func() {
				v.Say("%s  Copying to %s failed and is tried again: %s", v.Now().Local().Format(time.TimeOnly), screen.Clean(c.URL), screen.Clean(why))
			})
			said = why
		}
		v.bar.Show(copyLine(*c))
		if v.Sleep(v.Ctx, copyPause) != nil {
			return api.Run{}, Left{v.run}
		}
	}
}

// copyLine is how far a copy of outputs is.
func copyLine(c api.OutputCopy) string {
	share := float64(c.CopiedBytes) / float64(max(1, c.Bytes))
	return fmt.Sprintf("%s %3.0f %%  copying outputs: %s of %s", screen.Gauge(share), 100*share, screen.Size(c.CopiedBytes), screen.Size(c.Bytes))
}

func summary(s *session.Session, r api.Run) {
	s.Say("%s %s  %s  %s credits", s.Coloured(string(r.Status)), r.ID, screen.Milliseconds(r.DurationMs), screen.Amount(r.CreditsUsed))
	if r.Status == api.RunStatusCompleted {
		s.Note("Download its outputs with: millrace runs outputs download %s", r.ID)
		if r.OutputTo != nil && r.OutputTo.State == copyCompleted {
			s.Say("copied to %s", screen.Clean(r.OutputTo.URL))
		}
		return
	}
	if r.Failure != nil {
		for _, each := range r.Failure.Suggestions {
			s.Note("Suggestion: %s", screen.Clean(each.Message))
		}
	}
	s.Note("See its log with: millrace logs %s", r.ID)
}

// view is what a person sees of a run while it goes.
type view struct {
	*session.Session
	run    string
	bar    *screen.Bar
	logs   bool
	seq    int64  // of the last event shown
	offset int64  // of the log shown
	why    string // it waits, as was last shown
	failed string // why its last step failed, as was shown
}

// see shows what a message tells. Events and logs are read from where the view
// stands rather than taken from the message alone, so that a connection that
// broke leaves no gap and says nothing twice.
func (v *view) see(m message) error {
	if v.JSON {
		return nil
	}
	show := []func(message) error{v.showEvents, v.showLogs}
	if m.Status != nil && ended(*m.Status) { // the last line comes before the end
		slices.Reverse(show)
	}
	for _, part := range show {
		if err := part(m); err != nil {
			return err
		}
	}
	v.showWaiting(m)
	switch {
	case m.Waiting != nil && m.Waiting.Fetching != nil:
		v.bar.Show(fetchingLine(*m.Waiting.Fetching))
	case m.ProgressPercent != nil:
		v.bar.Show(progressLine(m))
	}
	return nil
}

// showWaiting prints why a queued run has not started, once for each reason.
func (v *view) showWaiting(m message) {
	if m.Status == nil {
		return
	}
	why := ""
	if *m.Status == api.RunStatusQueued {
		why = waitingText(m.Waiting)
	}
	if why != "" && why != v.why {
		v.bar.Above(func() { v.Say("%s  Waiting: %s", v.Now().Local().Format(time.TimeOnly), screen.Clean(why)) })
	}
	v.why = why
}

// waitingText is why a run has not started, and how many go first.
func waitingText(w *api.Waiting) string {
	switch {
	case w == nil:
		return ""
	case w.Reason == "turn" || w.Ahead == 0: // whose message has the number already
		return w.Message
	case w.Ahead == 1:
		return w.Message + " 1 run is before it."
	}
	return fmt.Sprintf("%s %d runs are before it.", w.Message, w.Ahead)
}

// fetchingLine is how far inputs are that come from elsewhere.
func fetchingLine(f api.Fetching) string {
	share := float64(f.FetchedBytes) / float64(max(1, f.TotalBytes))
	return fmt.Sprintf("%s %3.0f %%  fetching inputs: %s of %s", screen.Gauge(share), 100*share, screen.Size(f.FetchedBytes), screen.Size(f.TotalBytes))
}

func progressLine(m message) string {
	line := fmt.Sprintf("%s %3.0f %%", screen.Gauge(*m.ProgressPercent/100), *m.ProgressPercent)
	if m.CompletedNodes != nil && m.TotalNodes != nil {
		line += fmt.Sprintf("  %d of %s", *m.CompletedNodes, screen.Count(*m.TotalNodes, "step"))
	}
	if m.DurationMs != nil {
		line += "  " + screen.Milliseconds(m.DurationMs)
	}
	if m.CreditsUsed != nil {
		line += "  " + screen.Amount(*m.CreditsUsed) + " credits"
	}
	if m.CurrentStep != nil {
		line += "  " + screen.Clean(*m.CurrentStep)
	}
	return line
}

func ended(s api.RunStatus) bool { return s != api.RunStatusQueued && s != api.RunStatusRunning }

func (v *view) showEvents(m message) error {
	if m.Seq == nil || *m.Seq <= v.seq {
		return nil
	}
	return events(v.Session, v.run, v.seq, func(e api.RunEvent) {
		v.seq = e.Seq
		v.bar.Above(func() { v.showEvent(e) })
	})
}

// events gives a run's events after seq, page by page.
func events(s *session.Session, run string, after int64, each func(api.RunEvent)) error {
	for limit := 500; ; {
		r, err := s.API.ListRunEventsWithResponse(s.Ctx, run, &api.ListRunEventsParams{AfterSeq: &after, Limit: &limit})
		if err != nil {
			return s.Explain(err)
		}
		for _, e := range r.JSON200.Data.Events {
			each(e)
			after = e.Seq
		}
		if !r.JSON200.Data.HasMore {
			return nil
		}
	}
}

// showEvent prints a line, and below a failure the end of what it wrote.
func (v *view) showEvent(e api.RunEvent) {
	if e.Type == "run.failed" || e.Type == "run.interrupted" {
		return // how it ended is the last that is said
	}
	if e.Type == "node.failed" {
		v.failed = e.Message
	}
	v.Say("%s  %s", e.At.Local().Format(time.TimeOnly), screen.Clean(e.Message))
	if e.Type != "node.failed" || v.logs {
		return
	}
	var data struct {
		Log string `json:"log"`
	}
	if json.Unmarshal(e.Data, &data) != nil || data.Log == "" {
		return
	}
	lines := strings.Split(strings.TrimRight(data.Log, "\n"), "\n")
	for _, line := range lines[max(0, len(lines)-10):] {
		v.Say("          | %s", v.LogText(line))
	}
}

// showLogs prints the message's own text when it goes on where the view
// stands, and else reads what lies between.
func (v *view) showLogs(m message) error {
	if !v.logs || m.logEnd <= v.offset {
		return nil
	}
	if m.Type == "progress" && m.Logs != nil && m.LogOffset != nil && *m.LogOffset == v.offset {
		v.offset = m.logEnd
		v.bar.Above(func() { fmt.Fprint(v.Out, v.LogText(*m.Logs)) })
		return nil
	}
	next, err := readLogs(v.Session, logPlace{run: v.run, offset: v.offset}, func(text string) {
		v.bar.Above(func() { fmt.Fprint(v.Out, v.LogText(text)) })
	})
	v.offset = next
	return err
}
