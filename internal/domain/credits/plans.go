package credits

import "fmt"

// Plan is what a team pays for.
type Plan string

// The plans.
const (
	Free Plan = "free"
	Pro  Plan = "pro"
	Team Plan = "team"
)

// Plans are all plans, the smallest first.
func Plans() []Plan { return []Plan{Free, Pro, Team} }

// GB is how many bytes a gigabyte has, in limits and in prices alike.
const GB int64 = 1 << 30

// DefinitionAllowance is how many bytes a team's definitions may take before they count as
// storage: workflows with their revisions and live documents, what runs were given,
// answers that can be repeated, and the rows of files.
const DefinitionAllowance int64 = 64 << 20

// PlanTerms is what a plan includes. Where a cap is 0 there is none.
type PlanTerms struct {
	Name           Plan
	MonthlyCredits Amount
	MaxVCPU        int
	MaxRAMGB       int
	MaxRunSeconds  int64
	StorageBytes   int64
	StorageMetered bool // kept files cost credits, from the first GB
}

// Allows reports whether a run of this size may start under the plan, and if
// not, says why in a sentence for the caller.
func (t PlanTerms) Allows(s Size) (reason string, ok bool) {
	tooManyCPUs := t.MaxVCPU > 0 && s.VCPU > t.MaxVCPU
	tooMuchRAM := t.MaxRAMGB > 0 && s.RAMGB > t.MaxRAMGB
	switch {
	case tooManyCPUs && tooMuchRAM:
		return fmt.Sprintf("the %s plan allows up to %d vCPUs and %d GB, this size has %d vCPUs and %d GB",
			t.Name, t.MaxVCPU, t.MaxRAMGB, s.VCPU, s.RAMGB), false
	case tooManyCPUs:
		return fmt.Sprintf("the %s plan allows up to %d vCPUs, this size has %d", t.Name, t.MaxVCPU, s.VCPU), false
	case tooMuchRAM:
		return fmt.Sprintf("the %s plan allows up to %d GB of memory, this size has %d", t.Name, t.MaxRAMGB, s.RAMGB), false
	}
	return "", true
}
