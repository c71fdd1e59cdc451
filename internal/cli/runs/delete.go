package runs

import (
	"errors"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type runsDelete struct {
	session.Flags `embed:""`
	Run_          []string `arg:"" name:"run" help:"Ids of the runs."`
}

// Run deletes one after the other.
func (c *runsDelete) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	done, failed := each(c.Run_, func(id string) (api.Deleted, error) {
		r, err := s.API.DeleteRunWithResponse(s.Ctx, id, nil)
		if err != nil {
			return api.Deleted{}, s.Explain(err)
		}
		return r.JSON200.Data, nil
	})
	if len(done) == 0 {
		return failed
	}
	return errors.Join(failed, s.Emit(done, func() {
		for _, d := range done {
			s.Say("%s is deleted", d.ID)
		}
	}))
}

// each does something to one run after the other until that fails; what was done
// before cannot be taken back, so it is said.
func each[T any](ids []string, do func(id string) (T, error)) (done []T, failed error) {
	for _, id := range ids {
		one, err := do(id)
		if err != nil {
			return done, err
		}
		done = append(done, one)
	}
	return done, nil
}
