package session

import "github.com/millrace/millrace/api"

// Mark makes workflows or runs favorites, or takes the mark off.
func (s *Session) Mark(list []string, remove bool) error {
	done := []api.Favorite{}
	for _, id := range list {
		if remove {
			r, err := s.API.RemoveFavoriteWithResponse(s.Ctx, id, nil)
			if err != nil {
				return s.Explain(err)
			}
			done = append(done, r.JSON200.Data)
			continue
		}
		r, err := s.API.AddFavoriteWithResponse(s.Ctx, id, nil)
		if err != nil {
			return s.Explain(err)
		}
		done = append(done, r.JSON200.Data)
	}
	return s.Emit(done, func() {
		for _, d := range done {
			if d.Favorite {
				s.Say("%s is a favorite", d.ID)
				continue
			}
			s.Say("%s is no favorite", d.ID)
		}
	})
}
