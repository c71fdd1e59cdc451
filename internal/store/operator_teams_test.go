package store

import (
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/account"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/operator"
	"github.com/millrace/millrace/internal/runs"
)

// Service accounts are no people: they have no address, and are listed in their team.
func TestTheOperatorCountsPeople(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada := signedUp(t, db, "ada@example.org")
		bob := memberOf(t, db, ada.Team.ID, access.Owner, "bob@example.org")
		robot := builtin.ServiceAccount{ID: ids.NewUser(), Team: ada.Team.ID, Name: "robot", Role: access.Member, MadeBy: "Ada", CreatedAt: august}
		must(t, db.InsertServiceAccount(ctx, robot, 10))
		must(t, db.SuspendPerson(ctx, bob.ID, august))
		list, err := db.PeopleBefore(ctx, "", "", 10)
		if err != nil || len(list) != 2 || list[0].Email != "bob@example.org" || list[1].Email != "ada@example.org" || list[0].SuspendedAt.IsZero() || !list[1].SuspendedAt.IsZero() {
			t.Errorf("%+v, %v", list, err)
		}
		teams, err := db.Teams(ctx)
		if err != nil || len(teams) != 2 || teams[0].Members != 2 || teams[0].Owners != "ada@example.org, bob@example.org" || teams[1].Members != 1 {
			t.Errorf("%+v, %v", teams, err)
		}
		page, err := db.TeamsAfter(ctx, "", 10, august)
		if err != nil || len(page) != 2 || page[0].Members != 2 || page[1].Members != 1 {
			t.Errorf("%+v, %v", page, err)
		}
	})
}

// What the page of the teams says is left is what the team sees itself.
func TestTheOperatorSeesWhatATeamHasLeft(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		september := august.AddDate(0, 1, 0)
		var teams []ids.Team
		add := func(plan string, waits bool) ids.Team {
			t.Helper()
			a := builtin.NewAccount{
				Account: builtin.Account{User: identity.User{ID: ids.NewUser(), Email: string(ids.NewUser()) + "@example.org"}}, WaitVerified: waits,
				Team: identity.Team{ID: ids.NewTeam(), Plan: plan}, CreatedAt: august,
			}
			must(t, db.SignUp(ctx, a))
			teams = append(teams, a.Team.ID)
			return a.Team.ID
		}
		add("free", false)
		add("pro", false)
		add("free", true) // has nothing until its owner has confirmed their address
		add("pro", true)  // what is paid for is not withheld
		add("of an earlier catalog", false)
		spent := add("free", false)
		must(t, db.Hold(ctx, spent, "hold", 7*credits.Credit, august))
		must(t, db.GrantTo(ctx, operator.Grant{Team: spent, Credits: 3 * credits.Credit, Reason: "thanks"}, august))
		for _, now := range []time.Time{august, september} { // before anybody has asked for the balance, and a month later
			page, err := db.TeamsAfter(ctx, "", 10, now)
			if err != nil || len(page) != len(teams) {
				t.Fatalf("%+v, %v", page, err)
			}
			for i, team := range teams {
				b, err := db.Balance(ctx, team, now)
				if err != nil || page[i].ID != team || page[i].Left != b.Credits.Left()-b.Held || page[i].Spent != b.Spent {
					t.Errorf("in %s team %d has %s left and has spent %s; its own page says %s and %s, %v", now.Month(), i, page[i].Left, page[i].Spent, b.Credits.Left()-b.Held, b.Spent, err)
				}
			}
		}
		page, err := db.TeamsAfter(ctx, teams[1], 2, august)
		if err != nil || len(page) != 2 || page[0].ID != teams[2] {
			t.Errorf("the next page: %+v, %v", page, err)
		}
	})
}

