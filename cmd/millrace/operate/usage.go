package operate

import (
	"fmt"
	"io"
	"strings"

	"github.com/millrace/millrace/cmd/millrace/installation"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/operator"
	"github.com/millrace/millrace/internal/store"
)

// Usage lists what was used in a month.
type Usage struct {
	installation.Settings `embed:""`
	Month                 string `required:"" help:"The month, such as 2026-11, in UTC."`
	CSV                   bool   `name:"csv" help:"Print comma-separated values."`
}

// Run prints a table by team, person and executor.
func (c *Usage) Run(w Console) error {
	return c.Beside(w.Ctx, func(db *store.DB) error {
		rows, err := Service(db).Usage(w.Ctx, c.Month)
		if err != nil {
			return err
		}
		if c.CSV {
			return operator.WriteUsage(w.Out, rows, kernel.Inert)
		}
		return table(w.Out, "TEAM\tPERSON\tEXECUTOR\tATTEMPTS\tVCPU HOURS\tELAPSED", func(t io.Writer) {
			for _, r := range rows {
				cells := r.Cells()
				fmt.Fprintf(t, "%s\t%q\t%s\t%d\t%s\t%ss\n", strings.Join(cells[:1], ""), r.PersonName, r.Executor, r.Attempts, cells[6], cells[8])
			}
		})
	})
}
