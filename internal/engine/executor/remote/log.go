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
func (d *Driver) Logs(ctx context.Context, h executor.Handle, offset int64) (io.ReadCloser, error) {
	if err := d.fresh(ctx); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.find(h)
	if a == nil {
		return nil, fault.NotFound("no such attempt")
	}
	return &logReader{ctx: ctx, store: d.config.Pieces, id: a.row.ID, at: offset, end: a.row.LogSize}, nil
}

// logReader reads a log as far as it was known to reach.
type logReader struct {
	ctx   context.Context
	store attempts.Pieces
	id    string
	at    int64
	end   int64
	text  []byte // what follows
}

func (r *logReader) Read(p []byte) (int, error) {
	for len(r.text) == 0 {
		if r.at >= r.end {
			return 0, io.EOF
		}
		pieces, err := r.store.AttemptLog(r.ctx, r.id, r.at, logRead)
		if err != nil {
			return 0, err
		}
		if len(pieces) == 0 {
			return 0, io.EOF
		}
		for _, piece := range pieces {
			r.text = append(r.text, piece.Text[max(0, min(int64(len(piece.Text)), r.at-piece.Offset)):]...)
			r.at = piece.Offset + int64(len(piece.Text))
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
