package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/shim/tasklog"
	"github.com/millrace/millrace/internal/runs"
)

// A little text goes into the journal; what has come to a megabyte moves into
// an object.
const (
	logPiece = 64 << 10
	logChunk = 1 << 20
	logRound = 8 << 20 // at one look, so that a flood does not hold up the rest of the run

	logsOfRun = 16 // times what is kept of one attempt; of later ones only the end is
)

// readLog takes what the command has written since the last look: all of it,
// or as much as one look may.
func (r *runner) readLog(ctx context.Context, t *attempt, all bool) error {
	for {
		log, err := r.openLog(ctx, t, all)
		if err != nil {
			return nil // there is none yet, or none any more
		}
		before := t.logged
		err = errors.Join(r.takeLog(ctx, t, log, all), log.Close())
		if err != nil || !all || t.logged == before || t.logged >= log.Size {
			return err
		}
	}
}

// openLog opens the log where it goes on. Once enough is kept, that is where the last of
// the log begins, when the command has ended.
func (r *runner) openLog(ctx context.Context, t *attempt, all bool) (executor.Log, error) {
	log, err := r.e.Driver.Logs(ctx, t.handle, t.logged)
	most := r.e.TaskLog
	if err != nil || most == 0 || t.kept < most && r.logBytes < most*logsOfRun {
		return log, err
	}
	if err := log.Close(); err != nil || !all || r.logRoom(t) == 0 {
		return log, errors.Join(err, errEnough)
	}
	return r.e.Driver.Logs(ctx, t.handle, max(t.logged, log.Size-logTailBytes))
}

// logRoom is how much more is kept of an attempt's log before its end, or of its end. A
// task that can write to its own folder may have made a log of any size.
func (r *runner) logRoom(t *attempt) int64 {
	most := r.e.TaskLog
	switch {
	case most == 0:
		return math.MaxInt64
	case t.kept < most:
		return most - t.kept
	}
	return max(0, most+logTailBytes-t.kept)
}

var errEnough = errors.New("enough is kept of the logs")

// takeLog keeps what a log has, and says what is missing before it.
func (r *runner) takeLog(ctx context.Context, t *attempt, log executor.Log, all bool) error {
	if missing := log.Offset - t.logged; missing > 0 {
		if err := r.moveToObject(ctx, t); err != nil { // what follows does not lie beside it
			return err
		}
		r.noteMissing(t, missing)
	}
	buffer, text := r.buffer(), io.LimitReader(log, r.logRoom(t))
	for taken := 0; all || taken < logRound; {
		n, err := readFull(text, buffer)
		taken += n
		switch {
		case n == len(buffer):
			if err := r.keepChunk(ctx, t, buffer); err != nil {
				return err
			}
		default:
			r.keepPieces(ctx, t, buffer[:n])
		}
		if err != nil || n < len(buffer) {
			break
		}
	}
	if t.inline >= logChunk {
		return r.moveToObject(ctx, t)
	}
	return nil
}

// noteMissing puts a line into the journal for text that was not kept. The line and
// LogPiece.Missing together are as long as that text, so that later offsets are those
// of the whole log.
func (r *runner) noteMissing(t *attempt, missing int64) {
	text := []byte(tasklog.MissingLine(missing))
	text = text[:min(int64(len(text)), missing)]
	p := runs.LogPiece{
		Node: t.node.ID, Shard: t.shard.index, Attempt: t.row.Number, NodeStart: t.shard.logged,
		Text: text, Size: int64(len(text)), Missing: missing - int64(len(text)),
	}
	t.logged += missing
	t.shard.logged += missing
	t.inline = 0
	r.logBytes += p.Size
	r.step.Logs = append(r.step.Logs, p)
}

// buffer is where logs are read into; a runner reads one log at a time.
func (r *runner) buffer() []byte {
	if r.logBuffer == nil {
		r.logBuffer = make([]byte, logChunk)
	}
	return r.logBuffer
}

