package remote

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/reconciler"
	shimremote "github.com/millrace/millrace/internal/engine/executor/shim/remote"
)

// logRead is how much of a log is read at once.
const logRead = 2 << 20

func (r *rows) Log(ctx context.Context, a reconciler.Attempt, offset int64) (executor.Log, error) {
	l := &logReader{ctx: ctx, store: r.config.Pieces, id: a.Job.ID, at: offset, end: a.LogSize}
	begins, err := l.fill()
	return executor.Log{ReadCloser: l, Offset: begins, Size: l.end}, err
}

// logReader reads a log as far as it was known to reach, or to where something is
// missing.
type logReader struct {
	ctx   context.Context
	store attempts.Pieces
	id    string
	at    int64
	end   int64
	text  []byte // what follows
}

// fill reads what follows at, and returns where it begins: behind it, if something is
// missing in between.
func (r *logReader) fill() (begins int64, err error) {
	begins = r.at
	if r.at >= r.end {
		return begins, nil
	}
	pieces, err := r.store.AttemptLog(r.ctx, r.id, r.at, logRead)
	for i, piece := range pieces {
		if i == 0 {
			begins = max(r.at, piece.Offset)
			r.at = begins
		}
		if piece.Offset > r.at {
			break
		}
		r.text = append(r.text, piece.Text[min(int64(len(piece.Text)), r.at-piece.Offset):]...)
		r.at = piece.Offset + int64(len(piece.Text))
	}
	return begins, err
}

func (r *logReader) Read(p []byte) (int, error) {
	if len(r.text) == 0 {
		at := r.at
		begins, err := r.fill()
		if err != nil {
			return 0, err
		}
		if begins > at || len(r.text) == 0 {
			r.text, r.end = nil, r.at // it is for who asks from there on
			return 0, io.EOF
		}
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	return n, nil
}

func (r *logReader) Close() error { return nil }

func (r *rows) Marks(ctx context.Context, ref reconciler.Ref, offset int64) ([]executor.LogMark, error) {
	pieces, err := r.config.Pieces.AttemptLog(ctx, ref.ID, offset, logRead)
	if err != nil {
		return nil, err
	}
	var marks []executor.LogMark
	for _, piece := range pieces {
		var list []shimremote.Mark
		if piece.Marks == nil || json.Unmarshal(piece.Marks, &list) != nil {
			continue
		}
		for _, m := range list {
			if m.Offset <= offset {
				marks = marks[:0] // an earlier one ends before offset
			}
			marks = append(marks, executor.LogMark{Offset: m.Offset, At: time.UnixMilli(m.At), Stderr: m.Stderr})
		}
	}
	return marks, nil
}
