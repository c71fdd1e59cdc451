package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/mails"
	"github.com/millrace/millrace/internal/notifications"
	"github.com/millrace/millrace/internal/runs"
)

// failedRun is a run of somebody that has failed.
func failedRun(t *testing.T, db *DB, team ids.Team, by ids.User) ids.Run {
	t.Helper()
	r := newRun(team)
	r.Starter.ID = string(by)
	must(t, db.SubmitRun(t.Context(), r, 60*r.Price, nil))
	claimed, err := db.ClaimRuns(t.Context(), claim("w1", 1), august, august.Add(time.Minute))
	if err != nil || len(claimed.Runs) != 1 {
		t.Fatalf("%+v, %v", claimed, err)
	}
	must(t, db.EndRun(t.Context(), r.ID, 1, runs.Ending{Status: lifecycle.Failed, Message: "no"}, august))
	return r.ID
}

// inbox is how many notifications somebody has in a team, and how many of them are
// unread.
func inbox(t *testing.T, db *DB, team ids.Team, user ids.User) (all, unread int) {
	t.Helper()
	list, err := db.Notifications(t.Context(), team, user, false, "", 100)
	must(t, err)
	n, err := db.Unread(t.Context(), team, user)
	must(t, err)
	open, err := db.Notifications(t.Context(), team, user, true, "", 100)
	if err != nil || len(open) != n {
		t.Fatalf("%d unread ones are listed, %d counted, %v", len(open), n, err)
	}
	return len(list), n
}

func summary(list []notifications.Notification) mails.Message {
	return mails.Message{ID: ids.NewMail(), Subject: fmt.Sprint(len(list))}
}

// sent are the addresses that mails wait for, with their subjects.
func sent(t *testing.T, db *DB) (list []string) {
	t.Helper()
	claimed, err := db.ClaimMails(t.Context(), 100, august.Add(time.Hour), time.Minute)
	must(t, err)
	for _, m := range claimed {
		list = append(list, m.To+" "+m.Subject)
		must(t, db.MailSent(t.Context(), m.ID))
	}
	slices.Sort(list)
	return list
}

func TestEverybodyHearsOfWhatTheyChose(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada := signedUp(t, db, "ada@example.org")
		bob, eve := memberOf(t, db, ada.Team.ID, access.Viewer, "bob@example.org"), memberOf(t, db, ada.Team.ID, access.Viewer, "eve@example.org")
		for user, list := range map[ids.User][]notifications.Choice{
			ada.ID: {{Topic: notifications.OwnRuns, App: true, Mail: true}},
			bob.ID: {{Topic: notifications.AllRuns, App: true}, {Topic: notifications.OwnRuns}},
		} {
			must(t, db.SetChoices(ctx, user, list))
			must(t, db.SetChoices(ctx, user, list)) // as often as one likes
			if got, err := db.Choices(ctx, user); err != nil || len(got) != len(list) {
				t.Errorf("%+v, %v", got, err)
			}
		}
		failedRun(t, db, ada.Team.ID, ada.ID)
		for name, tt := range map[string]struct {
			user ids.User
			want int
		}{"who started it": {ada.ID, 1}, "who wants to know of all": {bob.ID, 1}, "who has chosen nothing": {eve.ID, 0}} {
			if all, unread := inbox(t, db, ada.Team.ID, tt.user); all != tt.want || unread != tt.want {
				t.Errorf("%s has %d, %d unread; want %d", name, all, unread, tt.want)
			}
			if all, _ := inbox(t, db, bob.Team.ID, tt.user); all != 0 {
				t.Errorf("%s has %d in another team", name, all)
			}
		}
		for i, want := range []bool{true, false} {
			if more, err := db.SendMail(ctx, august, august, august, summary); err != nil || more != want {
				t.Errorf("look %d: %v, %v", i, more, err)
			}
		}
		if got := sent(t, db); !slices.Equal(got, []string{"ada@example.org 1"}) {
			t.Errorf("%q", got)
		}
		// The next ones wait until a while after the last mail.
		failedRun(t, db, ada.Team.ID, ada.ID)
		if more, err := db.SendMail(ctx, august, august.Add(-time.Second), august, summary); err != nil || more {
			t.Errorf("%v, %v", more, err)
		}
		if more, err := db.SendMail(ctx, august, august, august, summary); err != nil || !more {
			t.Errorf("%v, %v", more, err)
		}
	})
}

