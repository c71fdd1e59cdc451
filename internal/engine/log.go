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

// logged is how much of an attempt's log is in the journal.
type logged struct {
	size   int64 // of the log, up to where it was read
	kept   int64 // those bytes of it that are not missing
	inline int64 // those at the end of them that are not in an object
	start  int64 // where the attempt goes on in the log of its shard, over all attempts
}

// logReader reads a log on from where it was read to, beside the loop of its run. What it
// has read is in the journal once the loop has put it there.
type logReader struct {
	e       *Engine
	task    executor.Handle
	of      runs.LogPiece // the attempt
	objects string        // how the keys of its objects begin
	enough  bool          // is kept of the logs of the run

	logged
	pieces []runs.LogPiece
	moves  []runs.LogMove
}

func (r *runner) newLogReader(t *attempt) logReader {
	return logReader{
		e: r.e, task: r.handle(t), of: runs.LogPiece{Node: t.node.ID, Shard: t.shard.index, Attempt: t.row.Number}, objects: r.logPrefix(t),
		enough: r.e.TaskLog > 0 && r.logBytes >= r.e.TaskLog*logsOfRun, logged: logged{t.log.size, t.log.kept, t.log.inline, t.shard.logged},
	}
}

// addLog puts what was read into the next write.
func (r *runner) addLog(t *attempt, l *logReader) {
	r.logBytes += l.kept - t.log.kept
	t.log, t.shard.logged = l.logged, l.start
	r.step.Logs, r.step.LogMoves = append(r.step.Logs, l.pieces...), append(r.step.LogMoves, l.moves...)
}

// read takes what the command has written since the last look: all of it, or as much as
// one look may.
func (l *logReader) read(ctx context.Context, all bool) error {
	for {
		log, err := l.open(ctx, all)
		if err != nil {
			return nil // there is none yet, or none any more
		}
		before := l.size
		err = errors.Join(l.take(ctx, log, all), log.Close())
		if err != nil || !all || l.size == before || l.size >= log.Size {
			return err
		}
	}
}

// open opens the log where it goes on. Once enough is kept, that is where the last of
// the log begins, when the command has ended.
func (l *logReader) open(ctx context.Context, all bool) (executor.Log, error) {
	log, err := l.e.Driver.Logs(ctx, l.task, l.size)
	most := l.e.TaskLog
	if err != nil || most == 0 || l.kept < most && !l.enough {
		return log, err
	}
	if err := log.Close(); err != nil || !all || l.room() == 0 {
		return log, errors.Join(err, errEnough)
	}
	return l.e.Driver.Logs(ctx, l.task, max(l.size, log.Size-logTailBytes))
}

// room is how much more is kept of the log before its end, or of its end. A task that can
// write to its own folder may have made a log of any size.
func (l *logReader) room() int64 {
	most := l.e.TaskLog
	switch {
	case most == 0:
		return math.MaxInt64
	case l.kept < most:
		return most - l.kept
	}
	return max(0, most+logTailBytes-l.kept)
}

var errEnough = errors.New("enough is kept of the logs")

// take keeps what a log has, and says what is missing before it.
func (l *logReader) take(ctx context.Context, log executor.Log, all bool) error {
	if missing := log.Offset - l.size; missing > 0 {
		if err := l.moveToObject(ctx); err != nil { // what follows does not lie beside it
			return err
		}
		l.addMissing(missing)
	}
	if log.Size <= l.size {
		return nil
	}
	buffer, text := make([]byte, min(logChunk, log.Size-l.size)), io.LimitReader(log, l.room())
	for taken := 0; all || taken < logRound; {
		n, err := readFull(text, buffer)
		taken += n
		if n < logChunk {
			l.keepPieces(ctx, buffer[:n])
			break
		}
		if err := l.keepChunk(ctx, buffer); err != nil {
			return err
		}
		if err != nil {
			break
		}
	}
	if l.inline >= logChunk {
		return l.moveToObject(ctx)
	}
	return nil
}

