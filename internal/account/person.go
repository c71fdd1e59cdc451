package account

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// People deletes accounts.
type People interface {
	// DeletePerson deletes an account and closes the teams that only its person belongs to: all
	// of it or nothing. The last owner of a team with others, and the last operator, are
	// fault.KindConflict; who is not there is fault.KindNotFound.
	DeletePerson(ctx context.Context, id ids.User, l Lifetimes, now time.Time) (closed []ids.Team, err error)
}

// DeleteOwn deletes the account of whoever asks, who confirms it with its id.
func (s *Service) DeleteOwn(ctx context.Context, id ids.User, confirm string) ([]ids.Team, error) {
	if confirm != string(id) {
		d := fault.Detail{Path: "confirm", Message: "is not the id of your account"}
		return nil, fault.Problems([]fault.Detail{d}, "to delete your account, send its id %s as `confirm`", id)
	}
	return s.DeletePerson(ctx, id)
}

// DeletePerson deletes an account. It is gone when this returns; the teams that only its person
// belonged to are closed, and erased after it, whatever happens to this process.
func (s *Service) DeletePerson(ctx context.Context, id ids.User) ([]ids.Team, error) {
	closed, err := s.People.DeletePerson(ctx, id, s.Lifetimes, s.Now())
	if err == nil {
		s.wakeUp()
	}
	return closed, err
}
