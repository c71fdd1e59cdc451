package finding

import (
	"context"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
)

// MaxFavorites is how many workflows, and how many runs, somebody marks in a team.
const MaxFavorites = 500

// Favorites is what somebody has marked to find it first, newest first. It is
// theirs alone.
type Favorites struct {
	Workflows []ids.Workflow
	Runs      []ids.Run
}

// FavoriteStore keeps favorites.
type FavoriteStore interface {
	Favorites(ctx context.Context, team ids.Team, user ids.User) (Favorites, error)
	// AddFavorite marks a workflow or a run of the team; what is neither is
	// fault.KindNotFound, and more than most is a conflict.
	AddFavorite(ctx context.Context, team ids.Team, user ids.User, id string, most int) error
	RemoveFavorite(ctx context.Context, team ids.Team, user ids.User, id string) error
}

// Favorites are the caller's.
func (s *Service) Favorites(ctx context.Context, caller access.Caller) (Favorites, error) {
	if err := caller.Must(access.Read); err != nil {
		return Favorites{}, err
	}
	return s.favorites.Favorites(ctx, caller.Team, caller.User)
}

// AddFavorite marks a workflow or a run; once more changes nothing.
func (s *Service) AddFavorite(ctx context.Context, caller access.Caller, id string) error {
	if err := caller.Must(access.SaveFilters); err != nil {
		return err
	}
	return s.favorites.AddFavorite(ctx, caller.Team, caller.User, id, MaxFavorites)
}

// RemoveFavorite takes the mark off; there need be none.
func (s *Service) RemoveFavorite(ctx context.Context, caller access.Caller, id string) error {
	if err := caller.Must(access.SaveFilters); err != nil {
		return err
	}
	return s.favorites.RemoveFavorite(ctx, caller.Team, caller.User, id)
}
