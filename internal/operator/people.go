package operator

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Person is somebody with an account.
type Person struct {
	ID            ids.User
	Name          string
	Email         string
	EmailVerified bool
	Teams         []PersonTeam // the earliest joined first
	Operator      bool
	SecondFactor  bool
	CreatedAt     time.Time
	SuspendedAt   time.Time // zero: they are not
	SeenAt        time.Time // zero: they were never there
}

// PersonTeam is a team that somebody belongs to.
type PersonTeam struct {
	ID   ids.Team
	Name string
	Role access.Role
}

// People is what is asked of accounts and done to them. An account that is not there is
// fault.KindNotFound; service accounts are none.
type People interface {
	// PeopleBefore are the newest accounts before one whose name, address or id has the text
	// in it.
	PeopleBefore(ctx context.Context, text string, before ids.User, limit int) ([]Person, error)
	// SuspendPerson ends all that somebody is signed in with, and pauses their schedules. The
	// last operator is fault.KindConflict.
	SuspendPerson(ctx context.Context, id ids.User, now time.Time) error
	ResumePerson(ctx context.Context, id ids.User) error
	ResetSecondFactor(ctx context.Context, id ids.User) error
}

const longestSearch = 200

// People are accounts before one, and whether there are more.
func (s *Service) People(ctx context.Context, text string, before ids.User, limit int) (list []Person, more bool, err error) {
	text = strings.TrimSpace(text)
	if utf8.RuneCountInString(text) > longestSearch || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return nil, false, wrong("q", "has at most %d characters, in one line", longestSearch)
	}
	list, err = s.Options.People.PeopleBefore(ctx, text, before, limit+1)
	if len(list) > limit {
		return list[:limit], true, err
	}
	return list, false, err
}

// SuspendPerson shuts somebody out, or lets them in again. Nobody suspends themself.
func (s *Service) SuspendPerson(ctx context.Context, by, id ids.User, yes bool) error {
	if !yes {
		return s.Options.People.ResumePerson(ctx, id)
	}
	if by == id {
		return errSelf
	}
	return s.Options.People.SuspendPerson(ctx, id, s.Now())
}

// ResetSecondFactor lets somebody who has lost it sign in with their password alone.
func (s *Service) ResetSecondFactor(ctx context.Context, id ids.User) error {
	return s.Options.People.ResetSecondFactor(ctx, id)
}

// DeletePerson deletes somebody's account, as they could do themself. The teams that only they
// belong to are erased with it.
func (s *Service) DeletePerson(ctx context.Context, by, id ids.User) ([]ids.Team, error) {
	if by == id {
		return nil, errSelf
	}
	return s.Options.Delete(ctx, id)
}

var errSelf = fault.Conflict("operators can't suspend or delete themselves here: another operator can; your own account is deleted on the account page").WithCode("own_account")
