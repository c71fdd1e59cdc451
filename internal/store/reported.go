package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/reported"
	"github.com/millrace/millrace/internal/workflows"
)

var _ reported.Store = (*DB)(nil)

// BeginReported adds a run that is carried out elsewhere, or finds the one that has
// this key.
func (db *DB) BeginReported(ctx context.Context, team ids.Team, n reported.New, by runs.Starter, now time.Time) (reported.Begun, error) {
	b, err := db.begun(ctx, team, n)
	if !errors.Is(err, sql.ErrNoRows) {
		return b, err
	}
	inTeam(ctx, team)
	err = db.inTx(ctx, func(tx *DB) error {
		if err := tx.lock(ctx, "reported runs of "+string(team)); err != nil {
			return err
		}
		if b, err = tx.begun(ctx, team, n); !errors.Is(err, sql.ErrNoRows) {
			return err // another request was faster
		}
		b, err = tx.insertReported(ctx, team, n, by, now)
		audit.On(ctx, b.Run)
		return err
	})
	return b, err
}

// begun is the run with a key. Those whose steps launch pipelines have keys that
// nobody can send.
func (db *DB) begun(ctx context.Context, team ids.Team, n reported.New) (b reported.Begun, err error) {
	err = db.q.QueryRowContext(ctx, `
		SELECT r.id, r.workflow_id, r.status, p.last_seq FROM reported_runs p JOIN runs r ON r.id = p.run_id
		WHERE p.team_id = $1 AND p.engine = $2 AND p.reporter_key = $3`, team, n.Engine, n.Key).
		Scan((*string)(&b.Run), (*string)(&b.Workflow), (*string)(&b.Status), &b.LastSeq)
	return b, err
}

