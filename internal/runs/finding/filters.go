package finding

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
)

// MaxFilters is how many somebody keeps in a team.
const MaxFilters = 50

const (
	longestName = 100
	maxDays     = 3650
)

// SavedFilter is a list of runs that somebody wants to see again. It is theirs
// alone.
type SavedFilter struct {
	ID        string
	Name      string // one of a name
	Filter    runs.Filter
	Days      int // only runs of so many days; 0: of all. The filter has no times
	CreatedAt time.Time
}

// Store keeps filters.
type Store interface {
	SavedFilters(ctx context.Context, team ids.Team, user ids.User) ([]SavedFilter, error)
	// SaveFilter keeps one in place of that of the same name. More than most is
	// a conflict.
	SaveFilter(ctx context.Context, team ids.Team, user ids.User, f SavedFilter, most int) (SavedFilter, error)
	DeleteFilter(ctx context.Context, team ids.Team, user ids.User, id string) error
}

// Service keeps people's filters and favorites, finds what an id names, and deletes runs.
type Service struct {
	store     Store
	runs      RunStore
	favorites FavoriteStore
	owners    OwnerStore
	now       func() time.Time

	deleteBytes func(ctx context.Context, keys []string) error // nil: upkeep does
}

// NewService makes it.
func NewService(store Store, runs RunStore, favorites FavoriteStore, owners OwnerStore, now func() time.Time) *Service {
	return &Service{store: store, runs: runs, favorites: favorites, owners: owners, now: now}
}

// Filters are the caller's, by name.
func (s *Service) Filters(ctx context.Context, caller access.Caller) ([]SavedFilter, error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, err
	}
	return s.store.SavedFilters(ctx, caller.Team, caller.User)
}

// Save keeps a filter.
func (s *Service) Save(ctx context.Context, caller access.Caller, f SavedFilter) (SavedFilter, error) {
	if err := caller.Must(access.SaveFilters); err != nil {
		return f, err
	}
	f.Name = strings.TrimSpace(f.Name)
	var wrong []fault.Detail
	note := func(path, message string) { wrong = append(wrong, fault.Detail{Path: path, Message: message}) }
	if n := utf8.RuneCountInString(f.Name); n == 0 || n > longestName {
		note("name", fmt.Sprintf("needs 1 to %d characters", longestName))
	}
	if f.Days < 0 || f.Days > maxDays {
		note("filter.days", fmt.Sprintf("must be 1 to %d", maxDays))
	}
	if f.Days == 0 && f.Filter == (runs.Filter{}) {
		note("filter", "is empty: it would show all runs")
	}
	if len(wrong) > 0 {
		return f, fault.Problems(wrong, "%s %s", wrong[0].Path, wrong[0].Message)
	}
	f.ID, f.CreatedAt = ids.NewFilter(), s.now()
	return s.store.SaveFilter(ctx, caller.Team, caller.User, f, MaxFilters)
}

// Delete drops a filter.
func (s *Service) Delete(ctx context.Context, caller access.Caller, id string) error {
	if err := caller.Must(access.SaveFilters); err != nil {
		return err
	}
	return s.store.DeleteFilter(ctx, caller.Team, caller.User, id)
}
