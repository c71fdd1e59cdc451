package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/retention"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/schedules"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/workflows"
)

// definitionsIn adds up what a team's definitions take, row by row.
func definitionsIn(t *testing.T, db *DB, team ids.Team) (size int64) {
	t.Helper()
	for _, query := range []string{
		`SELECT description FROM workflows WHERE team_id = $1`,
		`SELECT definition FROM workflow_revisions WHERE ` + ofWorkflow,
		`SELECT problems FROM workflow_revisions WHERE ` + ofWorkflow,
		`SELECT data FROM document_snapshots WHERE ` + ofWorkflow,
		`SELECT data FROM document_updates WHERE ` + ofWorkflow,
		`SELECT definition FROM runs WHERE team_id = $1`,
		`SELECT parameters FROM runs WHERE team_id = $1 AND kind <> 'reported'`,
		`SELECT inputs FROM runs WHERE team_id = $1`,
		`SELECT edges FROM reported_runs WHERE team_id = $1`,
		`SELECT given FROM schedules WHERE team_id = $1`,
		`SELECT given FROM triggers WHERE team_id = $1`,
		`SELECT mapped FROM triggers WHERE team_id = $1`,
		`SELECT sealed FROM answers WHERE team_id = $1`,
		`SELECT key FROM workflow_inputs WHERE team_id = $1`,
	} {
		rows, err := db.q.QueryContext(t.Context(), query, team)
		must(t, err)
		for rows.Next() {
			var text []byte
			must(t, rows.Scan(&text))
			size += int64(len(text))
		}
		must(t, rows.Close())
	}
	var texts, rows int64
	must(t, db.q.QueryRowContext(t.Context(), `SELECT COALESCE(CAST(SUM(text_bytes) AS BIGINT), 0) FROM reported_runs WHERE team_id = $1`, team).Scan(&texts))
	must(t, db.q.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM files WHERE team_id = $1`, team).Scan(&rows))
	return size + texts + fileRow*rows
}

func counted(t *testing.T, db *DB, team ids.Team) (size int64) {
	t.Helper()
	must(t, db.q.QueryRowContext(t.Context(), `SELECT COALESCE(MAX(definitions), 0) FROM storage WHERE team_id = $1`, team).Scan(&size))
	return size
}

// savedDefinition is a stored workflow.
type savedDefinition struct {
	team ids.Team
	id   ids.Workflow
}

// save changes it, and its definition if a revision is named.
func (d savedDefinition) save(t *testing.T, db *DB, edit func(w *workflows.Workflow), number int) {
	t.Helper()
	w, err := db.Workflow(t.Context(), d.team, d.id)
	must(t, err)
	edit(&w)
	var rev *workflows.Revision
	if number > 0 {
		w.Revision = number
		rev = &workflows.Revision{Number: number, CreatedBy: w.CreatedBy, CreatedAt: august, UpdatedAt: august}
	}
	saved, err := db.SaveWorkflow(t.Context(), w, rev)
	must(t, err)
	if !saved {
		t.Error("it was not saved")
	}
}

// Whatever is done with workflows, documents, runs and answers, the count is what they take.
func TestDefinitionsAreCounted(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		var w workflows.Workflow
		var run runs.Run
		d := func() savedDefinition { return savedDefinition{team, w.ID} }
		at := func(key string) *access.IdempotencyRecord {
			return &access.IdempotencyRecord{IdempotencyKey: access.IdempotencyKey{Scope: "s", Team: team, Key: key}, Status: 201, Answer: []byte("an answer äö")}
		}
		update := func(data string) error {
			_, err := db.AppendUpdate(ctx, w.ID, 1, sharing.Update{Data: []byte(data)}, august)
			return err
		}
		var schedule schedules.Schedule
		give := func(parameters string) error {
			after := schedule
			after.Given.Parameters = []byte(parameters)
			saved, err := db.SaveSchedule(ctx, after, schedule)
			if err == nil && !saved {
				t.Error("the schedule was not saved")
			}
			return err
		}
		triggerOf := func(id ids.Trigger) schedules.Trigger {
			return schedules.Trigger{ID: id, Team: team, Workflow: w.ID, TokenHash: string(id), Action: schedules.ActionRun, Map: map[string]string{"ö": "/b"}, CreatedBy: owner, CreatedAt: august}
		}
		last := int64(0)
		for _, step := range []struct {
			name string
			do   func() error
			more int // than before: 1, or less: -1
		}{
			{"a workflow", func() error { w = newWorkflow(t, db, team, owner); return nil }, 1},
			{"a description", func() error {
				d().save(t, db, func(w *workflows.Workflow) { w.Description = "läng" }, 0)
				return nil
			}, 1},
			{"a longer definition", func() error {
				d().save(t, db, func(w *workflows.Workflow) {
					w.Definition = []byte(`{"version":1,"x-ä":"` + strings.Repeat("ö", 500) + `"}`)
				}, 1)
				return nil
			}, 1},
			{"a shorter one", func() error {
				d().save(t, db, func(w *workflows.Workflow) { w.Definition = []byte(`{"x":1}`) }, 1)
				return nil
			}, -1},
			{"another revision", func() error {
				d().save(t, db, func(w *workflows.Workflow) { w.Problems = []fault.Detail{{Path: "p", Message: "m"}} }, 2)
				return nil
			}, 1},
			{"a third", func() error { d().save(t, db, func(*workflows.Workflow) {}, 3); return nil }, 1},
			{"a document", func() error { return db.SeedDocument(ctx, team, w.ID, 6, []byte("seed"), august) }, 1},
			{"updates", func() error {
				must(t, update("one"))
				return update(strings.Repeat("x", 1000))
			}, 1},
			{"a snapshot of them", func() error { return db.SaveSnapshot(ctx, w.ID, 1, 3, []byte("a snapshot")) }, -1},
			{"another update", func() error { return update("more") }, 1},
			{"what it comes to", func() error {
				w, err := db.Workflow(ctx, team, w.ID)
				must(t, err)
				w.SyncedSeq, w.Definition = 4, append(w.Definition, "    "...)
				_, err = db.SaveSynced(ctx, w, &workflows.Revision{Number: 3, CreatedBy: owner, CreatedAt: august, UpdatedAt: august})
				return err
			}, 1},
			{"a fresh start", func() error {
				return db.ResetDocument(ctx, w.ID, sharing.Head{Epoch: 1, Seq: 4, Synced: 4}, []byte("s"), august)
			}, -1},
			{"a run", func() error {
				run = newRun(team)
				run.Workflow, run.Inputs = w.ID, []byte(`{"in":["teams/t/uploads/1/ä"]}`)
				return db.SubmitRun(ctx, run, 60*run.Price, at("run"))
			}, 1},
			{"the same key the next day", func() error {
				r := newRun(team)
				r.CreatedAt = august.Add(25 * time.Hour)
				return db.SubmitRun(ctx, r, 60*r.Price, at("run"))
			}, 1},
			{"without old answers", func() error { return second(db.DeleteExpired(ctx, august.Add(72*time.Hour))) }, -1},
			{"without the run", func() error {
				must(t, second(db.CancelRun(ctx, team, run.ID, runs.Starter{}, august)))
				return second(db.DeleteRun(ctx, team, run.ID, august))
			}, -1},
			{"without the oldest revisions", func() error {
				for more := true; more; {
					var err error
					_, more, err = db.Expire(ctx, 0, retention.Revisions, team, august.Add(time.Hour), august)
					must(t, err)
				}
				return nil
			}, -1},
			{"a schedule", func() error {
				schedule = schedules.Schedule{ID: ids.NewSchedule(), Team: team, Workflow: w.ID, Cron: "0 * * * *", TimeZone: "UTC", CreatedBy: owner, CreatedAt: august, UpdatedAt: august, NextAt: august}
				return db.InsertSchedule(ctx, schedule, 2)
			}, 1},
			{"more for its runs", func() error { return give(`{"a":"` + strings.Repeat("ä", 1000) + `"}`) }, 1},
			{"less for them", func() error { return give(`{}`) }, -1},
			{"another schedule", func() error {
				other := schedule
				other.ID = ids.NewSchedule()
				return db.InsertSchedule(ctx, other, 2)
			}, 1},
			{"without it", func() error { return db.DeleteSchedule(ctx, team, w.ID, schedule.ID) }, -1},
			{"a trigger", func() error { return db.InsertTrigger(ctx, triggerOf("one"), 2, nil) }, 1},
			{"another trigger", func() error { return db.InsertTrigger(ctx, triggerOf("two"), 2, nil) }, 1},
			{"without one of them", func() error { return db.DeleteTrigger(ctx, team, w.ID, "one") }, -1},
			{"without the workflow", func() error { return db.DeleteWorkflow(ctx, team, w.ID, "Ada", august) }, -1},
		} {
			must(t, step.do())
			got := counted(t, db, team)
			if want := definitionsIn(t, db, team); got != want || step.more*int(got-last) <= 0 {
				t.Errorf("%s: %d bytes are counted after %d, and there are %d", step.name, got, last, want)
			}
			last = got
		}
	})
}

// What schedules and triggers are given needs room, as definitions do.
func TestSchedulesNeedRoom(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		w := newWorkflow(t, db, team, owner)
		must(t, second(db.changed(ctx, `UPDATE storage SET bytes = $1, definitions = $2 WHERE team_id = $3`, int64(1)<<50, credits.DefinitionAllowance, team)))
		s := schedules.Schedule{ID: ids.NewSchedule(), Team: team, Workflow: w.ID, Cron: "0 * * * *", TimeZone: "UTC", CreatedBy: owner, CreatedAt: august, UpdatedAt: august}
		if err := db.InsertSchedule(ctx, s, 2); !fault.Is(err, fault.KindPayment) {
			t.Errorf("a schedule: %v", err)
		}
		tr := schedules.Trigger{ID: ids.NewTrigger(), Team: team, Workflow: w.ID, TokenHash: "h", Action: schedules.ActionRun, CreatedBy: owner, CreatedAt: august}
		if err := db.InsertTrigger(ctx, tr, 2, nil); !fault.Is(err, fault.KindPayment) {
			t.Errorf("a trigger: %v", err)
		}
		if list, err := db.Schedules(ctx, team, w.ID); err != nil || len(list) > 0 {
			t.Errorf("%v, %v", list, err)
		}
	})
}

// What definitions take beyond the allowance counts as storage, and needs room there.
func TestDefinitionsBeyondTheAllowanceAreStorage(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		w := newWorkflow(t, db, team, owner)
		must(t, db.SeedDocument(ctx, team, w.ID, 1, []byte("seed"), august))
		set := func(files, definitions int64) {
			t.Helper()
			must(t, second(db.changed(ctx, `UPDATE storage SET bytes = $1, definitions = $2 WHERE team_id = $3`, files, definitions, team)))
		}
		used := func() int64 {
			t.Helper()
			b, err := db.Balance(ctx, team, august)
			must(t, err)
			return b.Stored
		}
		write := map[string]func() error{
			"a workflow": func() error {
				other := w
				other.ID = ids.NewWorkflow()
				return db.InsertWorkflow(ctx, other, workflows.Revision{Number: 1, CreatedBy: owner, CreatedAt: august, UpdatedAt: august}, nil)
			},
			"a longer definition": func() error {
				longer, err := db.Workflow(ctx, team, w.ID)
				must(t, err)
				longer.Definition = append(longer.Definition, " "...)
				return second(db.SaveWorkflow(ctx, longer, &workflows.Revision{Number: 1, CreatedBy: owner, CreatedAt: august, UpdatedAt: august}))
			},
			"an edit": func() error {
				return second(db.AppendUpdate(ctx, w.ID, 1, sharing.Update{Data: []byte("x")}, august))
			},
			"a run": func() error { r := newRun(team); return db.SubmitRun(ctx, r, 60*r.Price, nil) },
		}
		full := 5 * credits.GB
		for name, do := range write {
			set(full, credits.DefinitionAllowance/2) // the allowance is free of files
			must(t, do())
			set(full-10_000, credits.DefinitionAllowance)
			must(t, do())
			set(full-10_000, credits.DefinitionAllowance+10_000)
			refused(t, name, do(), fault.KindPayment, "storage_limit")
			if got := counted(t, db, team); got != credits.DefinitionAllowance+10_000 || used() != full {
				t.Errorf("%s: %d bytes are counted, %d used", name, got, used())
			}
		}
		left, err := db.StorageLeft(ctx, team)
		if err != nil || left != 0 {
			t.Errorf("%d left, %v", left, err)
		}
		if fits, err := db.addStorage(ctx, team, 1, full); fits || err != nil {
			t.Errorf("a file fits: %v, %v", fits, err)
		}
		shorter := savedDefinition{team, w.ID}
		shorter.save(t, db, func(w *workflows.Workflow) { w.Definition = []byte(`{}`) }, 1)
		must(t, db.SaveSnapshot(ctx, w.ID, 1, 3, []byte("s")))
		must(t, second(db.changed(ctx, `UPDATE teams SET plan = 'pro' WHERE id = $1`, team)))
		for _, do := range write {
			must(t, do())
		}
	})
}

// An empty file has rows in the database, as any has.
func TestEmptyFilesCount(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		r := newRun(team)
		must(t, db.SubmitRun(ctx, r, 60*r.Price, nil))
		before := counted(t, db, team)
		want := func(when string, files int64) {
			t.Helper()
			if got := counted(t, db, team) - before; got != files*fileRow {
				t.Errorf("%s: %d bytes are counted, want %d", when, got, files*fileRow)
			}
		}
		uploaded(t, db, team, owner, "empty", 0)
		want("after an upload", 1)
		must(t, db.inTx(ctx, func(tx *DB) error {
			return tx.insertOutputs(ctx, r, runs.Step{Outputs: []runs.Output{{Key: "a", Name: "a", Blob: "a"}, {Key: "b", Name: "b", Blob: "b"}}}, august)
		}))
		want("after two outputs", 3)
		must(t, second(db.DeleteFile(ctx, team, "empty")))
		want("without the upload", 2)
		must(t, db.inTx(ctx, func(tx *DB) error {
			return second((&expiring{DB: tx, team: team, left: 10}).outputs(ctx, r.ID))
		}))
		want("without the outputs", 0)

		full := files.Reservation{Key: "more", Team: team, ID: "more", Name: "more", CreatedBy: owner, CreatedAt: august, ExpiresAt: august}
		must(t, second(db.changed(ctx, `UPDATE storage SET definitions = $1 WHERE team_id = $2`, credits.DefinitionAllowance+101, team)))
		refused(t, "an empty file of a team whose storage is full of them", db.Reserve(ctx, full, 100), fault.KindPayment, "storage_limit")
	})
}

func TestATeamHasAtMostTenThousandWorkflows(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team, owner := newTeam(t, db)
		other, _ := newTeam(t, db)
		w := newWorkflow(t, db, team, owner)
		must(t, second(db.changed(t.Context(), `
			WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $2 - 3)
			INSERT INTO workflows (id, team_id, name, description, revision, node_count, created_by, created_at, updated_at, version, tags, kind, folder)
			SELECT 'wf_' || i, $1, 'w', '', 1, 0, created_by, 1, 1, 1, '[]', '', '' FROM n JOIN workflows ON id = $3`, team, workflows.MaxPerTeam, w.ID)))
		add := func(team ids.Team) error {
			next := w
			next.ID, next.Team = ids.NewWorkflow(), team
			return db.InsertWorkflow(t.Context(), next, workflows.Revision{Number: 1, CreatedBy: owner, CreatedAt: august, UpdatedAt: august}, nil)
		}
		_, errs := atOnce(5, func(int) error { return add(team) })
		added := 0
		for _, err := range errs {
			if err == nil {
				added++
			} else {
				refused(t, "one too many", err, fault.KindConflict, "too_many_workflows")
			}
		}
		if added != 2 {
			t.Errorf("%d workflows were added to %d", added, workflows.MaxPerTeam-2)
		}
		must(t, add(other))
		must(t, db.DeleteWorkflow(t.Context(), team, w.ID, "Ada", august))
		must(t, add(team))
		if got, want := counted(t, db, team), definitionsIn(t, db, team); got != want {
			t.Errorf("%d bytes are counted, and there are %d", got, want)
		}
	})
}

// An installation of before has what its definitions take counted.
func TestDefinitionsOfBeforeAreCounted(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		none, _ := newTeam(t, db)
		w := newWorkflow(t, db, team, owner)
		must(t, db.SeedDocument(ctx, team, w.ID, 1, []byte("seed ä"), august))
		must(t, second(db.AppendUpdate(ctx, w.ID, 1, sharing.Update{Data: []byte("update")}, august)))
		r := newRun(team)
		must(t, db.SubmitRun(ctx, r, 60*r.Price, nil))
		must(t, second(db.changed(ctx, `DELETE FROM storage WHERE team_id = $1`, none)))
		must(t, second(db.changed(ctx, `UPDATE storage SET definitions = 0`)))
		text, err := os.ReadFile(filepath.Join("migrations", "0068_definitions.sql"))
		must(t, err)
		for _, statement := range strings.Split(string(text), ";\n") {
			if strings.Contains(statement, "INSERT INTO storage") || strings.Contains(statement, "UPDATE storage SET") {
				must(t, second(db.changed(ctx, statement)))
			}
		}
		if got, want := counted(t, db, team), definitionsIn(t, db, team); got != want || want == 0 || counted(t, db, none) != 0 {
			t.Errorf("%d bytes are counted, and there are %d", got, want)
		}
	})
}

// The space of what was deleted goes back to the file system, but for what the next rows
// need.
func TestSQLiteReturnsSpace(t *testing.T) {
	t.Parallel()
	db, ctx := openLedger(t, databases.SQLite(t)), t.Context()
	team, owner := newTeam(t, db)
	pages := func() (n int) {
		t.Helper()
		must(t, db.q.QueryRowContext(ctx, `PRAGMA page_count`).Scan(&n))
		return n
	}
	before := pages()
	var made []workflows.Workflow
	for range 3 {
		w := newWorkflow(t, db, team, owner)
		savedDefinition{team, w.ID}.save(t, db, func(w *workflows.Workflow) { w.Definition = make([]byte, 8<<20) }, 1)
		made = append(made, w)
	}
	full := pages()
	for _, w := range made {
		must(t, db.DeleteWorkflow(ctx, team, w.ID, "Ada", august))
	}
	for more := true; more; {
		r, err := db.ReturnSpace(ctx)
		must(t, err)
		more = r.More
	}
	if after := pages(); full < before+6000 || after > before+2*keptPages {
		t.Errorf("%d pages, then %d, then %d", before, full, after)
	}
}
