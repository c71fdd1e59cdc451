package upkeep

import (
	"context"
	"errors"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/retention"
)

// TeamPolicy is what a team has chosen.
type TeamPolicy struct {
	Team   ids.Team
	Policy retention.Policy
}

// RetentionStore keeps what teams choose, and deletes what has had its time.
type RetentionStore interface {
	Retention(ctx context.Context, team ids.Team) (retention.Policy, error)
	SetRetention(ctx context.Context, team ids.Team, p retention.Policy) error
	// TeamPolicies lists the teams after one, in order; without all, only those
	// that have chosen something for the kind.
	TeamPolicies(ctx context.Context, kind retention.Kind, all bool, after ids.Team, limit int) ([]TeamPolicy, error)
	// Expire deletes some of what a team keeps of a kind since before a time,
	// and reports whether there is more. It is ErrLost under another's fence.
	Expire(ctx context.Context, fence int64, kind retention.Kind, team ids.Team, before, now time.Time) (n int, more bool, err error)
	// ForgetDeleted drops some of what is kept of runs that were deleted before a
	// time, of all teams, and reports whether there is more.
	ForgetDeleted(ctx context.Context, fence int64, before, now time.Time) (n int, more bool, err error)
}

// Retention lets teams choose how long they keep things, within what the
// operator allows.
type Retention struct {
	store    RetentionStore
	operator retention.Policy
	now      func() time.Time
}

// NewRetention makes it.
func NewRetention(s RetentionStore, operator retention.Policy, now func() time.Time) *Retention {
	return &Retention{s, operator, now}
}

// Of is what the caller's team has chosen, and the most it can.
func (r *Retention) Of(ctx context.Context, caller access.Caller) (chosen, most retention.Policy, err error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, nil, err
	}
	chosen, err = r.store.Retention(ctx, caller.Team)
	return chosen, r.operator, err
}

// Choose replaces what the team has chosen.
func (r *Retention) Choose(ctx context.Context, caller access.Caller, p retention.Policy) error {
	if err := caller.Must(access.ManageRetention); err != nil {
		return err
	}
	if problems := p.Problems(r.operator); len(problems) > 0 {
		return fault.Problems(problems, "the team cannot keep things for so long or so short: %s %s", problems[0].Path, problems[0].Message)
	}
	return r.store.SetRetention(ctx, caller.Team, p)
}

// Chores delete what has had its time, a kind each.
func (r *Retention) Chores(every time.Duration) (list []Chore) {
	for _, kind := range retention.Kinds {
		list = append(list, Chore{Name: "old-" + string(kind), Every: every, Batch: Paged(func(ctx context.Context, fence int64, after string) (Result, string, error) {
			return r.expire(ctx, fence, kind, ids.Team(after))
		})})
	}
	return list
}

// ForgetDeleted is the chore that drops what is kept of deleted runs for their costs.
func (r *Retention) ForgetDeleted(ctx context.Context, fence int64) (done Result, err error) {
	keep := r.operator[retention.DeletedRuns]
	if keep == 0 {
		return done, nil
	}
	done.Done, done.More, err = r.store.ForgetDeleted(ctx, fence, keep.Before(r.now()), r.now())
	return done, err
}

const teamsAtOnce = 100

// expire goes on with the team after the given one. What cannot be deleted of
// one team keeps nothing of another.
func (r *Retention) expire(ctx context.Context, fence int64, kind retention.Kind, after ids.Team) (done Result, next string, err error) {
	list, err := r.store.TeamPolicies(ctx, kind, r.operator[kind] > 0, after, teamsAtOnce)
	if err != nil {
		return done, "", err
	}
	for _, t := range list {
		if keep := t.Policy.Within(r.operator)[kind]; keep > 0 {
			n, more, err := r.store.Expire(ctx, fence, kind, t.Team, keep.Before(r.now()), r.now())
			done.Done += n
			switch {
			case errors.Is(err, ErrLost), ctx.Err() != nil:
				return done, "", err
			case err != nil:
				done.Skipped++
				done.Why = errors.Join(done.Why, err)
			case more:
				done.More = true
				return done, string(after), nil
			}
		}
		after = t.Team
	}
	done.More = len(list) == teamsAtOnce
	return done, string(after), nil
}
