// Package pipelines lets a step launch a pipeline, and follows it: it finds Nextflow and
// Snakemake on this machine, brings a command what it mentions of them, and reads what
// they write into the folder of the task, to be merged into the picture of the run.
//
// A stranger's code writes these files, so nothing in them is believed but what one of our
// own engines could have said, and as much of it as is kept.
package pipelines

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/runs/reported"
)

// The limits of what is read. A chunk is also the longest line, and what one
// report is made of; the number of lines is more than all tasks of a run can need.
const (
	chunk      = 1 << 20
	batchLines = 1000
	maxBytes   = 256 << 20 // of a file
	maxLines   = 1_000_000 // that say something

	lookEvery = time.Second
	perLook   = 4   // reports, so that a flood does not hold up the rest of the run
	lastLook  = 300 // those of the last look, for which its end waits

	// Bytes that are kept of the log of a task. All texts of a team have a limit.
	failedLog = 60_000
	otherLog  = 4 << 10
)

const tooMuch = "the pipeline reported more than is read of one: what it said later is not shown"

// Files opens a file of a task by its path below the task's folder.
type Files interface {
	Open(ctx context.Context, h executor.Handle, path string) (io.ReadSeekCloser, error)
}

// Follower follows the pipeline of one attempt of a step.
type Follower struct {
	store  reported.LaunchedStore
	of     reported.Launched
	files  Files
	now    func() time.Time
	looked time.Time
	begun  bool
	over   bool // nothing more is to be read
	places places
}

// places are how far the files are taken. They are stored with what was taken, so
// that whoever adopts the task goes on there.
type places struct {
	Offsets map[string]int64 `json:"offsets"`
	Lines   int              `json:"lines"`            // that said something
	Header  string           `json:"header,omitempty"` // of a table
}

// Follow follows an attempt.
func Follow(store reported.LaunchedStore, of reported.Launched, files Files, now func() time.Time) *Follower {
	return &Follower{store: store, of: of, files: files, now: now}
}

// Look takes what was written since the last look, if that is a while ago; the final
// one, after the task has ended, takes all that is left. stopped says that the task is being
// stopped: its pipeline reports as failed what ends with it. percent is how far the
// pipeline is, or -1 where nothing was taken.
func (f *Follower) Look(ctx context.Context, task executor.Handle, final, stopped bool) (percent int, err error) {
	now := f.now()
	if f.over || !final && now.Sub(f.looked) < lookEvery {
		return -1, nil
	}
	f.looked = now
	if err := f.begin(ctx); err != nil || f.over {
		return -1, err
	}
	percent = -1
	most := perLook
	if final {
		most = lastLook
	}
	for look := 1; look <= most && ctx.Err() == nil; look++ {
		b := f.read(func(path string) (io.ReadSeekCloser, error) { return f.files.Open(ctx, task, path) })
		if stopped {
			b.cancelFailed()
		}
		last := final && (!b.more || look == most)
		if last {
			if b.more {
				b.report.LeftOut = tooMuch
			}
			b.report.Finish = &reported.Finish{Status: lifecycle.Completed} // how it ended, the task tells
		}
		if last || b.said {
			if percent, err = f.take(ctx, b); err != nil {
				return percent, err
			}
		}
		f.places = b.places
		if !b.more {
			break
		}
	}
	f.over = final && ctx.Err() == nil
	return percent, ctx.Err()
}

// begin finds how far an earlier worker was.
func (f *Follower) begin(ctx context.Context) error {
	if f.begun {
		return nil
	}
	text, shown, err := f.store.BeginLaunched(ctx, f.of, f.now())
	if err != nil {
		return err
	}
	f.begun, f.over = true, !shown
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), &f.places)
}

func (f *Follower) take(ctx context.Context, b *batch) (percent int, err error) {
	text, err := json.Marshal(b.places)
	if err != nil {
		return 0, err
	}
	b.report.Clean(b.now)
	return f.store.TakeLaunched(ctx, f.of, b.report, string(text), b.now)
}

