package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/account"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/mails"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/schedules"
	"github.com/millrace/millrace/internal/workflows"
)

// hourly is a schedule of somebody that is due at a time.
func hourly(t *testing.T, db *DB, w workflows.Workflow, by ids.User, due time.Time) schedules.Schedule {
	t.Helper()
	s := schedules.Schedule{
		ID: ids.NewSchedule(), Team: w.Team, Workflow: w.ID, Cron: "0 * * * *", TimeZone: "UTC", Overlap: schedules.Queue, NextAt: due,
		CreatedBy: by, CreatedAt: august, UpdatedAt: august,
	}
	must(t, db.InsertSchedule(t.Context(), s, 10))
	return s
}

// fire starts the run of a due time, as a server does that has found it.
func fire(t *testing.T, db *DB, s schedules.Schedule, due time.Time, waited bool) (runs.Run, error) {
	t.Helper()
	r := newRun(s.Team)
	r.Workflow, r.For, r.Starter = s.Workflow, s.CreatedBy, runs.Starter{Type: runs.BySchedule, ID: string(s.ID)}
	r.Firing = &runs.Firing{Schedule: s.ID, Due: due, Next: due.Add(time.Hour), Waited: waited, Times: 1}
	return r, db.SubmitRun(t.Context(), r, 0, nil)
}

// outcomes are what became of a schedule's times, the newest first.
func outcomes(t *testing.T, db *DB, s schedules.Schedule) (text string) {
	t.Helper()
	got, err := db.Schedule(t.Context(), s.Team, s.Workflow, s.ID)
	must(t, err)
	for _, f := range got.Firings {
		text += fmt.Sprintf("%d:%s ", f.Due.Hour(), f.Outcome)
	}
	return text
}

func TestADueTimeIsTakenByOneServer(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada := signedUp(t, db, "ada@example.org")
		w := newWorkflow(t, db, ada.Team.ID, ada.ID)
		s := hourly(t, db, w, ada.ID, august)
		if next, err := db.NextDue(ctx, august.Add(-time.Hour)); err != nil || !next.Equal(august) {
			t.Errorf("%v, %v", next, err)
		}
		for now, want := range map[time.Time]int{august.Add(-time.Microsecond): 0, august: 1} {
			if due, err := db.DueSchedules(ctx, now, 10, 10); err != nil || len(due) != want {
				t.Errorf("at %v %d are due, %v", now, len(due), err)
			}
		}
		var taken int
		done, errs := atOnce(5, func(int) error {
			_, err := fire(t, db, s, august, false)
			return err
		})
		for _, err := range errs {
			if errors.Is(err, runs.ErrTaken) {
				taken++
			}
		}
		if done != 1 || taken != 4 {
			t.Errorf("%d started, %d came second: %v", done, taken, errs)
		}
		list, err := db.Runs(ctx, s.Team, runs.Filter{}, "", 10)
		if err != nil || len(list) != 1 {
			t.Fatalf("%d runs, %v", len(list), err)
		}
		// The next time waits for that run, the one after it for both.
		later := august.Add(time.Hour)
		if _, err := fire(t, db, s, later, false); !errors.Is(err, runs.ErrOverlap) {
			t.Error(err)
		}
		wait := func(due time.Time, most int) {
			t.Helper()
			must(t, db.NoteFiring(ctx, runs.Firing{Schedule: s.ID, Due: due, Next: due.Add(time.Hour), Times: 1}, schedules.Waiting, "an earlier run", most, due))
		}
		wait(later, 2)
		wait(later, 2) // another server, which came second
		wait(later.Add(time.Hour), 2)
		wait(later.Add(2*time.Hour), 2) // too many
		if got := outcomes(t, db, s); got != "15:skipped 14:waiting 13:waiting 12:started " {
			t.Error(got)
		}
		if due, err := db.WaitingSchedules(ctx, august, 10, 10); err != nil || len(due) != 0 {
			t.Errorf("while the run goes on: %+v, %v", due, err)
		}
		if _, err := db.CancelRun(ctx, s.Team, list[0].ID, runs.Starter{Name: "Ada"}, august); err != nil {
			t.Fatal(err)
		}
		due, err := db.WaitingSchedules(ctx, august, 10, 10)
		if err != nil || len(due) != 1 || !due[0].Firings[0].Due.Equal(later) {
			t.Fatalf("%+v, %v", due, err)
		}
		if _, err := fire(t, db, s, later.Add(time.Hour), true); !errors.Is(err, runs.ErrOverlap) {
			t.Errorf("one overtakes another that waits longer: %v", err)
		}
		if _, err := fire(t, db, s, later, true); err != nil {
			t.Error(err)
		}
		if _, err := fire(t, db, s, later, true); !errors.Is(err, runs.ErrTaken) {
			t.Errorf("twice: %v", err)
		}
		if got := outcomes(t, db, s); got != "15:skipped 14:waiting 13:started 12:started " {
			t.Error(got)
		}
	})
}

