package store

import (
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/schedules"
	"github.com/millrace/millrace/internal/workflows"
	"github.com/millrace/millrace/internal/workflows/sourcecheck"
)

// following is a workflow that follows a repository, with a trigger that refreshes it.
func following(t *testing.T, db *DB, by builtin.NewAccount) (workflows.Workflow, schedules.Trigger) {
	t.Helper()
	w := newWorkflow(t, db, by.Team.ID, by.ID)
	w.Git = &workflows.Followed{Source: source.Source{Git: "https://example.org/x.git", Ref: "main"}, Commit: "c1", RefreshedAt: august}
	if saved, err := db.SaveWorkflow(t.Context(), w, nil); err != nil || !saved {
		t.Fatal(saved, err)
	}
	w.Version++
	id := ids.NewTrigger()
	tr := schedules.Trigger{ID: id, Team: w.Team, Workflow: w.ID, TokenHash: string(id), Action: schedules.ActionRefresh, CreatedBy: by.ID, CreatedAt: august}
	must(t, db.InsertTrigger(t.Context(), tr, 5, nil))
	return w, tr
}

func TestARefreshThatWasAskedForIsDoneOnce(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada := signedUp(t, db, "ada@example.org")
		w, tr := following(t, db, ada)
		take := func(now time.Time, busy ...ids.Team) (workflows.DueRefresh, error) {
			return db.TakeDueRefresh(ctx, now, now.Add(time.Hour), busy)
		}
		refused(t, "nobody has asked", second(take(august)), fault.KindNotFound, "")
		for range 3 { // three pushes are one refresh
			must(t, db.AskForRefresh(ctx, tr, nil, august))
		}
		refused(t, "while its team is busy", second(take(august, "team_other", w.Team)), fault.KindNotFound, "")
		if done, errs := atOnce(4, func(int) error { return second(take(august)) }); done != 1 {
			t.Errorf("%d took it: %v", done, errs)
		}
		d, err := take(august.Add(time.Hour)) // whoever took it was killed
		if err != nil || d.Workflow != w.ID || d.Team != w.Team || d.By != ada.ID || d.Role != access.Owner || !d.AskedAt.Equal(august) {
			t.Fatalf("%+v, %v", d, err)
		}
		// Somebody pushes meanwhile: that is done later, not at once.
		must(t, db.AskForRefresh(ctx, tr, nil, august.Add(time.Second)))
		end := august.Add(2 * time.Hour)
		must(t, db.EndRefresh(ctx, d, end))
		refused(t, "at once", second(take(end.Add(workflows.RefreshPause-time.Microsecond))), fault.KindNotFound, "")
		if d, err = take(end.Add(workflows.RefreshPause)); err != nil {
			t.Fatal(err)
		}
		end = end.Add(workflows.RefreshPause)
		must(t, db.EndRefresh(ctx, d, end))
		refused(t, "when all is done", second(take(end.AddDate(1, 0, 0))), fault.KindNotFound, "")
		must(t, db.AskForRefresh(ctx, tr, nil, end.Add(time.Second)))
		refused(t, "soon after the last", second(take(end.Add(2*time.Second))), fault.KindNotFound, "")
		if got, err := db.Trigger(ctx, w.Team, w.ID, tr.ID); err != nil || !got.LastUsedAt.Equal(end.Add(time.Second)) {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestWhatFollowsNothingIsNotRefreshed(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada := signedUp(t, db, "ada@example.org")
		other, _ := newTeam(t, db)
		w, tr := following(t, db, ada)
		if _, readOnly, err := db.Epoch(ctx, w.Team, w.ID); err != nil || !readOnly {
			t.Errorf("%v, %v", readOnly, err)
		}
		must(t, db.SetRefreshProblem(ctx, other, w.ID, "by another team", august))
		must(t, db.SetRefreshProblem(ctx, w.Team, w.ID, "the host is gone", august.Add(time.Minute)))
		if got, err := db.Workflow(ctx, w.Team, w.ID); err != nil || got.Git == nil || got.Git.Problem != "the host is gone" || got.Git.Commit != "c1" || got.Git.Ref != "main" {
			t.Errorf("%+v, %v", got.Git, err)
		}
		stray := w
		stray.Team = other
		refused(t, "by another team", db.StopFollowing(ctx, stray), fault.KindNotFound, "")
		detached := w
		detached.Git, detached.UpdatedAt = nil, august.Add(time.Hour)
		must(t, db.StopFollowing(ctx, detached))
		if got, err := db.Workflow(ctx, w.Team, w.ID); err != nil || got.Git != nil || got.Version != w.Version+1 {
			t.Errorf("%+v, version %d, %v", got.Git, got.Version, err)
		}
		// Whoever was refreshing it then sees that it was saved.
		if saved, err := db.SaveWorkflow(ctx, w, nil); err != nil || saved {
			t.Errorf("%v, %v", saved, err)
		}
		refused(t, "its trigger", db.AskForRefresh(ctx, tr, nil, august), fault.KindConflict, "not_from_git")
		gone := tr
		gone.ID = "trg_gone"
		refused(t, "no trigger", db.AskForRefresh(ctx, gone, nil, august), fault.KindNotFound, "")
		must(t, db.SuspendPerson(ctx, ada.ID, august))
		refused(t, "of somebody who is shut out", db.AskForRefresh(ctx, tr, nil, august), fault.KindForbidden, runs.MakerGone)
	})
}

