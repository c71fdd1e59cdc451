package main

import (
	"fmt"
	"os/user"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/store"
)

// audited has what a command changes put on record, in a team's log or the
// installation's.
func (w console) audited(action, chain, target string) console {
	name := "somebody"
	if who, err := user.Current(); err == nil {
		name = who.Username
	}
	w.ctx = audit.With(w.ctx, &audit.Pending{Entry: audit.Entry{
		At: time.Now(), Chain: chain, Actor: audit.Actor{Type: "operator", ID: name, Name: name}, Action: action, Target: target, Via: "command line",
	}})
	return w
}

type auditCommand struct {
	Verify auditVerify `cmd:"" help:"Verify that no entry of any audit log was changed, removed or added by hand."`
}

type auditVerify struct {
	databaseSettings `embed:""`
}

// Run prints a line for each chain and fails if one is not whole.
func (c *auditVerify) Run(w console) error {
	return c.Beside(w.ctx, func(db *store.DB) error {
		list, err := db.VerifyAudit(w.ctx)
		broken := 0
		for _, v := range list {
			if v.Problem != "" {
				broken++
				fmt.Fprintf(w.out, "%s: %s\n", v.Chain, v.Problem)
				continue
			}
			fmt.Fprintf(w.out, "%s: %d entries, whole\n", v.Chain, v.Entries)
		}
		if err == nil && broken > 0 {
			err = fmt.Errorf("%d of %d logs are not as they were written", broken, len(list))
		}
		return err
	})
}