// addMissing adds a line for text that was not kept. The line and LogPiece.Missing
// together are as long as that text, so that later offsets are those of the whole log.
func (l *logReader) addMissing(missing int64) {
	text := []byte(tasklog.MissingLine(missing))
	p := l.of
	p.NodeStart, p.Text = l.start, text[:min(int64(len(text)), missing)]
	p.Size = int64(len(p.Text))
	p.Missing = missing - p.Size
	l.size += missing
	l.start += missing
	l.inline = 0
	l.pieces = append(l.pieces, p)
}

// keepPieces puts text into the journal.
func (l *logReader) keepPieces(ctx context.Context, text []byte) {
	for len(text) > 0 {
		n := min(len(text), logPiece)
		p := l.piece(ctx, int64(n))
		p.Text = bytes.Clone(text[:n])
		l.inline += int64(n)
		l.add(p)
		text = text[n:]
	}
}

// keepChunk puts text into an object.
func (l *logReader) keepChunk(ctx context.Context, text []byte) error {
	if err := l.moveToObject(ctx); err != nil { // what came before lies before it
		return err
	}
	p := l.piece(ctx, int64(len(text)))
	p.Object = l.key(p.NodeStart, p.Size)
	if err := l.put(ctx, p.Object, text); err != nil {
		return err
	}
	l.add(p)
	return nil
}

func (l *logReader) piece(ctx context.Context, size int64) runs.LogPiece {
	p := l.of
	p.NodeStart, p.Size = l.start, size
	if m, ok := l.e.Driver.(executor.Meter); ok {
		marks, err := m.Marks(ctx, l.task, l.size)
		for _, mark := range marks {
			if err == nil && mark.Offset < l.size+size {
				p.Marks = append(p.Marks, runs.LogMark{Offset: max(0, mark.Offset-l.size) + l.start, At: mark.At, Stderr: mark.Stderr})
			}
		}
	}
	return p
}

func (l *logReader) add(p runs.LogPiece) {
	l.size += p.Size
	l.kept += p.Size
	l.start += p.Size
	l.pieces = append(l.pieces, p)
}

// moveToObject moves the text of the journal's last pieces into an object. The
// executor has it still.
func (l *logReader) moveToObject(ctx context.Context) error {
	if l.inline == 0 {
		return nil
	}
	log, err := l.e.Driver.Logs(ctx, l.task, l.size-l.inline)
	if err != nil {
		return nil // it stays where it is
	}
	defer log.Close()
	text := make([]byte, l.inline)
	if n, err := readFull(log, text); err != nil || log.Offset != l.size-l.inline || int64(n) < l.inline {
		return nil
	}
	m := runs.LogMove{Node: l.of.Node, Shard: l.of.Shard, From: l.start - l.inline, To: l.start}
	m.Object = l.key(m.From, m.To-m.From)
	if err := l.put(ctx, m.Object, text); err != nil {
		return err
	}
	l.moves = append(l.moves, m)
	l.inline = 0
	return nil
}

// logPrefix contains attempt and fence, like the key of an output. What follows are the
// bytes of the log: those are the same whenever, and by whomever, they are stored.
func (r *runner) logPrefix(t *attempt) string {
	return fmt.Sprintf("teams/%s/runs/%s/logs/%s.%06d.%d-%s.%d", r.run.Team, r.run.ID, t.node.ID, t.shard.index, t.row.Number, t.row.Fence, r.run.Fence)
}

func (l *logReader) key(start, size int64) string {
	return fmt.Sprintf("%s.%012d-%d", l.objects, start, size)
}

func (l *logReader) put(ctx context.Context, key string, text []byte) error {
	_, err := l.e.Objects.Put(ctx, key, "text/plain; charset=utf-8", bytes.NewReader(text), int64(len(text)))
	if fault.Is(err, fault.KindConflict) {
		return nil // it was stored, and this worker could not go on
	}
	return err
}

// tail is the end of the log.
func (l *logReader) tail(ctx context.Context) string {
	log, err := l.e.Driver.Logs(ctx, l.task, max(0, l.size-logTailBytes))
	if err != nil {
		return ""
	}
	defer log.Close()
	text := make([]byte, logTailBytes)
	n, _ := readFull(log, text)
	return strings.ToValidUTF8(string(text[:n]), "�")
}