// Cause says in a sentence which task of the pipeline failed first, with the last line that
// it printed, and below that its last lines; it is empty if none did. log is the last of the
// step's own log.
func (f *Follower) Cause(ctx context.Context, log string) (string, error) {
	failed, err := f.store.LaunchedFailure(ctx, f.of)
	if err != nil {
		return "", err
	}
	return failed.Cause(log), nil
}

type opener func(path string) (io.ReadSeekCloser, error)

// batch is what is read at once.
type batch struct {
	places places
	report reported.Report
	now    time.Time
	open   opener
	lines  int
	logs   int  // bytes of the logs of tasks
	said   bool // something that is to be written
	more   bool // there is more to read
}

// cancelFailed has tasks that failed be cancelled.
func (b *batch) cancelFailed() {
	for i := range b.report.Tasks {
		if t := &b.report.Tasks[i]; t.State == reported.Failed {
			t.State, t.WillRetry, t.Ignored = reported.Cancelled, false, false
		}
	}
}

// room reports whether another line can be taken.
func (b *batch) room() bool { return b.lines < batchLines && b.logs < chunk }

// say counts a line that says something; false: there were too many.
func (b *batch) say() bool {
	b.lines++
	b.places.Lines++
	b.said = true
	if b.places.Lines > maxLines {
		b.report.LeftOut = tooMuch
		return false
	}
	return true
}

// source is a file that an engine writes. take reads a text from where the file was
// left, and says how much of it needs no further look.
type source struct {
	path string
	take func(b *batch, text []byte) (used int)
}

var sources = map[pipeline.Engine][]source{
	pipeline.Snakemake: {{eventsPath, (*batch).events}},
	pipeline.Nextflow:  {{logPath, (*batch).log}, {eventsPath, (*batch).trace}, {eventsPath + ".dot", (*batch).dag}},
}

// read reads a chunk of each file.
func (f *Follower) read(open opener) *batch {
	b := &batch{places: f.places, now: f.now(), open: open}
	b.places.Offsets = maps.Clone(f.places.Offsets)
	if b.places.Offsets == nil {
		b.places.Offsets = map[string]int64{}
	}
	for _, s := range sources[f.of.Engine] {
		if b.places.Lines > maxLines {
			break
		}
		b.read(s)
	}
	return b
}

func (b *batch) read(s source) {
	offset := b.places.Offsets[s.path]
	if offset >= maxBytes {
		return
	}
	if !b.room() {
		b.more = true
		return
	}
	text := textAt(b.open, s.path, offset)
	if len(text) == 0 {
		return
	}
	used, full := s.take(b, text), len(text) == chunk
	if used == 0 && full && b.room() {
		used = len(text) // one line, too long for any that we know
	}
	b.more = b.more || used > 0 && (full || used < len(text))
	if b.places.Offsets[s.path] = offset + int64(used); offset+int64(used) >= maxBytes {
		b.report.LeftOut, b.said = tooMuch, true
	}
}

// textAt is what stands in a file from an offset on. One that cannot be read is not
// there: the task does not depend on it.
func textAt(open opener, path string, offset int64) []byte {
	file, err := open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(file, chunk))
	if err != nil && !errors.Is(err, fs.ErrClosed) {
		return nil
	}
	return text
}

// endOf is the last of a file: whole lines, as far as so many bytes hold one.
func endOf(open opener, path string, most int) string {
	file, err := open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	from := max(0, size-int64(most))
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(file, int64(most)))
	if err != nil {
		return ""
	}
	if _, lines, several := bytes.Cut(text, []byte("\n")); from > 0 && several && len(lines) > 0 {
		text = lines
	}
	return strings.ReplaceAll(strings.ToValidUTF8(string(text), ""), "\x00", "")
}