// Whether there is newer code is asked for once by however many servers, and an
// answer for code that was replaced meanwhile is not kept.
func TestTheHostOfCodeIsAskedOnce(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		other, _ := newTeam(t, db)
		w := newWorkflow(t, db, team, owner)
		refused(t, "without code", second(db.SourceStatus(ctx, team, w.ID)), fault.KindNotFound, "")
		w.Source = &source.Source{Git: "https://example.org/a.git", Ref: "main"}
		change := func() {
			t.Helper()
			w.UpdatedAt = august
			if saved, err := db.SaveWorkflow(ctx, w, &workflows.Revision{Number: 1, CreatedBy: owner, CreatedAt: august, UpdatedAt: august}); err != nil || !saved {
				t.Fatal(saved, err)
			}
			w.Version++
		}
		change()
		took := make([]sourcecheck.Due, 4)
		done, errs := atOnce(4, func(i int) (err error) {
			took[i], err = db.TakeDueSource(ctx, august, august.Add(time.Hour))
			return err
		})
		if done != 1 {
			t.Fatalf("%d took it: %v", done, errs)
		}
		var d sourcecheck.Due
		for _, each := range took {
			if each.Source.Git != "" {
				d = each
			}
		}
		if d.Workflow != w.ID || d.Team != team || d.Source.Git != w.Source.Git {
			t.Fatalf("%+v", d)
		}
		w.Source = &source.Source{Git: "https://example.org/b.git", Ref: "main"}
		change()
		must(t, db.SetSourceStatus(ctx, d, sourcecheck.Status{Latest: "of the old one", Behind: 3}, august))
		if st, err := db.SourceStatus(ctx, team, w.ID); err != nil || st.Latest != "" || st.Behind != -1 {
			t.Errorf("%+v, %v", st, err)
		}
		d, err := db.TakeDueSource(ctx, august.Add(time.Hour), august.Add(2*time.Hour))
		if err != nil || d.Source.Git != w.Source.Git {
			t.Fatalf("%+v, %v", d, err)
		}
		now := august.Add(time.Hour)
		must(t, db.SetSourceStatus(ctx, d, sourcecheck.Status{Latest: "c9", Behind: 0}, now))
		if st, err := db.SourceStatus(ctx, team, w.ID); err != nil || st.Latest != "c9" || !st.ResolvedAt.Equal(now) {
			t.Errorf("%+v, %v", st, err)
		}
		refused(t, "another team", second(db.SourceStatus(ctx, other, w.ID)), fault.KindNotFound, "")
		// Asked again when the last answer is old, and not by another team.
		must(t, db.AskForSource(ctx, team, w.ID, now, now.Add(time.Minute)))
		must(t, db.AskForSource(ctx, other, w.ID, now.Add(time.Hour), now.Add(time.Minute)))
		refused(t, "a fresh answer", second(db.TakeDueSource(ctx, now.AddDate(1, 0, 0), now)), fault.KindNotFound, "")
		must(t, db.AskForSource(ctx, team, w.ID, now.Add(time.Microsecond), now.Add(time.Minute)))
		if _, err := db.TakeDueSource(ctx, now.Add(time.Minute), now.Add(time.Hour)); err != nil {
			t.Error(err)
		}
		w.Source = nil
		change()
		refused(t, "without code again", second(db.SourceStatus(ctx, team, w.ID)), fault.KindNotFound, "")
	})
}
