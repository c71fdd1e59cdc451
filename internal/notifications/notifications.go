// Package notifications tells people what happened in their teams: in the app at
// once, and by mail in one mail for many things. Each person chooses. What
// happened is written down by the store, in the transaction in which it does.
package notifications

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/mails"
)

// Topic is something that people want to know of, or not.
type Topic string

// The topics.
const (
	OwnRuns     Topic = "ownRuns"     // their runs failed or were interrupted
	AllRuns     Topic = "allRuns"     // any run of the team has ended
	Budgets     Topic = "budgets"     // a budget is nearly spent
	Schedules   Topic = "schedules"   // a schedule of theirs was paused
	Invitations Topic = "invitations" // they were invited to a team
)

// Topics are all there are.
func Topics() []Topic { return []Topic{OwnRuns, AllRuns, Budgets, Schedules, Invitations} }

// Choice is how somebody wants to be told of a topic.
type Choice struct {
	Topic Topic
	App   bool
	Mail  bool
}

// Default is the choice of whoever has made none. An invitation is a mail of
// its own, which nobody can do without.
func Default(t Topic) Choice {
	return Choice{Topic: t, App: t != AllRuns, Mail: t == Budgets || t == Schedules}
}

// Notification is one thing that somebody is told.
type Notification struct {
	ID        string
	User      ids.User
	Team      ids.Team
	TeamName  string
	Topic     Topic
	Type      string // such as run.failed
	Title     string
	Text      string
	Path      string // in the app
	CreatedAt time.Time
	ReadAt    time.Time
}

// Store keeps what people are told. An invitation is in the inbox of every team
// of a person, the rest in that of its own.
type Store interface {
	// Notifications are somebody's before one of them, newest first.
	Notifications(ctx context.Context, team ids.Team, user ids.User, unread bool, before string, limit int) ([]Notification, error)
	Unread(ctx context.Context, team ids.Team, user ids.User) (int, error)
	// MarkRead marks some as read; none: all up to now.
	MarkRead(ctx context.Context, team ids.Team, user ids.User, list []string, now time.Time) error
	// Choices are those that somebody has made.
	Choices(ctx context.Context, user ids.User) ([]Choice, error)
	SetChoices(ctx context.Context, user ids.User, list []Choice) error
}

// Service is the room.
type Service struct {
	store Store
	now   func() time.Time
}

// NewService makes the room.
func NewService(store Store, now func() time.Time) *Service { return &Service{store, now} }

// Inbox is what the caller was told, newest first, and how much is unread.
func (s *Service) Inbox(ctx context.Context, caller access.Caller, unread bool, before string, limit int) (list []Notification, count int, more bool, err error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, 0, false, err
	}
	if list, err = s.store.Notifications(ctx, caller.Team, caller.User, unread, before, limit+1); err != nil {
		return nil, 0, false, err
	}
	if more = len(list) > limit; more {
		list = list[:limit]
	}
	count, err = s.store.Unread(ctx, caller.Team, caller.User)
	return list, count, more, err
}

// MaxMarked is how many can be marked at once.
const MaxMarked = 500

// MarkRead marks some of the caller's notifications as read, or all, and says
// how many are unread still.
func (s *Service) MarkRead(ctx context.Context, caller access.Caller, list []string, all bool) (int, error) {
	if err := caller.Must(access.ReceiveNotifications); err != nil {
		return 0, err
	}
	if all == (len(list) > 0) || len(list) > MaxMarked {
		d := fault.Detail{Path: "ids", Message: fmt.Sprintf("takes 1 to %d, or none with `all`", MaxMarked)}
		return 0, fault.Problems([]fault.Detail{d}, "%s %s", d.Path, d.Message)
	}
	if err := s.store.MarkRead(ctx, caller.Team, caller.User, list, s.now()); err != nil {
		return 0, err
	}
	return s.store.Unread(ctx, caller.Team, caller.User)
}

