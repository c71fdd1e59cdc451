package runs

import (
	"context"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Changes is what has happened to a run since somebody last looked.
type Changes struct {
	Run    Run // without what it was given
	Events []Event
	Log    LogPage
}

// eventsAtOnce is how many events one look takes in.
const eventsAtOnce = 500

// MayWatch fails unless a run is one of the caller's team.
func (s *Service) MayWatch(ctx context.Context, caller access.Caller, id ids.Run) error {
	if err := caller.Must(access.Read); err != nil {
		return err
	}
	_, err := s.details.LeanRun(ctx, caller.Team, id)
	return err
}

// Changes is what has happened to a run of a team after an event, and from an
// offset of its log on. Who may know is decided before anybody watches.
func (s *Service) Changes(ctx context.Context, team ids.Team, id ids.Run, seq, offset, most int64) (Changes, error) {
	var n Changes
	var err error
	if n.Run, err = s.details.LeanRun(ctx, team, id); err != nil {
		return n, err
	}
	if err := s.explainWaiting(ctx, team, &n.Run); err != nil {
		return n, err
	}
	if n.Run.Seq > seq {
		if n.Events, err = s.store.Events(ctx, team, id, seq, eventsAtOnce); err != nil {
			return n, err
		}
	}
	size, err := s.logs.LogSize(ctx, team, id)
	if err != nil {
		return n, err
	}
	n.Log = LogPage{Offset: offset, Next: offset, Size: size}
	if size > offset {
		n.Log, err = s.page(ctx, team, id, size, offset, most)
	}
	return n, err
}

// Snapshot is how a run stands, with the newest of its log: up to an offset,
// or all of it if that is negative.
func (s *Service) Snapshot(ctx context.Context, team ids.Team, id ids.Run, end int64) (Changes, error) {
	r, err := s.details.LeanRun(ctx, team, id)
	if err != nil {
		return Changes{}, err
	}
	if err := s.explainWaiting(ctx, team, &r); err != nil {
		return Changes{}, err
	}
	if end < 0 {
		if end, err = s.logs.LogSize(ctx, team, id); err != nil {
			return Changes{}, err
		}
	}
	whole := LogPage{Offset: max(0, end-tailSize), Size: end, Text: []byte{}}
	for at := whole.Offset; at < end; {
		page, err := s.page(ctx, team, id, end, at, end-at)
		if err != nil {
			return Changes{}, err
		}
		if whole.Text = append(whole.Text, page.Text...); page.Next == at {
			break
		}
		at = page.Next
	}
	whole.Next = end
	return Changes{Run: r, Log: whole}, nil
}
