// Package reported watches runs that other engines carry out: what they report is
// merged into one picture, whatever arrives twice, late or not at all. Nothing is
// executed, stored as an output or billed here.
package reported

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/tags"
	"github.com/millrace/millrace/internal/runs"
)

// The limits. What exceeds them is left out, and the run says so.
const (
	MaxTasks      = 100_000 // attempts of tasks, a run
	MaxNodes      = 2_000
	MaxEdges      = 10_000
	MaxTeamTexts  = 1 << 30 // bytes of scripts, messages and logs, a team
	MaxProjects   = 1_000   // a team; runs of others belong to one workflow
	MaxPerMinute  = 120     // runs that a team begins to report
	MaxText       = 64 << 10
	maxShortText  = 4 << 10
	maxName       = 500
	maxParameters = 256 << 10
	maxDetails    = 50
)

// GivenUpAfter is how long nothing may be heard of a run before it is interrupted
// for good.
const GivenUpAfter = 24 * time.Hour

// late is how long after its end a run takes what the end has overtaken.
const late = time.Minute

// New is a run that somebody begins to report.
type New struct {
	Key           string // of the reporter, for this execution
	Engine        string
	EngineVersion string
	Project       string
	Name          string
	Tags          []string
	StartedAt     time.Time // zero: now
	Parameters    json.RawMessage
	Details       map[string]string
}

// Begun is where it is watched.
type Begun struct {
	Run      ids.Run
	Workflow ids.Workflow
	Status   lifecycle.Status
	LastSeq  int64
	Created  bool // it was not known before
}

// Taken is what became of a report.
type Taken struct {
	Status  lifecycle.Status
	LastSeq int64
	Dropped bool // the run has ended here
	Ended   bool // by this report
}

// About is what an engine said of a run beyond what every run has.
type About struct {
	Engine        string
	EngineVersion string
	Project       string
	Key           string
	HeardAt       time.Time
	Tasks         int
	TeamTexts     int64
	LeftOut       string
	Details       map[string]string
	Metrics       []Metric
}

// Metric is how the tasks of a step used something.
type Metric struct {
	Node   string  `json:"node"`
	Of     string  `json:"of"`
	Min    float64 `json:"min"`
	Q1     float64 `json:"q1"`
	Median float64 `json:"median"`
	Q3     float64 `json:"q3"`
	Max    float64 `json:"max"`
	Mean   float64 `json:"mean"`
}

// Store keeps the picture.
type Store interface {
	// BeginReported adds a run, or finds the one with this key. Starter is who
	// reports it.
	BeginReported(ctx context.Context, team ids.Team, n New, by runs.Starter, now time.Time) (Begun, error)
	// TakeReport merges a report into the picture, all of it or nothing.
	TakeReport(ctx context.Context, team ids.Team, id ids.Run, r Report, now time.Time) (Taken, error)
	ReportedRun(ctx context.Context, team ids.Team, id ids.Run) (About, error)
	// ReportedTask is one attempt of a task, the newest where attempt is 0, and
	// how many attempts there are.
	ReportedTask(ctx context.Context, team ids.Team, id ids.Run, number, attempt int) (t Row, attempts int, err error)
	// AllReportedTasks are attempts with their texts, in the order of their ids,
	// after one.
	AllReportedTasks(ctx context.Context, team ids.Team, id ids.Run, after string, limit int) ([]Whole, error)
}

// Whole is an attempt with its texts, and how many attempts its task has.
type Whole struct {
	Row
	Attempts int
}

// Watchers hear that a run has moved.
type Watchers interface {
	Changed(id ids.Run)
	Ended(id ids.Run)
}

// Service takes reports.
type Service struct {
	store    Store
	watchers Watchers
	now      func() time.Time
	full     func(context.Context) error // whether there is no room for more
}

// NewService makes the room.
func NewService(s Store, w Watchers, now func() time.Time) *Service {
	return &Service{store: s, watchers: w, now: now, full: func(context.Context) error { return nil }}
}

// RefuseWhile has reports refused while a check returns an error, such as that of a full
// disk. How a run ends is heard all the same.
func (s *Service) RefuseWhile(full func(context.Context) error) { s.full = full }

