package remote

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	shimremote "github.com/millrace/millrace/internal/engine/executor/shim/remote"
)

// logRead is how much of a log is read at once.
const logRead = 2 << 20

// Logs reads what a shim has reported so far.
func (d *Driver) Logs(ctx context.Context, h executor.Handle, offset int64) (executor.Log, error) {
	if err := d.fresh(ctx); err != nil {
		return executor.Log{}, err
	}
	d.mu.Lock()
	a := d.find(h)
	if a == nil {
		d.mu.Unlock()
		return executor.Log{}, fault.NotFound("no such attempt")
	}
	r := &logReader{ctx: ctx, store: d.config.Pieces, id: a.row.ID, at: offset, end: a.row.LogSize}
	d.mu.Unlock()
	begins, err := r.fill()
	return executor.Log{ReadCloser: r, Offset: begins, Size: r.end}, err
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

// Marks say when the log was written.
func (d *Driver) Marks(ctx context.Context, h executor.Handle, offset int64) ([]executor.LogMark, error) {
	pieces, err := d.config.Pieces.AttemptLog(ctx, ID(h.Key), offset, logRead)
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
