package cli

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/definitions"
	"github.com/millrace/millrace/internal/cli/runs"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type estimateCommand struct {
	session.Flags            `embed:""`
	definitions.ComputeFlags `embed:""`
	Workflow                 string `arg:"" optional:"" help:"ID or name of a workflow: also show what its runs typically cost."`
}

// Run asks for the price; a size the plan does not allow is an answer, too.
func (c *estimateCommand) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	in := api.EstimateRequest{}
	if in.Compute, in.ResourceProfile, err = c.Size(); err != nil {
		return err
	}
	if c.Workflow != "" {
		id, err := s.WorkflowID(c.Workflow)
		if err != nil {
			return err
		}
		in.WorkflowID = &id
	}
	r, err := s.API.EstimateCostWithResponse(s.Ctx, nil, in)
	if err != nil {
		return s.Explain(err)
	}
	e := r.JSON200
	return s.Emit(e, func() {
		allowed, typical := "yes", ""
		if !e.Allowed {
			allowed = "no"
		}
		reason := ""
		if e.Reason != nil {
			reason = *e.Reason
		}
		if t := e.Typical; t != nil {
			typical = fmt.Sprintf("%s (9 of 10 within %s), %s credits", screen.Duration(seconds(t.P50Seconds)), screen.Duration(seconds(t.P90Seconds)), screen.Amount(t.Credits))
		}
		s.Facts(
			"size", runs.ComputeText(e.Compute), "allowed", allowed, "reason", reason,
			"price", screen.Amount(e.CreditsPerHour)+" credits/hour", "a minute", screen.Amount(60*e.CreditPerSecond)+" credits",
			"affordable", affordable(e.AffordableSeconds), "typical run", typical, "plan", e.Plan,
		)
	})
}

// affordable is how long credits last: without end where a size costs nothing.
func affordable(seconds int64) string {
	if seconds > int64(math.MaxInt64/time.Second) {
		return "unlimited"
	}
	return screen.Duration(time.Duration(seconds) * time.Second)
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

type creditsCommand struct {
	session.Flags `embed:""`
}

// Run shows what is left, of everything that runs out.
func (c *creditsCommand) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.GetCreditsWithResponse(s.Ctx, nil)
	if err != nil {
		return s.Explain(err)
	}
	b := r.JSON200
	return s.Emit(b, func() {
		storage := screen.Size(b.Storage.UsedBytes)
		if b.Storage.LimitBytes != nil {
			storage += " of " + screen.Size(*b.Storage.LimitBytes)
		}
		held, topUp := "", ""
		if b.HeldCredits > 0 {
			held = screen.Amount(b.HeldCredits) + " held by active runs"
		}
		if b.TopUpCredits > 0 {
			topUp = screen.Amount(b.TopUpCredits) + " top-up credits, which don't expire"
		}
		s.Facts(
			"remaining", screen.Amount(b.Remaining)+" credits", "this month", fmt.Sprintf("%s of %s used (%.0f %%)", screen.Amount(b.UsedCredits), screen.Amount(b.MonthlyCredits), b.PercentUsed),
			"top-ups", topUp, "held", held, "plan", b.Plan, "renews", b.PeriodEnd.Local().Format(time.DateOnly),
			"storage", storage, "analyses", strconv.Itoa(b.AiAnalysis.Remaining)+" of "+strconv.Itoa(b.AiAnalysis.Limit)+" left today",
		)
	})
}
