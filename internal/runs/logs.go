package runs

import (
	"context"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
)

// tailSize is how much of the log a run shows of itself.
const tailSize = 256 << 10

// LogStore knows which pieces hold which stretch of a log.
type LogStore interface {
	LogSize(ctx context.Context, team ids.Team, id ids.Run) (int64, error)
	NodeLogSize(ctx context.Context, team ids.Team, id ids.Run, node string, shard int) (int64, error)
	LogPieces(ctx context.Context, team ids.Team, id ids.Run, from, to int64) ([]LogPiece, error)
	NodeLogPieces(ctx context.Context, team ids.Team, id ids.Run, node string, shard int, from, to int64) ([]LogPiece, error)
}

// Log is a stretch of a run's log, or of one shard of one of its nodes.
func (s *Service) Log(ctx context.Context, caller access.Caller, id ids.Run, node string, shard int, offset, most int64) (LogPage, error) {
	if err := caller.Must(access.Read); err != nil {
		return LogPage{}, err
	}
	r, err := s.details.LeanRun(ctx, caller.Team, id)
	if err != nil {
		return LogPage{}, err
	}
	var p LogPage
	if node == "" {
		p, err = s.runLog(ctx, caller.Team, id, offset, most)
	} else {
		p, err = s.nodeLog(ctx, caller.Team, id, node, shard, offset, most)
	}
	p.Complete = r.Status.Terminal() && p.Next >= p.Size
	return p, err
}

func (s *Service) runLog(ctx context.Context, team ids.Team, id ids.Run, offset, most int64) (LogPage, error) {
	size, err := s.logs.LogSize(ctx, team, id)
	if err != nil {
		return LogPage{}, err
	}
	return s.page(ctx, team, id, size, offset, most)
}

func (s *Service) nodeLog(ctx context.Context, team ids.Team, id ids.Run, node string, shard int, offset, most int64) (LogPage, error) {
	size, err := s.logs.NodeLogSize(ctx, team, id, node, shard)
	if err != nil {
		return LogPage{}, err
	}
	pieces, err := s.logs.NodeLogPieces(ctx, team, id, node, shard, offset, offset+most)
	if err != nil {
		return LogPage{}, err
	}
	for i := range pieces {
		pieces[i].Start = pieces[i].NodeStart
	}
	return s.assemble(ctx, pieces, size, offset, most)
}

// page is a stretch of the log of a whole run.
func (s *Service) page(ctx context.Context, team ids.Team, id ids.Run, size, offset, most int64) (LogPage, error) {
	pieces, err := s.logs.LogPieces(ctx, team, id, offset, offset+most)
	if err != nil {
		return LogPage{}, err
	}
	for i := range pieces {
		pieces[i].Marks = nil // they count from the start of their node
	}
	return s.assemble(ctx, pieces, size, offset, most)
}

// assemble cuts what was asked for out of the pieces that hold it.
func (s *Service) assemble(ctx context.Context, pieces []LogPiece, size, offset, most int64) (LogPage, error) {
	p := LogPage{Offset: offset, Size: size, Text: []byte{}}
	for _, l := range pieces {
		if l.Missing > 0 {
			p.Missing = l.Size + l.Missing
			p.Text, p.Next = append(p.Text, l.Text...), l.Start+p.Missing
			return p, nil
		}
		from, to := max(0, offset-l.Start), min(l.Size, offset+most-l.Start)
		if from >= to {
			continue
		}
		text, err := s.cut(ctx, l, from, to)
		if err != nil {
			return p, err
		}
		p.Text, p.Marks = append(p.Text, text...), append(p.Marks, l.Marks...)
	}
	if offset+int64(len(p.Text)) < size {
		p.Text = wholeRunes(p.Text)
	}
	p.Next = offset + int64(len(p.Text))
	return p, nil
}

func (s *Service) cut(ctx context.Context, l LogPiece, from, to int64) ([]byte, error) {
	if l.Object == "" {
		return l.Text[from:to], nil
	}
	r, err := s.objects.Open(ctx, l.Object, l.ObjectStart+from, to-from)
	if err != nil {
		return nil, fmt.Errorf("a part of the log: %w", err)
	}
	defer r.Close()
	text := make([]byte, to-from)
	_, err = io.ReadFull(r, text)
	return text, err
}

// wholeRunes leaves a character that is cut at the end to the next page.
func wholeRunes(text []byte) []byte {
	for i := 1; i < utf8.UTFMax && i < len(text); i++ {
		if b := text[len(text)-i]; utf8.RuneStart(b) {
			if !utf8.FullRune(text[len(text)-i:]) {
				return text[:len(text)-i]
			}
			break
		}
	}
	return text
}
