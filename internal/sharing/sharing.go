// Package sharing lets a team open one workflow to people without an account:
// links, the guests who come by them, and the passes with which guests and
// members enter the workflow's editor room. What happens in the room is left
// to others.
package sharing

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Role is what a link makes of its guests.
type Role string

// The roles of a link.
const (
	Viewer Role = "viewer" // reads
	Editor Role = "editor" // edits, and runs the workflow
)

// Status is what a link is worth.
type Status string

// The states of a link. A revoked one stays so; the others follow from its
// numbers and the time.
const (
	Active    Status = "active"
	Expired   Status = "expired"
	Exhausted Status = "exhausted"
	Revoked   Status = "revoked"
)

// Invite is a link that opens one workflow.
type Invite struct {
	ID            ids.Invite
	Team          ids.Team
	Workflow      ids.Workflow
	Role          Role
	Hours         int
	ExpiresAt     time.Time
	MaxUses       int // 0: any number
	Uses          int
	MaxCredits    credits.Amount // 0: what the team has
	AllowSecrets  bool           // its guests may use the team's secrets
	AllowResults  bool           // its guests get a link to the results of each run they start
	TokenHint     string
	CreatedBy     ids.User
	CreatedByName string
	CreatedAt     time.Time
	LastUsedAt    time.Time
	RevokedAt     time.Time
}

// Status is what the link is worth at this moment.
func (i Invite) Status(now time.Time) Status {
	switch {
	case !i.RevokedAt.IsZero():
		return Revoked
	case !now.Before(i.ExpiresAt):
		return Expired
	case i.MaxUses > 0 && i.Uses >= i.MaxUses:
		return Exhausted
	default:
		return Active
	}
}

// Guest is somebody who came by a link.
type Guest struct {
	ID   string
	Name string
}

// Store is what this room asks of the database.
type Store interface {
	// InsertInvite adds a link; a workflow that is not the team's is
	// fault.KindNotFound.
	InsertInvite(ctx context.Context, i Invite, tokenHash string, r *access.IdempotencyRecord) error
	// Invites are a workflow's links, newest first.
	Invites(ctx context.Context, team ids.Team, id ids.Workflow) ([]Invite, error)
	// InvitesOfTeam lists those of all workflows before an id, newest first.
	InvitesOfTeam(ctx context.Context, team ids.Team, before ids.Invite, limit int) ([]Invite, error)
	// RevokeInvite ends a link; one that has ended so stays as it is.
	RevokeInvite(ctx context.Context, team ids.Team, id ids.Invite, now time.Time) error
	// Join lets somebody in. The look at the link and the use that counts are
	// one transaction; refuse says what the link is worth to a newcomer, or to
	// a guest who comes back.
	Join(ctx context.Context, j Joining, refuse func(i Invite, back bool) error) (Invite, Guest, error)
	// Bearer finds the link whose token, or whose guest's run token, has this
	// hash. The guest is nil when it was the link's own.
	Bearer(ctx context.Context, tokenHash string) (Invite, *Guest, error)
}

// RoomStore is what passes ask of the database.
type RoomStore interface {
	// Epoch is the document's. Where the definition comes from Git, nobody may
	// write in it. A workflow that is not the team's is fault.KindNotFound.
	Epoch(ctx context.Context, team ids.Team, id ids.Workflow) (epoch int64, readOnly bool, err error)
	// OpenInvites are those of the links that are neither revoked nor expired.
	OpenInvites(ctx context.Context, list []ids.Invite, now time.Time) (map[ids.Invite]bool, error)
}

// Members knows who is signed in.
type Members interface {
	// RoleOf is the role that a live session's person has in a team now; a
	// dead session or a lost membership is fault.KindUnauthenticated or
	// fault.KindNotFound.
	RoleOf(ctx context.Context, s ids.Session, t ids.Team) (access.Role, error)
}

// Options are what the room is made of.
type Options struct {
	Store   Store
	Results ResultStore
	Rooms   RoomStore
	Members Members
	Key     []byte // signs passes and cookies; the same on every server
	Now     func() time.Time
}

// Service keeps links and passes.
type Service struct{ Options }

// NewService makes the room.
func NewService(o Options) *Service { return &Service{o} }

