package cli

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type executorsCommand struct {
	session.Flags `embed:""`
}

// Run shows where a run can be executed, the preferred one first.
func (c *executorsCommand) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.ListExecutorsWithResponse(s.Ctx, nil)
	if err != nil {
		return s.Explain(err)
	}
	list := r.JSON200.Data
	return s.Emit(list, func() {
		rows := [][]string{{"NAME", "KIND", "FREE", "CAPACITY", "QUEUED", "TYPICAL WAIT", "PRICE"}}
		for _, e := range list {
			wait, free := "–", sizeText(e.Free)
			if e.TypicalWaitMs != nil {
				wait = (time.Duration(*e.TypicalWaitMs) * time.Millisecond).Round(time.Second).String()
			}
			if e.Problem != nil {
				free = screen.Clean(*e.Problem)
			}
			rows = append(rows, []string{screen.Clean(e.Name), screen.Clean(e.Kind), free, sizeText(e.Capacity), fmt.Sprint(e.Queued), wait, fmt.Sprintf("× %g", e.PriceFactor)})
		}
		s.Table(rows)
	})
}

func sizeText(c api.Compute) string {
	text := fmt.Sprintf("%d vCPU, %d GB", c.Vcpu, c.RAMGb)
	if c.Gpu > 0 {
		text += fmt.Sprintf(", %d GPU", c.Gpu)
	}
	return text
}