// What an operator does to a team that is not there, or is being erased, is refused.
func TestTheOperatorActsOnTeamsThatAreThere(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		closed, _ := newTeam(t, db)
		must(t, db.CloseTeam(ctx, closed, account.Lifetimes{}, august))
		for _, team := range []ids.Team{closed, "team_nobody"} {
			for what, err := range map[string]error{
				"grant":   db.GrantTo(ctx, operator.Grant{Team: team, Credits: credits.Credit, Reason: "x"}, august),
				"plan":    db.PutOnPlan(ctx, team, credits.Pro, august),
				"suspend": db.SuspendTeam(ctx, team, true, august),
			} {
				refused(t, what+" of "+string(team), err, fault.KindNotFound, "")
			}
		}
		team, _ := newTeam(t, db)
		must(t, db.SuspendTeam(ctx, team, true, august))
		refused(t, "a run of a suspended team", db.SubmitRun(ctx, newRun(team), 0, nil), fault.KindForbidden, "team_suspended")
		must(t, db.SuspendTeam(ctx, team, false, august))
		must(t, db.SubmitRun(ctx, newRun(team), 0, nil))
		refused(t, "draining a worker that is not there", db.DrainWorker(ctx, "nobody", true), fault.KindNotFound, "")
		if teams, err := db.TeamsAfter(ctx, "", 10, august); err != nil || slices.ContainsFunc(teams, func(o operator.Team) bool { return o.ID == closed }) {
			t.Errorf("one that is being erased is listed: %+v, %v", teams, err)
		}
	})
}

func TestTheOperatorEndsARunOfAnyTeam(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		running := started(t, db, team, `{}`)
		queued := submit(t, db, team)
		if status, err := db.CancelAnyRun(ctx, queued.ID, august); err != nil || status != lifecycle.Cancelled {
			t.Errorf("%s, %v", status, err)
		}
		_, err := db.CancelAnyRun(ctx, queued.ID, august)
		refused(t, "once more", err, fault.KindConflict, "")
		_, err = db.CancelAnyRun(ctx, "run_nothing", august)
		refused(t, "one that is not there", err, fault.KindNotFound, "")
		open, err := db.OpenRun(ctx, running.ID)
		if err != nil || open.Worker != "w1" || open.Team != team {
			t.Errorf("%+v, %v", open, err)
		}
		// Taken from its worker, and put back: what the worker says no longer counts.
		task := runs.Attempt{Node: "a", Number: 1, Fence: "1-task", Host: "here", State: runs.AttemptStarted, StartedAt: august}
		must(t, db.Advance(ctx, running.ID, running.Fence, runs.Step{Attempts: []runs.Attempt{task}}, august))
		fence, err := db.SeizeRun(ctx, running.ID, "operator", august, august.Add(time.Minute))
		must(t, err)
		if wanted, err := db.LiveFences(ctx, "here"); err != nil || len(wanted) != 0 {
			t.Errorf("its tasks are wanted: %v, %v", wanted, err)
		}
		if fences, err := db.RunFences(ctx, []ids.Run{running.ID, "run_nothing"}); err != nil || len(fences) != 1 || fences[running.ID] != fence {
			t.Errorf("its fence is %d: %v, %v", fence, fences, err)
		}
		if err := db.Advance(ctx, running.ID, running.Fence, runs.Step{}, august); err == nil {
			t.Error("its worker goes on")
		}
		must(t, db.ReturnRun(ctx, running.ID, fence, august))
		if err := db.ReturnRun(ctx, running.ID, fence, august); err == nil {
			t.Error("it is put back twice")
		}
		if r, err := db.Run(ctx, team, running.ID); err != nil || r.Status != lifecycle.Queued || r.Losses != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		_, err = db.SeizeRun(ctx, running.ID, "operator", august, august.Add(time.Minute))
		refused(t, "seizing one that is queued", err, fault.KindNotFound, "")
		w := newWatched(t, db)
		id := w.begin(t)
		_, err = db.CancelAnyRun(ctx, id, august)
		refused(t, "one that is carried out elsewhere", err, fault.KindConflict, "")
		if list, oldest, err := db.RunQueues(ctx); err != nil || len(list) != 1 || list[0] != (RunQueue{Team: team, Queued: 1}) || !oldest.Equal(august) {
			t.Errorf("%+v, %v, %v", list, oldest, err)
		}
	})
}
