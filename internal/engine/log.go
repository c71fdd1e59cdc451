package engine

import (
	"bytes"
	"context"
	"fmt"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/runs"
)

// A little text goes into the journal; what has come to a megabyte moves into
// an object.
const (
	logPiece = 64 << 10
	logChunk = 1 << 20
	logRound = 8 << 20 // at one look, so that a flood does not hold up the rest of the run

	logsOfRun = 16 // times what is kept of one attempt
	logsCut   = "\n[log cut: this is the most that is kept of one run]\n"
)

// readLog takes what the command has written since the last look: all of it,
// or as much as one look may.
func (c *carrier) readLog(ctx context.Context, t *try, all bool) error {
	if most := c.e.TaskLog * logsOfRun; most > 0 && c.texts >= most {
		if !c.mute {
			c.mute = true
			c.keepPieces(ctx, t, []byte(logsCut))
		}
		return nil
	}
	r, err := c.e.Driver.Logs(ctx, t.handle, t.logged)
	if err != nil {
		return nil // there is none yet, or none any more
	}
	defer r.Close()
	buffer := c.buffer()
	for taken := 0; all || taken < logRound; {
		n, err := readFull(r, buffer)
		taken += n
		switch {
		case n == len(buffer):
			if err := c.keepChunk(ctx, t, buffer); err != nil {
				return err
			}
		default:
			c.keepPieces(ctx, t, buffer[:n])
		}
		if err != nil || n < len(buffer) {
			break
		}
	}
	if t.inline >= logChunk {
		return c.seal(ctx, t)
	}
	return nil
}

// buffer is where logs are read into; a runner reads one log at a time.
func (c *carrier) buffer() []byte {
	if c.text == nil {
		c.text = make([]byte, logChunk)
	}
	return c.text
}

// keepPieces puts text into the journal.
func (c *carrier) keepPieces(ctx context.Context, t *try, text []byte) {
	for len(text) > 0 {
		n := min(len(text), logPiece)
		p := c.piece(ctx, t, int64(n))
		p.Text = bytes.Clone(text[:n])
		t.inline += int64(n)
		c.addPiece(t, p)
		text = text[n:]
	}
}

// keepChunk puts text into an object.
func (c *carrier) keepChunk(ctx context.Context, t *try, text []byte) error {
	if err := c.seal(ctx, t); err != nil { // what came before lies before it
		return err
	}
	p := c.piece(ctx, t, int64(len(text)))
	p.Object = c.logKey(t, p.NodeStart)
	if err := c.putLog(ctx, p.Object, text); err != nil {
		return err
	}
	c.addPiece(t, p)
	return nil
}

func (c *carrier) piece(ctx context.Context, t *try, size int64) runs.LogPiece {
	p := runs.LogPiece{Node: t.node.ID, Shard: t.shard.index, Attempt: t.row.Number, NodeStart: t.shard.logged, Size: size}
	if m, ok := c.e.Driver.(executor.Meter); ok {
		marks, err := m.Marks(ctx, t.handle, t.logged)
		for _, mark := range marks {
			if err == nil && mark.Offset < t.logged+size {
				p.Marks = append(p.Marks, runs.LogMark{Offset: max(0, mark.Offset-t.logged) + t.shard.logged, At: mark.At, Stderr: mark.Stderr})
			}
		}
	}
	return p
}

func (c *carrier) addPiece(t *try, p runs.LogPiece) {
	c.texts += p.Size
	t.logged += p.Size
	t.shard.logged += p.Size
	c.step.Logs = append(c.step.Logs, p)
}

// seal moves the text of the journal's last pieces into an object. The
// executor has it still.
func (c *carrier) seal(ctx context.Context, t *try) error {
	if t.inline == 0 {
		return nil
	}
	r, err := c.e.Driver.Logs(ctx, t.handle, t.logged-t.inline)
	if err != nil {
		return nil // it stays where it is
	}
	defer r.Close()
	text := make([]byte, t.inline)
	if n, err := readFull(r, text); err != nil || int64(n) < t.inline {
		return nil
	}
	m := runs.Sealed{Node: t.node.ID, Shard: t.shard.index, From: t.shard.logged - t.inline, To: t.shard.logged}
	m.Object = c.logKey(t, m.From)
	if err := c.putLog(ctx, m.Object, text); err != nil {
		return err
	}
	c.step.Sealed = append(c.step.Sealed, m)
	t.inline = 0
	return nil
}

// logKey contains attempt and fence, like that of an output, and the fence of
// this worker: another one may have split the text at other offsets.
func (c *carrier) logKey(t *try, start int64) string {
	return fmt.Sprintf("teams/%s/runs/%s/logs/%s.%06d.%d-%s.%d.%012d", c.r.Team, c.r.ID, t.node.ID, t.shard.index, t.row.Number, t.row.Fence, c.r.Fence, start)
}

func (c *carrier) putLog(ctx context.Context, key string, text []byte) error {
	_, err := c.e.Objects.Put(ctx, key, "text/plain; charset=utf-8", bytes.NewReader(text), int64(len(text)))
	return err
}