func (db *DB) insertReported(ctx context.Context, team ids.Team, n reported.New, by runs.Starter, now time.Time) (b reported.Begun, err error) {
	if err := errors.Join(db.mustBeOpen(ctx, team), db.mayReport(ctx, team, now)); err != nil {
		return b, err
	}
	r := runs.Run{
		ID: ids.NewRun(), Team: team, Definition: graph.Empty().JSON(), Parameters: n.Parameters, Inputs: []byte("{}"), Starter: by, CreatedAt: now,
		Status: lifecycle.Running, StartedAt: n.StartedAt, Label: runs.Label{Name: n.Name, Tags: n.Tags},
	}
	if r.Workflow, r.WorkflowName, r.Revision, err = db.projectWorkflow(ctx, team, n, by, now); err != nil {
		return b, err
	}
	if err := db.mayRun(ctx, r); err != nil {
		return b, err
	}
	told, err := db.insertRun(ctx, &r)
	if err != nil {
		return b, err
	}
	_, err = db.changed(ctx, `
		UPDATE runs SET kind = $1, engine = $2, heard_at = $3, status = $4, started_at = $5, billed_since = $5 WHERE id = $6`,
		runs.Reported, n.Engine, micros(now), r.Status, micros(r.StartedAt), r.ID)
	if err != nil {
		return b, err
	}
	details, err := json.Marshal(n.Details)
	if err != nil {
		return b, err
	}
	_, err = db.q.ExecContext(ctx, `
		INSERT INTO reported_runs (run_id, team_id, engine, reporter_key, engine_version, project, details, text_bytes) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		r.ID, team, n.Engine, n.Key, n.EngineVersion, n.Project, string(details), len(details)+len(n.Parameters))
	if err != nil {
		return b, err
	}
	size, err := db.runBytes(ctx, r.ID)()
	if err == nil {
		err = db.fitDefinitions(ctx, team, size)
	}
	if err != nil {
		return b, err
	}
	if told {
		if err := db.announce(ctx, r, 1, lifecycle.RunStarted, now); err != nil {
			return b, err
		}
	}
	b = reported.Begun{Run: r.ID, Workflow: r.Workflow, Status: r.Status, Created: true}
	return b, db.insertEvents(ctx, r.ID, 1, runs.Event{Type: lifecycle.RunStarted, At: now, Message: n.Engine + " carries the run out and reports it"})
}

// mayReport refuses another run of a team that has begun too many in this minute.
func (db *DB) mayReport(ctx context.Context, team ids.Team, now time.Time) error {
	var lately int
	err := db.q.QueryRowContext(ctx, `
		SELECT COUNT(*) FROM (SELECT created_at, kind FROM runs WHERE team_id = $1 ORDER BY id DESC LIMIT $2 + 0) newest WHERE created_at > $3 AND kind = $4`,
		team, reported.MaxPerMinute, micros(now.Add(-time.Minute)), runs.Reported).Scan(&lately)
	if err == nil && lately >= reported.MaxPerMinute {
		return fault.Limited(time.Minute, "the team has begun to report %d runs within a minute: begin the next one later", lately)
	}
	return err
}

// otherProjects is the project of the runs of a team that reports too many projects.
const otherProjects = "Other pipelines"

// projectWorkflow is the workflow that the runs of a project belong to, made where
// there is none. The one of too many projects is one for all engines.
func (db *DB) projectWorkflow(ctx context.Context, team ids.Team, n reported.New, by runs.Starter, now time.Time) (id ids.Workflow, name string, revision int, err error) {
	engine := n.Engine
	if n.Project == otherProjects {
		engine = ""
	}
	err = db.q.QueryRowContext(ctx, `
		SELECT w.id, w.name, w.revision FROM reported_projects p JOIN workflows w ON w.id = p.workflow_id
		WHERE p.team_id = $1 AND p.engine = $2 AND p.project = $3`, team, engine, n.Project).Scan((*string)(&id), &name, &revision)
	if !errors.Is(err, sql.ErrNoRows) {
		return id, name, revision, err
	}
	var projects int
	if err := db.q.QueryRowContext(ctx, `SELECT COUNT(*) FROM reported_projects WHERE team_id = $1`, team).Scan(&projects); err != nil {
		return id, name, revision, err
	}
	if projects >= reported.MaxProjects && n.Project != otherProjects {
		n.Project = otherProjects
		return db.projectWorkflow(ctx, team, n, by, now)
	}
	g := reported.Canvas(n.Engine)
	w := workflows.Workflow{
		Row: workflows.Row{
			ID: ids.NewWorkflow(), Team: team, Name: n.Project, Revision: 1, NodeCount: g.NodeCount(), CreatedBy: ids.User(by.ID), CreatedAt: now, UpdatedAt: now,
			Description: "A pipeline that " + n.Engine + " carries out elsewhere. Its runs are watched here.",
		},
		Version: 1, Definition: g.JSON(), Fingerprint: g.Fingerprint(), Problems: g.Incomplete(),
	}
	rev := workflows.Revision{Number: 1, CreatedBy: w.CreatedBy, CreatedAt: now, UpdatedAt: now, Summary: "first reported"}
	if err := db.InsertWorkflow(ctx, w, rev, nil); err != nil {
		return id, name, revision, err
	}
	_, err = db.q.ExecContext(ctx, `INSERT INTO reported_projects (team_id, engine, project, workflow_id) VALUES ($1, $2, $3, $4)`, team, engine, n.Project, w.ID)
	return w.ID, w.Name, w.Revision, err
}

// ReportedRun is what an engine said of a run of a team.
func (db *DB) ReportedRun(ctx context.Context, team ids.Team, id ids.Run) (a reported.About, err error) {
	var details, metrics string
	var heard int64
	err = db.q.QueryRowContext(ctx, `
		SELECT p.engine, p.engine_version, p.project, p.reporter_key, r.heard_at, p.tasks, p.left_out, p.details, p.metrics,
		       (SELECT SUM(text_bytes) FROM reported_runs t WHERE t.team_id = $1)
		FROM reported_runs p JOIN runs r ON r.id = p.run_id WHERE p.team_id = $1 AND p.run_id = $2`, team, id).
		Scan(&a.Engine, &a.EngineVersion, &a.Project, &a.Key, &heard, &a.Tasks, &a.LeftOut, &details, &metrics, &a.TeamTexts)
	if err != nil {
		return a, db.asFault(err, "reported run")
	}
	a.HeardAt, a.Key = fromMicros(heard), strings.TrimSpace(a.Key)
	return a, errors.Join(json.Unmarshal([]byte(details), &a.Details), json.Unmarshal([]byte(metrics), &a.Metrics))
}

// endReported ends a run by a decision of ours.
func (db *DB) endReported(ctx context.Context, r runs.Run, e runs.Ending, now time.Time) error {
	nodes, err := db.reportedNodes(ctx, r.ID)
	if err != nil {
		return err
	}
	p := reported.Picture{Nodes: nodes}
	changed := p.Close()
	if err := db.saveReportedNodes(ctx, r.ID, changed); err != nil {
		return err
	}
	step := runs.Step{Progress: r.Progress, Billed: r.Billed, BilledSince: r.BilledSince}
	if e.Code == lifecycle.Silent {
		step.Billed, step.BilledSince = r.Took(r.HeardAt), time.Time{} // what came later nobody knows
	}
	for _, n := range changed {
		step.Nodes = append(step.Nodes, n.Row())
	}
	for _, n := range nodes {
		if n.State.Terminal() {
			step.Done++
		}
	}
	e.Last = &step
	return db.end(ctx, r, e, now)
}

// InterruptSilent ends some of the runs of which nothing was heard since before a
// time, and says which.
func (db *DB) InterruptSilent(ctx context.Context, now time.Time) (ended []ids.Run, err error) {
	const atOnce = 20
	before := micros(now.Add(-reported.GivenUpAfter))
	list, err := all(ctx, db, func(r *sql.Rows, id *ids.Run) error { return r.Scan((*string)(id)) },
		`SELECT id FROM runs WHERE kind = 'reported' AND status = 'running' AND heard_at <= $1 ORDER BY heard_at LIMIT $2 + 0`, before, atOnce)
	for _, id := range list {
		silent := false
		err := db.inTx(ctx, func(tx *DB) error {
			r, err := tx.lockedRun(ctx, id)
			silent = err == nil && !r.Status.Terminal() && micros(r.HeardAt) <= before
			if fault.Is(err, fault.KindNotFound) || err == nil && !silent {
				return nil
			}
			if err != nil {
				return err
			}
			return tx.endReported(ctx, r, reported.Silence(r.HeardAt), now)
		})
		if err != nil {
			return ended, err
		}
		if silent {
			ended = append(ended, id)
		}
	}
	return ended, err
}
