package engine

import (
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/runs"
)

// notePlacement takes in where an attempt is. It reports whether somebody who looks at the
// run should know before the attempt ends: a job of a cluster has a number,
// and has begun on a machine.
func notePlacement(a *runs.Attempt, s executor.Status) (news bool) {
	p := a.Placement
	if s.Host != "" {
		p.Machine = s.Host
	}
	if s.Job != "" {
		p.Job, p.Inspect = s.Job, s.Inspect
	}
	if p.BeganAt.IsZero() {
		switch {
		case s.Exit != nil && s.Exit.StartFailed == "":
			p.BeganAt = s.Exit.Start
		case s.Phase == executor.Running:
			p.BeganAt = s.At
		}
	}
	news = p != a.Placement && p.Job != "" && !s.Phase.Final()
	a.Placement = p
	return news
}