// keepPieces puts text into the journal.
func (r *runner) keepPieces(ctx context.Context, t *attempt, text []byte) {
	for len(text) > 0 {
		n := min(len(text), logPiece)
		p := r.piece(ctx, t, int64(n))
		p.Text = bytes.Clone(text[:n])
		t.inline += int64(n)
		r.addPiece(t, p)
		text = text[n:]
	}
}

// keepChunk puts text into an object.
func (r *runner) keepChunk(ctx context.Context, t *attempt, text []byte) error {
	if err := r.moveToObject(ctx, t); err != nil { // what came before lies before it
		return err
	}
	p := r.piece(ctx, t, int64(len(text)))
	p.Object = r.logKey(t, p.NodeStart, p.Size)
	if err := r.putLog(ctx, p.Object, text); err != nil {
		return err
	}
	r.addPiece(t, p)
	return nil
}

func (r *runner) piece(ctx context.Context, t *attempt, size int64) runs.LogPiece {
	p := runs.LogPiece{Node: t.node.ID, Shard: t.shard.index, Attempt: t.row.Number, NodeStart: t.shard.logged, Size: size}
	if m, ok := r.e.Driver.(executor.Meter); ok {
		marks, err := m.Marks(ctx, t.handle, t.logged)
		for _, mark := range marks {
			if err == nil && mark.Offset < t.logged+size {
				p.Marks = append(p.Marks, runs.LogMark{Offset: max(0, mark.Offset-t.logged) + t.shard.logged, At: mark.At, Stderr: mark.Stderr})
			}
		}
	}
	return p
}

func (r *runner) addPiece(t *attempt, p runs.LogPiece) {
	r.logBytes += p.Size
	t.logged += p.Size
	t.kept += p.Size
	t.shard.logged += p.Size
	r.step.Logs = append(r.step.Logs, p)
}

// moveToObject moves the text of the journal's last pieces into an object. The
// executor has it still.
func (r *runner) moveToObject(ctx context.Context, t *attempt) error {
	if t.inline == 0 {
		return nil
	}
	log, err := r.e.Driver.Logs(ctx, t.handle, t.logged-t.inline)
	if err != nil {
		return nil // it stays where it is
	}
	defer log.Close()
	text := make([]byte, t.inline)
	if n, err := readFull(log, text); err != nil || log.Offset != t.logged-t.inline || int64(n) < t.inline {
		return nil
	}
	m := runs.LogMove{Node: t.node.ID, Shard: t.shard.index, From: t.shard.logged - t.inline, To: t.shard.logged}
	m.Object = r.logKey(t, m.From, m.To-m.From)
	if err := r.putLog(ctx, m.Object, text); err != nil {
		return err
	}
	r.step.LogMoves = append(r.step.LogMoves, m)
	t.inline = 0
	return nil
}

// logKey contains attempt and fence, like that of an output, and which bytes of
// the log they are: those are the same whenever, and by whomever, they are stored.
func (r *runner) logKey(t *attempt, start, size int64) string {
	return fmt.Sprintf("teams/%s/runs/%s/logs/%s.%06d.%d-%s.%d.%012d-%d", r.run.Team, r.run.ID, t.node.ID, t.shard.index, t.row.Number, t.row.Fence, r.run.Fence, start, size)
}

func (r *runner) putLog(ctx context.Context, key string, text []byte) error {
	_, err := r.e.Objects.Put(ctx, key, "text/plain; charset=utf-8", bytes.NewReader(text), int64(len(text)))
	if fault.Is(err, fault.KindConflict) {
		return nil // it was stored, and this worker could not go on
	}
	return err
}

// logTail is the end of an attempt's log.
func (r *runner) logTail(ctx context.Context, t *attempt) string {
	log, err := r.e.Driver.Logs(ctx, t.handle, max(0, t.logged-logTailBytes))
	if err != nil {
		return ""
	}
	defer log.Close()
	text := make([]byte, logTailBytes)
	n, _ := readFull(log, text)
	return strings.ToValidUTF8(string(text[:n]), "�")
}