// Whoever may not start runs any more starts none by a schedule, in whatever way
// they lost that.
func TestAScheduleStartsRunsForWhoMay(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada := signedUp(t, db, "ada@example.org")
		w := newWorkflow(t, db, ada.Team.ID, ada.ID)
		anything := func(access.Role) error { return nil }
		for i, out := range []struct {
			paused bool // at once
			do     func(b builtin.NewAccount) error
		}{
			{true, func(b builtin.NewAccount) error { return db.RemoveMember(ctx, w.Team, b.ID, anything) }},
			{true, func(b builtin.NewAccount) error {
				return second(db.ChangeRole(ctx, w.Team, b.ID, access.Viewer, anything))
			}},
			{true, func(b builtin.NewAccount) error { return db.SuspendPerson(ctx, b.ID, august) }},
		} {
			bob := memberOf(t, db, w.Team, access.Member, fmt.Sprint(i, "@example.org"))
			s := hourly(t, db, w, bob.ID, august)
			must(t, db.NoteFiring(ctx, runs.Firing{Schedule: s.ID, Due: august, Next: august.Add(time.Hour), Times: 1}, schedules.Waiting, "", 10, august))
			must(t, out.do(bob))
			got, err := db.Schedule(ctx, w.Team, w.ID, s.ID)
			if err != nil || got.Enabled() == out.paused || out.paused && (got.Paused == nil || got.Paused.Code != runs.MakerGone || outcomes(t, db, s) != "12:skipped ") {
				t.Errorf("%d: %+v, %v", i, got, err)
			}
			for _, waited := range []bool{true, false} {
				_, err := fire(t, db, s, august.Add(time.Hour), waited)
				refused(t, fmt.Sprint(i), err, fault.KindForbidden, runs.MakerGone)
			}
			must(t, db.DeleteSchedule(ctx, w.Team, w.ID, s.ID))
		}
		if list, err := db.Runs(ctx, w.Team, runs.Filter{}, "", 10); err != nil || len(list) != 0 {
			t.Errorf("%d runs, %v", len(list), err)
		}
	})
}

func TestAScheduleIsSavedAsItWasRead(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada := signedUp(t, db, "ada@example.org")
		other, _ := newTeam(t, db)
		w := newWorkflow(t, db, ada.Team.ID, ada.ID)
		s := hourly(t, db, w, ada.ID, august)
		save := func(change func(*schedules.Schedule)) (bool, error) {
			after := s
			after.UpdatedAt = after.UpdatedAt.Add(time.Minute)
			change(&after)
			return db.SaveSchedule(ctx, after, s)
		}
		if saved, err := save(func(a *schedules.Schedule) { a.Team = other }); err != nil || saved {
			t.Errorf("by another team: %v, %v", saved, err)
		}
		done, _ := atOnce(4, func(i int) error {
			saved, err := save(func(a *schedules.Schedule) { a.Cron = fmt.Sprint(i, " * * * *") })
			if err == nil && !saved {
				err = errors.New("somebody was faster")
			}
			return err
		})
		if done != 1 {
			t.Errorf("%d saved", done)
		}
		s, err := db.Schedule(ctx, w.Team, w.ID, s.ID)
		must(t, err)
		must(t, db.NoteFiring(ctx, runs.Firing{Schedule: s.ID, Due: august, Next: august.Add(time.Hour), Times: 1}, schedules.Waiting, "", 10, august))
		if saved, err := save(func(*schedules.Schedule) {}); err != nil || saved {
			t.Errorf("while it fired: %v, %v", saved, err)
		}
		if s, err = db.Schedule(ctx, w.Team, w.ID, s.ID); err != nil {
			t.Fatal(err)
		}
		if saved, err := save(func(a *schedules.Schedule) { a.NextAt = time.Time{} }); err != nil || !saved || outcomes(t, db, s) != "12:skipped " {
			t.Errorf("switched off: %v, %v, %s", saved, err, outcomes(t, db, s))
		}
		if due, err := db.DueSchedules(ctx, august.AddDate(1, 0, 0), 10, 10); err != nil || len(due) != 0 {
			t.Errorf("%+v, %v", due, err)
		}
		for what, err := range map[string]error{
			"another team's":     second(db.Schedule(ctx, other, w.ID, s.ID)),
			"another workflow's": second(db.Schedule(ctx, w.Team, "wf_other", s.ID)),
			"deleting another's": db.DeleteSchedule(ctx, other, w.ID, s.ID),
		} {
			refused(t, what, err, fault.KindNotFound, "")
		}
	})
}

