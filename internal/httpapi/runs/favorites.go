package runs

import (
	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs/finding"
)

// ListFavorites answers GET /api/favorites.
func (a *API) ListFavorites(x *kernel.Exchange) (kernel.Answer, error) {
	list, err := a.Finding.Favorites(x.Context(), x.Caller)
	return kernel.Answer{Data: FavoritesOut(list)}, err
}

// FavoritesOut is favorites as the API shows them.
func FavoritesOut(list finding.Favorites) api.Favorites {
	out := api.Favorites{Workflows: make([]string, len(list.Workflows)), Runs: make([]string, len(list.Runs))}
	for i, id := range list.Workflows {
		out.Workflows[i] = string(id)
	}
	for i, id := range list.Runs {
		out.Runs[i] = string(id)
	}
	return out
}

// AddFavorite answers PUT /api/favorites/{id}.
func (a *API) AddFavorite(x *kernel.Exchange) (kernel.Answer, error) {
	id := x.Request.PathValue("id")
	if !kernel.Printable(id) {
		return kernel.Answer{}, fault.NotFound("no such workflow or run")
	}
	err := a.Finding.AddFavorite(x.Context(), x.Caller, id)
	return kernel.Answer{Data: api.Favorite{ID: id, Favorite: true}}, err
}

// RemoveFavorite answers DELETE /api/favorites/{id}.
func (a *API) RemoveFavorite(x *kernel.Exchange) (kernel.Answer, error) {
	id := x.Request.PathValue("id")
	if !kernel.Printable(id) {
		return kernel.Answer{Data: api.Favorite{ID: id}}, nil
	}
	err := a.Finding.RemoveFavorite(x.Context(), x.Caller, id)
	return kernel.Answer{Data: api.Favorite{ID: id}}, err
}