// Choices are what the caller wants to know of, topic by topic.
func (s *Service) Choices(ctx context.Context, caller access.Caller) ([]Choice, error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, err
	}
	made, err := s.store.Choices(ctx, caller.User)
	list := make([]Choice, len(Topics()))
	for i, t := range Topics() {
		list[i] = Default(t)
		for _, c := range made {
			if c.Topic == t {
				list[i] = c
			}
		}
	}
	return list, err
}

// Choose changes what the caller wants to know of; topics that are not named stay
// as they are.
func (s *Service) Choose(ctx context.Context, caller access.Caller, list []Choice) ([]Choice, error) {
	if err := caller.Must(access.ReceiveNotifications); err != nil {
		return nil, err
	}
	var wrong []fault.Detail
	seen := map[Topic]bool{}
	for i, c := range list {
		note := func(field, message string) {
			wrong = append(wrong, fault.Detail{Path: fmt.Sprintf("topics[%d].%s", i, field), Message: message})
		}
		switch {
		case !slices.Contains(Topics(), c.Topic):
			note("topic", "is none that there is")
		case seen[c.Topic]:
			note("topic", "is named twice")
		case c.Topic == Invitations && c.Mail:
			note("mail", "must be false: an invitation is always a mail of its own")
		}
		seen[c.Topic] = true
	}
	if len(wrong) > 0 {
		return nil, fault.Problems(wrong, "%s %s", wrong[0].Path, wrong[0].Message)
	}
	if err := s.store.SetChoices(ctx, caller.User, list); err != nil {
		return nil, err
	}
	return s.Choices(ctx, caller)
}

// How mails are put together: what happens within a short time is one, and
// there is one in a quarter of an hour at most.
const (
	Gather  = 2 * time.Minute
	Between = 15 * time.Minute

	mostLines = 50
)

// Summary is one mail about many things.
func Summary(list []Notification, base string) mails.Message {
	subject := "1 notification"
	if len(list) != 1 {
		subject = fmt.Sprintf("%d notifications", len(list))
	}
	var b strings.Builder
	for _, n := range list[:min(len(list), mostLines)] {
		b.WriteString(n.Title + "\n")
		if why := mails.Lines(n.Text); why != "" {
			b.WriteString(why + "\n")
		}
		fmt.Fprintf(&b, "%s%s\n\n", base, n.Path)
	}
	if more := len(list) - mostLines; more > 0 {
		fmt.Fprintf(&b, "and %d more.\n\n", more)
	}
	var teams []ids.Team
	for _, n := range list {
		if !slices.Contains(teams, n.Team) {
			teams = append(teams, n.Team)
			fmt.Fprintf(&b, "All notifications of %s, and notification settings: %s/notifications?team=%s\n", mails.QuotedName(n.TeamName), base, n.Team)
		}
	}
	return mails.Message{ID: ids.NewMail(), Subject: subject, Text: b.String()}
}

// MailStore knows for whom mails are due.
type MailStore interface {
	// SendMail leaves one mail for somebody whose notifications have been
	// gathered long enough; false: there is nobody.
	SendMail(ctx context.Context, gathered, before, now time.Time, mail func([]Notification) mails.Message) (bool, error)
}

// Mailer sends them.
type Mailer struct {
	Base string // the address of the app
	Sent func() // tells the sender of mails; nil: it finds out
	Now  func() time.Time
}

const batch = 100

// SendDue leaves the mails that are due, and says how many; a full batch means
// that there may be more.
func (l Mailer) SendDue(ctx context.Context, store MailStore) (n int, more bool, err error) {
	for n < batch {
		now := l.Now()
		sent, err := store.SendMail(ctx, now.Add(-Gather), now.Add(-Between), now, func(list []Notification) mails.Message { return Summary(list, l.Base) })
		if err != nil || !sent {
			return n, false, err
		}
		n++
		if l.Sent != nil {
			l.Sent()
		}
	}
	return n, true, nil
}
