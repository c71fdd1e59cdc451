package session

import "github.com/millrace/millrace/api"

// Mark makes workflows or runs favorites, or takes the mark off.
func (s *Session) Mark(list []string, remove bool) error {
	return Each(s, list, func(id string) (api.Favorite, error) {
		if remove {
			r, err := s.API.RemoveFavoriteWithResponse(s.Ctx, id, nil)
			if err != nil {
				return api.Favorite{}, s.Explain(err)
			}
			return r.JSON200.Data, nil
		}
		r, err := s.API.AddFavoriteWithResponse(s.Ctx, id, nil)
		if err != nil {
			return api.Favorite{}, s.Explain(err)
		}
		return r.JSON200.Data, nil
	}, func(d api.Favorite) {
		if d.Favorite {
			s.Say("%s is a favorite", d.ID)
			return
		}
		s.Say("%s is not a favorite", d.ID)
	})
}