func TestANotificationIsReadByWhoseItIs(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada := signedUp(t, db, "ada@example.org")
		bob := memberOf(t, db, ada.Team.ID, access.Member, "bob@example.org")
		for range 40 { // more than are marked at once
			failedRun(t, db, ada.Team.ID, ada.ID)
		}
		list, err := db.Notifications(ctx, ada.Team.ID, ada.ID, false, "", 100)
		if err != nil || len(list) != 40 {
			t.Fatalf("%d, %v", len(list), err)
		}
		var all []string
		for _, n := range list {
			all = append(all, n.ID)
		}
		first, err := db.Notifications(ctx, ada.Team.ID, ada.ID, false, "", 3)
		must(t, err)
		next, err := db.Notifications(ctx, ada.Team.ID, ada.ID, false, first[2].ID, 3)
		must(t, err)
		if first[0].ID != all[0] || next[0].ID != all[3] {
			t.Error("pages do not follow one another")
		}
		must(t, db.MarkRead(ctx, ada.Team.ID, bob.ID, all, august))
		must(t, db.MarkRead(ctx, bob.Team.ID, ada.ID, all, august))
		must(t, db.MarkRead(ctx, bob.Team.ID, ada.ID, nil, august))
		if _, unread := inbox(t, db, ada.Team.ID, ada.ID); unread != 40 {
			t.Errorf("others have read some: %d are left", unread)
		}
		must(t, db.MarkRead(ctx, ada.Team.ID, ada.ID, append(all[:35:35], "nothing"), august))
		if total, unread := inbox(t, db, ada.Team.ID, ada.ID); total != 40 || unread != 5 {
			t.Errorf("%d of %d are unread", unread, total)
		}
		must(t, db.MarkRead(ctx, ada.Team.ID, ada.ID, nil, august.Add(time.Hour)))
		list, err = db.Notifications(ctx, ada.Team.ID, ada.ID, false, "", 100)
		if err != nil || !list[0].ReadAt.Equal(august) || !list[39].ReadAt.Equal(august.Add(time.Hour)) {
			t.Errorf("what was read before is read again: %v, %v, %v", list[0].ReadAt, list[39].ReadAt, err)
		}
	})
}

// Whoever has left the team, or was shut out by the operator, hears no more of it.
func TestWhoIsOutHearsNothing(t *testing.T) {
	t.Parallel()
	for name, out := range map[string]func(t *testing.T, db *DB, team ids.Team, user ids.User) error{
		"removed": func(t *testing.T, db *DB, team ids.Team, user ids.User) error {
			return db.RemoveMember(t.Context(), team, user, func(access.Role) error { return nil })
		},
		"disabled": func(t *testing.T, db *DB, _ ids.Team, user ids.User) error {
			return db.SuspendPerson(t.Context(), user, august)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachLedger(t, func(t *testing.T, db *DB) {
				ctx := t.Context()
				ada := signedUp(t, db, "ada@example.org")
				bob := memberOf(t, db, ada.Team.ID, access.Admin, "bob@example.org")
				must(t, db.SetChoices(ctx, bob.ID, []notifications.Choice{{Topic: notifications.AllRuns, App: true, Mail: true}, {Topic: notifications.Budgets, App: true, Mail: true}}))
				failedRun(t, db, ada.Team.ID, ada.ID) // of which no mail has gone yet
				must(t, out(t, db, ada.Team.ID, bob.ID))
				failedRun(t, db, ada.Team.ID, ada.ID)
				setBudgets(t, db, ada.Team.ID, august, billing.Budget{Scope: billing.TeamBudget, Limit: credits.Credit, AlertAt: []int{50}})
				must(t, db.Hold(ctx, ada.Team.ID, "hold", credits.Credit, august))
				for {
					more, err := db.SendMail(ctx, august, august, august, summary)
					must(t, err)
					if !more {
						break
					}
				}
				for _, to := range sent(t, db) {
					if to[:3] == "bob" {
						t.Errorf("a mail: %s", to)
					}
				}
				var later int
				must(t, db.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM notifications WHERE user_id = $1`, bob.ID).Scan(&later))
				if later != 1 {
					t.Errorf("%d notifications; the one from before is all there should be", later)
				}
			})
		})
	}
}