// What cannot start pauses the schedule, once, and its maker hears of it.
func TestAScheduleThatCannotStartIsPaused(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada := signedUp(t, db, "ada@example.org")
		w := newWorkflow(t, db, ada.Team.ID, ada.ID)
		s := hourly(t, db, w, ada.ID, august)
		f := runs.Firing{Schedule: s.ID, Due: august, Next: august.Add(time.Hour), Times: 1}
		_, errs := atOnce(4, func(i int) error {
			return db.PauseSchedule(ctx, s, f, schedules.Pause{At: august, Code: "invalid", Message: "no such input"}, mails.Message{ID: fmt.Sprint("m", i), Subject: "paused"})
		})
		for _, err := range errs {
			must(t, err)
		}
		got, err := db.Schedule(ctx, w.Team, w.ID, s.ID)
		if err != nil || got.Enabled() || got.Paused == nil || got.Paused.Message != "no such input" || outcomes(t, db, s) != "12:refused " {
			t.Errorf("%+v, %v", got, err)
		}
		if to := sent(t, db); len(to) != 1 || to[0] != "ada@example.org paused" {
			t.Errorf("%q", to)
		}
		if all, _ := inbox(t, db, w.Team, ada.ID); all != 1 {
			t.Errorf("%d notifications", all)
		}
	})
}

func TestAWorkflowHasSoManySchedulesAndTriggers(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada := signedUp(t, db, "ada@example.org")
		other, stranger := newTeam(t, db)
		w, theirs := newWorkflow(t, db, ada.Team.ID, ada.ID), newWorkflow(t, db, other, stranger)
		schedule := func(team ids.Team, workflow ids.Workflow) error {
			return db.InsertSchedule(ctx, schedules.Schedule{ID: ids.NewSchedule(), Team: team, Workflow: workflow, Cron: "0 * * * *", TimeZone: "UTC", CreatedBy: ada.ID, CreatedAt: august, UpdatedAt: august}, 2)
		}
		trigger := func(team ids.Team, workflow ids.Workflow) error {
			id := ids.NewTrigger()
			return db.InsertTrigger(ctx, schedules.Trigger{ID: id, Team: team, Workflow: workflow, TokenHash: "token of " + string(id), Secret: "signs", Action: schedules.ActionRun, Map: map[string]string{"a": "/b"}, CreatedBy: ada.ID, CreatedAt: august}, 2, nil)
		}
		for what, add := range map[string]func(ids.Team, ids.Workflow) error{"schedules": schedule, "triggers": trigger} {
			if done, errs := atOnce(5, func(int) error { return add(w.Team, w.ID) }); done != 2 {
				t.Errorf("%d %s: %v", done, what, errs)
			}
			refused(t, what, add(w.Team, w.ID), fault.KindConflict, "too_many_"+what)
			refused(t, what+" of another team's workflow", add(w.Team, theirs.ID), fault.KindNotFound, "")
		}
		list, err := db.Triggers(ctx, w.Team, w.ID)
		if err != nil || len(list) != 2 || list[0].Map["a"] != "/b" || list[0].Secret != "" {
			t.Fatalf("%+v, %v", list, err)
		}
		one := list[0]
		if got, err := db.TriggerByHash(ctx, one.TokenHash); err != nil || got.ID != one.ID || got.Secret != "signs" {
			t.Errorf("%+v, %v", got, err)
		}
		r := newRun(w.Team)
		r.Workflow, r.For, r.Trigger, r.Starter = w.ID, ada.ID, one.ID, runs.Starter{Type: runs.ByTrigger, ID: string(one.ID)}
		must(t, db.SubmitRun(ctx, r, 0, nil))
		if got, err := db.Trigger(ctx, w.Team, w.ID, one.ID); err != nil || got.LastRun != r.ID || !got.LastUsedAt.Equal(august) {
			t.Errorf("%+v, %v", got, err)
		}
		if page, err := db.TriggersOfTeam(ctx, w.Team, one.ID, 10); err != nil || len(page) != 1 || page[0].ID != list[1].ID {
			t.Errorf("%+v, %v", page, err)
		}
		if page, err := db.SchedulesOfTeam(ctx, other, "", 10); err != nil || len(page) != 0 {
			t.Errorf("%+v, %v", page, err)
		}
		refused(t, "another team", db.DeleteTrigger(ctx, other, w.ID, one.ID), fault.KindNotFound, "")
		must(t, db.DeleteTrigger(ctx, w.Team, w.ID, one.ID))
		refused(t, "one that is gone", second(db.TriggerByHash(ctx, one.TokenHash)), fault.KindNotFound, "")
		r.ID = ids.NewRun()
		refused(t, "a run of one that is gone", db.SubmitRun(ctx, r, 0, nil), fault.KindNotFound, "")
		refused(t, "its row", second(db.LeanRun(ctx, w.Team, r.ID)), fault.KindNotFound, "")
		must(t, db.CloseTeam(ctx, w.Team, account.Lifetimes{}, august))
		refused(t, "of a team that is being erased", schedule(w.Team, w.ID), fault.KindForbidden, "not_a_member")
	})
}
