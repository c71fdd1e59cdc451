// Package operator is what those see who run an installation, and what they do
// about it: machines, the queue, room on the disk, chores, what teams use and
// pay, what failed. Of what teams keep here it knows nothing: no name of a run or
// a file, no parameter, no log.
package operator

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/quotas"
)

// Worker is a process that executes runs.
type Worker struct {
	ID       string
	Host     string
	Executor string // its name; empty where nobody has named one
	Version  string
	Size     credits.Size // what it has for runs
	Used     credits.Size // what its runs may use
	Runs     int
	Problem  string // why it starts nothing
	DiskLow  bool
	Draining bool // it takes no more runs
	SeenAt   time.Time
}

// OpenRun is a run that has not ended.
type OpenRun struct {
	ID     ids.Run
	Team   ids.Team
	Status lifecycle.Status
	Size   credits.Size
	Since  time.Time // when it was queued or started
	Reason string    // why it waits
	Worker string    // that executes it
}

// Queue is how many runs there are, and the oldest of them.
type Queue struct {
	Queued, Running int
	Runs            []OpenRun
}

// Storage is what is kept for all teams.
type Storage struct {
	Bytes         int64 // of their files
	PendingDelete int   // objects that are to be deleted still
	Database      int64 // bytes
}

// Disk is the file system of the server that answers.
type Disk struct {
	Total, Free      int64 // bytes
	Files, FreeFiles int64
	State            int // 0 enough, 1 low, 2 nearly none
}

// Chore is when something that has to be done from time to time was last done.
type Chore struct {
	Name        string
	SucceededAt time.Time // zero: never
	Took        time.Duration
	Done        int
	Skipped     int
	FailedAt    time.Time // zero: not since it succeeded
}

// Team is what a team uses.
type Team struct {
	ID          ids.Team
	Name        string
	Plan        credits.Plan
	Members     int
	Storage     int64          // bytes
	Spent       credits.Amount // this month
	Left        credits.Amount
	CreatedAt   time.Time
	SuspendedAt time.Time // zero: it is not

	Quotas quotas.Quotas
	VCPU   quotas.Use // this month
}

// Failure is a request that failed by our fault.
type Failure struct {
	At        time.Time
	RequestID string
	Route     string
	Code      string
	Host      string // whose log says why
}

// About is what an installation is.
type About struct {
	Version   string
	Go        string
	License   string
	SignUp    string // who may sign up
	Database  string
	Objects   string // where files are kept
	Mail      string // how mail goes out
	StartedAt time.Time
}

// Operators says who they are.
type Operators interface {
	IsOperator(ctx context.Context, user ids.User) (bool, error)
}

// Runs is what is asked of machines and runs.
type Runs interface {
	// WorkersOfAll are those that reported lately, by host.
	WorkersOfAll(ctx context.Context, now time.Time) ([]Worker, error)
	// OpenRunsOfAll are the oldest runs that have not ended.
	OpenRunsOfAll(ctx context.Context, limit int, now time.Time) (Queue, error)
}

// Keeping is what is asked of everything that is kept.
type Keeping interface {
	MonthlyUsage
	StorageOfAll(ctx context.Context) (Storage, error)
	ChoresDone(ctx context.Context) ([]Chore, error)
	// TeamsAfter are teams in the order of their ids.
	TeamsAfter(ctx context.Context, after ids.Team, limit int, now time.Time) ([]Team, error)
	// Failures are the newest first.
	Failures(ctx context.Context, limit int) ([]Failure, error)
}

// Options are what the room is made of.
type Options struct {
	Operators Operators
	Runs      Runs
	Keeping   Keeping
	Changes   Changes
	Notices   Notices
	Mailbox   Mailbox
	People    People
	Delete    func(context.Context, ids.User) ([]ids.Team, error) // an account
	SendSoon  func()                                              // has mails sent
	Wake      func()                                              // has workers look at the queue
	Cancel    func(ids.Run)                                       // tells the worker of a run
	Catalog   credits.Catalog
	Disk      func() Disk
	About     About
	Now       func() time.Time
}

// Service answers operators. Whether somebody is one is asked before.
type Service struct{ Options }

// NewService makes the room.
func NewService(o Options) *Service { return &Service{o} }

// IsOperator reports whether somebody looks after the installation.
func (s *Service) IsOperator(ctx context.Context, user ids.User) (bool, error) {
	return s.Operators.IsOperator(ctx, user)
}

// Workers are those that reported lately.
func (s *Service) Workers(ctx context.Context) ([]Worker, error) {
	return s.Runs.WorkersOfAll(ctx, s.Now())
}

// Queue is the runs that have not ended, so many at most, oldest first.
func (s *Service) Queue(ctx context.Context, limit int) (Queue, error) {
	return s.Runs.OpenRunsOfAll(ctx, limit, s.Now())
}

// Storage is what is kept, and the disk of this server.
func (s *Service) Storage(ctx context.Context) (Storage, Disk, error) {
	kept, err := s.Keeping.StorageOfAll(ctx)
	return kept, s.Disk(), err
}

// Chores are all that were ever done, by name.
func (s *Service) Chores(ctx context.Context) ([]Chore, error) { return s.Keeping.ChoresDone(ctx) }

// Teams are those after one, and whether there are more.
func (s *Service) Teams(ctx context.Context, after ids.Team, limit int) (list []Team, more bool, err error) {
	list, err = s.Keeping.TeamsAfter(ctx, after, limit+1, s.Now())
	if len(list) > limit {
		return list[:limit], true, err
	}
	return list, false, err
}

// Failures are the newest requests that failed by our fault.
func (s *Service) Failures(ctx context.Context, limit int) ([]Failure, error) {
	return s.Keeping.Failures(ctx, limit)
}
