package sharing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// ResultPrefix begins the token of every result link.
const ResultPrefix = "mrr_"

// ResultsURL is where a link to results leads. Its token is in the fragment, which reaches no
// server's log.
func ResultsURL(base, token string) string { return base + "/results#" + token }

// ResultLink opens the results of one run to whoever holds it.
type ResultLink struct {
	ID            ids.ResultLink
	Team          ids.Team
	Run           ids.Run
	Hours         int
	ExpiresAt     time.Time
	Parameters    []string // that are shown
	AllowCopy     bool     // of the definition
	TokenHint     string
	Views         int
	CreatedBy     ids.User
	CreatedByName string
	CreatedAt     time.Time
	LastUsedAt    time.Time
	RevokedAt     time.Time

	Invite ids.Invite // of the guest who started the run and got this link; empty: a member made it
}

// SharedBy is the name of the person who created the link. It is empty where that name is an
// email address, which a link never shows.
func (l ResultLink) SharedBy() string {
	if strings.Contains(l.CreatedByName, "@") {
		return ""
	}
	return l.CreatedByName
}

// Status is what the link is worth at this moment.
func (l ResultLink) Status(now time.Time) Status {
	switch {
	case !l.RevokedAt.IsZero():
		return Revoked
	case !now.Before(l.ExpiresAt):
		return Expired
	default:
		return Active
	}
}

// ResultStore keeps result links.
type ResultStore interface {
	// InsertResultLink adds a link; a run that is not the team's is
	// fault.KindNotFound.
	InsertResultLink(ctx context.Context, l ResultLink, tokenHash string, r *access.IdempotencyRecord) error
	// ResultLinks are a run's, newest first.
	ResultLinks(ctx context.Context, team ids.Team, run ids.Run) ([]ResultLink, error)
	// ResultLinksOfTeam lists those of all runs before an id, newest first.
	ResultLinksOfTeam(ctx context.Context, team ids.Team, before ids.ResultLink, limit int) ([]ResultLink, error)
	// RevokeResultLink ends a link; one that has ended so stays as it is.
	RevokeResultLink(ctx context.Context, team ids.Team, run ids.Run, id ids.ResultLink, now time.Time) error
	// OpenResultLink finds the link with this hash and counts the view, if it
	// is worth anything.
	OpenResultLink(ctx context.Context, tokenHash string, now time.Time) (ResultLink, error)
	// ResultLinkOf finds the link with this hash.
	ResultLinkOf(ctx context.Context, tokenHash string) (ResultLink, error)
}

// NewResultLink is what a link should be.
type NewResultLink struct {
	Run        ids.Run
	Known      []string // the parameters that the run has
	Hours      int      // 0: a week
	Parameters []string
	AllowCopy  bool

	// Once records the answer with the effect; nil without an idempotency key.
	Once func(l ResultLink, token string) (*access.IdempotencyRecord, error)
}

// ShareResults makes a link to the results of a run. Its token is shown this
// once; we keep a hash.
func (s *Service) ShareResults(ctx context.Context, caller access.Caller, in NewResultLink) (ResultLink, string, error) {
	if err := caller.Must(access.ManageSharing); err != nil {
		return ResultLink{}, "", err
	}
	if in.Hours == 0 {
		in.Hours = week
	}
	if wrong := in.problems(); len(wrong) > 0 {
		return ResultLink{}, "", fault.Problems(wrong, "%s %s", wrong[0].Path, wrong[0].Message)
	}
	now, token := s.Now(), newSecret(ResultPrefix)
	l := ResultLink{
		ID: ids.NewResultLink(), Team: caller.Team, Run: in.Run, Hours: in.Hours, ExpiresAt: now.Add(time.Duration(in.Hours) * time.Hour),
		Parameters: in.Parameters, AllowCopy: in.AllowCopy, TokenHint: token[len(token)-4:],
		CreatedBy: caller.User, CreatedByName: caller.Name, CreatedAt: now,
	}
	var record *access.IdempotencyRecord
	if in.Once != nil {
		var err error
		if record, err = in.Once(l, token); err != nil {
			return l, "", err
		}
	}
	return l, token, s.Results.InsertResultLink(ctx, l, hashed(token), record)
}

// GuestResults draws the link to the results of a run that a guest is about to start, and its
// token. It is nil where the guest's share link does not allow it. Who made the share link has
// allowed it for every run, so that ManageSharing is not asked of the guest.
func (s *Service) GuestResults(caller access.Caller) (*access.ResultLink, string) {
	if caller.Guest == nil || !caller.Guest.Results {
		return nil, ""
	}
	token := newSecret(ResultPrefix)
	return &access.ResultLink{
		ID: ids.NewResultLink(), TokenHash: hashed(token), TokenHint: token[len(token)-4:], Hours: week, ExpiresAt: s.Now().Add(week * time.Hour),
	}, token
}

func (in NewResultLink) problems() (wrong []fault.Detail) {
	if in.Hours < 1 || in.Hours > maxLife {
		wrong = append(wrong, fault.Detail{Path: "expiresInHours", Message: "must be a whole number from 1 to 720"})
	}
	for i, name := range in.Parameters {
		if !slices.Contains(in.Known, name) {
			wrong = append(wrong, fault.Detail{Path: fmt.Sprintf("parameters[%d]", i), Message: "is not a parameter of this run"})
		}
		if len(wrong) > 20 {
			break
		}
	}
	return wrong
}

// ResultLinks are those of a run, newest first.
func (s *Service) ResultLinks(ctx context.Context, caller access.Caller, run ids.Run) ([]ResultLink, error) {
	if err := caller.Must(access.ManageSharing); err != nil {
		return nil, err
	}
	return s.Results.ResultLinks(ctx, caller.Team, run)
}

// AllResultLinks are those of all the team's runs before one of them, newest
// first.
func (s *Service) AllResultLinks(ctx context.Context, caller access.Caller, before ids.ResultLink, limit int) ([]ResultLink, error) {
	if err := caller.Must(access.ExportTeam); err != nil {
		return nil, err
	}
	return s.Results.ResultLinksOfTeam(ctx, caller.Team, before, limit)
}

// RevokeResults ends a link at once.
func (s *Service) RevokeResults(ctx context.Context, caller access.Caller, run ids.Run, id ids.ResultLink) error {
	if err := caller.Must(access.ManageSharing); err != nil {
		return err
	}
	return s.Results.RevokeResultLink(ctx, caller.Team, run, id, s.Now())
}

// OpenResults is the link that a token belongs to, for whoever holds it. This counts as a view.
func (s *Service) OpenResults(ctx context.Context, token string) (ResultLink, error) {
	l, err := s.Results.OpenResultLink(ctx, hashed(token), s.Now())
	if err != nil {
		return l, err
	}
	return s.unended(l)
}

// ReadResultsAgain is OpenResults for whoever has opened them before: no view is counted.
func (s *Service) ReadResultsAgain(ctx context.Context, token string) (ResultLink, error) {
	l, err := s.Results.ResultLinkOf(ctx, hashed(token))
	if err != nil {
		return l, err
	}
	return s.unended(l)
}

// unended refuses a link that has ended.
func (s *Service) unended(l ResultLink) (ResultLink, error) {
	switch l.Status(s.Now()) {
	case Revoked:
		return ResultLink{}, fault.Forbidden("this link was revoked: ask whoever sent it for another one").WithCode(string(Revoked))
	case Expired:
		return ResultLink{}, fault.Forbidden("this link has expired: ask whoever sent it for another one").WithCode(string(Expired))
	}
	return l, nil
}