// New is what a link should be.
type New struct {
	Workflow   ids.Workflow
	Role       Role
	Hours      int // 0: a week
	MaxUses    int // 0: any number
	MaxCredits credits.Amount
	// AllowSecrets lets guests change nodes that use the team's secrets, and
	// run them.
	AllowSecrets bool
	// AllowResults gives guests a link to the results of each run they start.
	AllowResults bool

	// Once records the answer with the effect; nil without an idempotency key.
	Once func(i Invite, token string) (*access.IdempotencyRecord, error)
}

const (
	week    = 168 // hours
	maxLife = 720
	maxUses = 1000
)

// Create makes a link. Its token is shown this once; we keep a hash.
func (s *Service) Create(ctx context.Context, caller access.Caller, in New) (Invite, string, error) {
	if err := caller.Must(access.ManageSharing); err != nil {
		return Invite{}, "", err
	}
	if in.Hours == 0 {
		in.Hours = week
	}
	if wrong := in.problems(); len(wrong) > 0 {
		return Invite{}, "", fault.Problems(wrong, "%s %s", wrong[0].Path, wrong[0].Message)
	}
	now := s.Now()
	token := newSecret(TokenPrefix)
	i := Invite{
		ID: ids.NewInvite(), Team: caller.Team, Workflow: in.Workflow, Role: in.Role, Hours: in.Hours, MaxUses: in.MaxUses, MaxCredits: in.MaxCredits, AllowSecrets: in.AllowSecrets, AllowResults: in.AllowResults,
		ExpiresAt: now.Add(time.Duration(in.Hours) * time.Hour), TokenHint: token[len(token)-4:],
		CreatedBy: caller.User, CreatedByName: caller.Name, CreatedAt: now,
	}
	var record *access.IdempotencyRecord
	if in.Once != nil {
		var err error
		if record, err = in.Once(i, token); err != nil {
			return i, "", err
		}
	}
	return i, token, s.Store.InsertInvite(ctx, i, hashed(token), record)
}

// problems lists everything that is wrong with a link to be.
func (in New) problems() (wrong []fault.Detail) {
	note := func(path, message string) { wrong = append(wrong, fault.Detail{Path: path, Message: message}) }
	if in.Workflow == "" {
		note("workflowId", "is missing")
	}
	if in.Role != Viewer && in.Role != Editor {
		note("role", "is neither viewer nor editor")
	}
	if in.Hours < 1 || in.Hours > maxLife {
		note("expiresInHours", "must be a whole number from 1 to 720")
	}
	if in.MaxUses < 0 || in.MaxUses > maxUses {
		note("maxUses", "must be a whole number from 1 to 1000")
	}
	if in.AllowSecrets && in.Role == Viewer {
		note("allowSecrets", "is for links whose guests edit; a viewer changes and runs nothing")
	}
	if in.AllowResults && in.Role == Viewer {
		note("allowResults", "is for links whose guests edit; a viewer starts no runs")
	}
	if in.MaxCredits < 0 {
		note("maxCredits", "must be more than 0, with at most 6 decimals")
	}
	return wrong
}

// Invites lists a workflow's links, newest first.
func (s *Service) Invites(ctx context.Context, caller access.Caller, id ids.Workflow) ([]Invite, error) {
	if err := caller.Must(access.ManageSharing); err != nil {
		return nil, err
	}
	return s.Store.Invites(ctx, caller.Team, id)
}

// AllInvites are the links of all the team's workflows before one of them,
// newest first.
func (s *Service) AllInvites(ctx context.Context, caller access.Caller, before ids.Invite, limit int) ([]Invite, error) {
	if err := caller.Must(access.ExportTeam); err != nil {
		return nil, err
	}
	return s.Store.InvitesOfTeam(ctx, caller.Team, before, limit)
}

// Revoke ends a link at once: nobody joins by it, its guests' tokens are dead
// with the next request, they leave the room, and the links to results of their
// runs end.
func (s *Service) Revoke(ctx context.Context, caller access.Caller, id ids.Invite) error {
	if err := caller.Must(access.ManageSharing); err != nil {
		return err
	}
	return s.Store.RevokeInvite(ctx, caller.Team, id, s.Now())
}