var (
	engineName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)
	detailName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,62}$`)
)

// Begin begins to watch a run, or goes on with the one of the same key.
func (s *Service) Begin(ctx context.Context, caller access.Caller, n New) (Begun, error) {
	if err := caller.Must(access.ReportRuns); err != nil {
		return Begun{}, err
	}
	if err := s.full(ctx); err != nil {
		return Begun{}, err
	}
	if wrong := n.clean(s.now()); len(wrong) > 0 {
		return Begun{}, fault.Problems(wrong, "%s %s", wrong[0].Path, wrong[0].Message)
	}
	b, err := s.store.BeginReported(ctx, caller.Team, n, runs.Starter{Type: "user", ID: caller.Subject(), Name: caller.Name}, s.now())
	if err == nil {
		s.watchers.Changed(b.Run)
	}
	return b, err
}

// clean finds what is wrong and cuts what is too long.
func (n *New) clean(now time.Time) (wrong []fault.Detail) {
	refuse := func(path, message string) { wrong = append(wrong, fault.Detail{Path: path, Message: message}) }
	if n.Key == "" || len([]rune(n.Key)) > 200 || !printable(n.Key) {
		refuse("key", "needs 1 to 200 characters in one line")
	}
	if !engineName.MatchString(n.Engine) {
		refuse("engine", "needs a name of small letters, such as snakemake")
	}
	if n.Project = strings.TrimSpace(n.Project); n.Project == "" || len([]rune(n.Project)) > 200 || !printable(n.Project) {
		refuse("project", "needs 1 to 200 characters in one line")
	}
	if len([]rune(n.Name)) > 200 || !printable(n.Name) {
		refuse("name", "needs at most 200 characters in one line")
	}
	if len([]rune(n.EngineVersion)) > 100 || !printable(n.EngineVersion) {
		refuse("engineVersion", "needs at most 100 characters in one line")
	}
	checked, bad := tags.Checked(n.Tags)
	wrong = append(wrong, bad...)
	n.Tags = checked
	if len(n.Details) > maxDetails {
		refuse("details", "takes at most 50 entries")
		return wrong
	}
	for name, text := range n.Details {
		if !detailName.MatchString(name) {
			refuse("details", "has a name that is not made of letters and digits")
			continue
		}
		n.Details[name] = Text(text, MaxText)
	}
	if n.Parameters = parameters(n.Parameters); len(n.Parameters) == 0 {
		n.Parameters = json.RawMessage("{}")
	}
	if n.StartedAt = within(n.StartedAt, now); n.StartedAt.IsZero() || n.StartedAt.After(now) {
		n.StartedAt = now
	}
	return wrong
}

// Known fails for a run that the caller's team does not report.
func (s *Service) Known(ctx context.Context, caller access.Caller, id ids.Run) error {
	if err := caller.Must(access.ReportRuns); err != nil {
		return err
	}
	_, err := s.store.ReportedRun(ctx, caller.Team, id)
	return err
}

// Take merges a report of a run of the caller's team.
func (s *Service) Take(ctx context.Context, caller access.Caller, id ids.Run, r Report) (Taken, error) {
	if err := caller.Must(access.ReportRuns); err != nil {
		return Taken{}, err
	}
	if err := s.full(ctx); err != nil && r.Finish == nil {
		return Taken{}, err
	}
	r.Clean(s.now())
	t, err := s.store.TakeReport(ctx, caller.Team, id, r, s.now())
	switch {
	case err != nil || t.Dropped:
	case t.Ended:
		s.watchers.Ended(id)
	default:
		s.watchers.Changed(id)
	}
	return t, err
}

// About is what an engine said of a run of the caller's team.
func (s *Service) About(ctx context.Context, caller access.Caller, id ids.Run) (About, error) {
	if err := caller.Must(access.Read); err != nil {
		return About{}, err
	}
	return s.store.ReportedRun(ctx, caller.Team, id)
}

// Task is everything of one attempt of a task, the newest where attempt is 0.
func (s *Service) Task(ctx context.Context, caller access.Caller, id ids.Run, number, attempt int) (t Row, attempts int, err error) {
	if err := caller.Must(access.Read); err != nil {
		return t, 0, err
	}
	return s.store.ReportedTask(ctx, caller.Team, id, number, attempt)
}

// AllTasks are attempts of the tasks of a run with their texts, after one, page by
// page.
func (s *Service) AllTasks(ctx context.Context, caller access.Caller, id ids.Run, after string, limit int) ([]Whole, error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, err
	}
	return s.store.AllReportedTasks(ctx, caller.Team, id, after, limit)
}
