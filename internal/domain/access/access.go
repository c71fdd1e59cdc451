// Package access decides who may do what. It is a table and a lookup.
package access

import (
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Role is what a person is in a team.
type Role string

// The roles of a team, from the least to the most.
const (
	Viewer Role = "viewer"
	Member Role = "member"
	Admin  Role = "admin"
	Owner  Role = "owner"
)

// What a guest is, by the share link they came with. No member has these.
const (
	GuestViewer Role = "guest viewer"
	GuestEditor Role = "guest editor"
)

// Known reports whether r is one of the roles of a team.
func (r Role) Known() bool { return r == Viewer || r == Member || r == Admin || r == Owner }

// Lesser is the one of two roles that allows less; no role sets no bound.
func Lesser(a, b Role) Role {
	if b == "" || len(allowed[a]) < len(allowed[b]) {
		return a
	}
	return b
}

// Action is something that not everybody may do.
type Action string

// The actions, in the words of the role table.
const (
	Read                 Action = "read the team's work"
	EditWorkflows        Action = "create or edit workflows"
	DeleteAnyWorkflow    Action = "delete anybody's workflow"
	UploadFiles          Action = "upload files"
	DeleteFiles          Action = "delete files"
	DeleteAnyFile        Action = "delete anybody's file"
	StartRuns            Action = "start runs"
	CancelRuns           Action = "cancel runs"
	CancelAnyRun         Action = "cancel anybody's run"
	LabelAnyRun          Action = "name anybody's run"
	DeleteRuns           Action = "delete runs"
	DeleteAnyRun         Action = "delete anybody's run"
	SaveFilters          Action = "save filters"
	ManageSchedules      Action = "make schedules and triggers"
	ManageWebhooks       Action = "manage webhooks"
	ReceiveNotifications Action = "choose and read notifications"
	ManageAnySchedule    Action = "change anybody's schedules and triggers"
	ReadFailedFolders    Action = "read the kept folders of failed steps"
	Analyze              Action = "analyze papers"
	Chat                 Action = "use the chat"
	ManageSharing        Action = "manage share links"
	ManageMembers        Action = "manage members and invitations"
	ManageOwners         Action = "manage owners"
	ManageBilling        Action = "manage billing"
	UseSecrets           Action = "see and use secrets"
	ManageSecrets        Action = "manage secrets"
	ReadAudit            Action = "read the audit log"
	SeeConnections       Action = "see connections"
	UseConnections       Action = "use connections"
	ManageConnections    Action = "manage connections"
	ManagePrograms       Action = "manage service accounts"
	ExportTeam           Action = "export the team's data"
	ReportRuns           Action = "report runs"
	ManageRetention      Action = "choose how long things are kept"
	EraseTeam            Action = "erase the team's data"
)

var (
	viewerMay = []Action{Read, Analyze, Chat, ReceiveNotifications, SaveFilters}
	memberMay = append(viewerMay[:len(viewerMay):len(viewerMay)],
		EditWorkflows, UploadFiles, DeleteFiles, StartRuns, CancelRuns, DeleteRuns, UseSecrets, SeeConnections, UseConnections, ReadFailedFolders, ManageSchedules, ReportRuns)
	adminMay = append(memberMay[:len(memberMay):len(memberMay)],
		DeleteAnyWorkflow, DeleteAnyFile, CancelAnyRun, LabelAnyRun, DeleteAnyRun, ManageSharing, ManageMembers, ManageBilling, ManageRetention, ExportTeam,
		ManageSecrets, ManageConnections, ManagePrograms, ReadAudit, ManageAnySchedule, ManageWebhooks)
	ownerMay = append(adminMay[:len(adminMay):len(adminMay)],
		ManageOwners, EraseTeam)

	allowed = map[Role]map[Action]bool{
		Viewer: set(viewerMay), Member: set(memberMay), Admin: set(adminMay), Owner: set(ownerMay),
		GuestEditor: set([]Action{StartRuns}),
	}
)

func set(actions []Action) map[Action]bool {
	m := make(map[Action]bool, len(actions))
	for _, a := range actions {
		m[a] = true
	}
	return m
}

// May reports whether the role allows the action.
func (r Role) May(a Action) bool { return allowed[r][a] }

// MayTouch refuses those who are no owners to make, change or remove one.
func (r Role) MayTouch(theirs Role) error {
	if theirs == Owner && !r.May(ManageOwners) {
		return fault.Forbidden("only an owner may make, change or remove an owner")
	}
	return nil
}

// Caller is whoever is asking, already authenticated and placed in one team.
type Caller struct {
	User ids.User
	Name string
	Team ids.Team
	Role Role

	// Scopes bound what a token may do of its role; none is no bound.
	Scopes ScopeSet

	Guest *Guest // who came by a share link, and has no account
}

// Guest is somebody whom a share link lets at one workflow of the team.
type Guest struct {
	ID       string
	Invite   ids.Invite
	Workflow ids.Workflow // the only one there is for them
	// Secrets says that their runs may use the team's secrets, and that they
	// may change what is done with them.
	Secrets bool
	// Results says that they get a link to the results of each run they start.
	Results bool
}

// Author is who wrote something. A guest writes in the name of the member who
// invited them.
type Author struct {
	User      ids.User
	Guest     string // empty: the member themselves
	GuestName string
}

// Subject names who is asking, whether they have an account or not.
func (c Caller) Subject() string {
	if c.Guest != nil {
		return c.Guest.ID
	}
	return string(c.User)
}

// May reports whether the caller's role, and the scopes of their token, allow
// the action.
func (c Caller) May(a Action) bool { return c.Role.May(a) && c.Scopes.Allow(a) }

// Must is nil, or why the caller's role does not allow the action.
func (c Caller) Must(a Action) error {
	if c.May(a) {
		return nil
	}
	if c.Role.May(a) {
		return fault.Forbidden("the scopes of your token (%s) do not let it %s", c.Scopes, a).WithCode("insufficient_scope")
	}
	return fault.Forbidden("your role in this team (%s) does not let you %s", c.Role, a)
}
