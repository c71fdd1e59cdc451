package access

import (
	"slices"
	"strings"
)

// Scope is a part of what a role may do, for tokens of programs. It only ever
// narrows the role.
type Scope string

// The scopes. Report is for programs that tell of runs elsewhere, and allows
// nothing else.
const (
	ScopeReport Scope = "report"
	ScopeRead   Scope = "read"
	ScopeRun    Scope = "run"
	ScopeWrite  Scope = "write"
	ScopeAdmin  Scope = "admin"
)

// Scopes are those that a token can be given, from the least to the most.
func Scopes() []Scope { return []Scope{ScopeReport, ScopeRead, ScopeRun, ScopeWrite, ScopeAdmin} }

// scopeOf says which scope each action needs. A test holds it complete.
var scopeOf = map[Action]Scope{
	Read: ScopeRead, UseSecrets: ScopeRead, SeeConnections: ScopeRead, ReadFailedFolders: ScopeRead,
	ReportRuns: ScopeReport,
	StartRuns:  ScopeRun, CancelRuns: ScopeRun, CancelAnyRun: ScopeRun, LabelAnyRun: ScopeRun, UploadFiles: ScopeRun, UseConnections: ScopeRun, Analyze: ScopeRun, Chat: ScopeRun,
	EditWorkflows: ScopeWrite, DeleteAnyWorkflow: ScopeWrite, DeleteFiles: ScopeWrite, DeleteAnyFile: ScopeWrite,
	ReceiveNotifications: ScopeWrite, SaveFilters: ScopeWrite, DeleteRuns: ScopeWrite, DeleteAnyRun: ScopeWrite, ManageWebhooks: ScopeAdmin, ManageSchedules: ScopeWrite, ManageAnySchedule: ScopeWrite,
	ManageSharing: ScopeAdmin, ManageMembers: ScopeAdmin, ManageOwners: ScopeAdmin, ManageBilling: ScopeAdmin,
	ManageSecrets: ScopeAdmin, ManageConnections: ScopeAdmin, ManagePrograms: ScopeAdmin, ReadAudit: ScopeAdmin, ManageRetention: ScopeAdmin, ExportTeam: ScopeAdmin, EraseTeam: ScopeAdmin,
}

// ScopeSet is the scopes of a token. None at all is no bound.
type ScopeSet []Scope

// Allow reports whether the scopes allow an action, whatever the role says.
func (s ScopeSet) Allow(a Action) bool { return len(s) == 0 || slices.Contains(s, scopeOf[a]) }

// Within reports whether a set is no more than another.
func (s ScopeSet) Within(most ScopeSet) bool {
	if len(most) == 0 {
		return true
	}
	return len(s) > 0 && !slices.ContainsFunc(s, func(one Scope) bool { return !slices.Contains(most, one) })
}

// Needs is the least role with which every scope of the set allows something of
// its own.
func (s ScopeSet) Needs() Role {
	switch {
	case slices.Contains(s, ScopeAdmin):
		return Admin
	case len(s) == 0, slices.Contains(s, ScopeReport), slices.Contains(s, ScopeRun), slices.Contains(s, ScopeWrite):
		return Member
	}
	return Viewer
}

// String is how a set is kept.
func (s ScopeSet) String() string {
	words := make([]string, len(s))
	for i, one := range s {
		words[i] = string(one)
	}
	return strings.Join(words, " ")
}

// ParseScopes reads what String wrote.
func ParseScopes(text string) (s ScopeSet) {
	for _, word := range strings.Fields(text) {
		s = append(s, Scope(word))
	}
	return s
}
