package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/reported"
)

// TakeReport merges a report into what is known of a run. Reports of one run take
// turns: the run's row is locked until the picture is written.
func (db *DB) TakeReport(ctx context.Context, team ids.Team, id ids.Run, report reported.Report, now time.Time) (t reported.Taken, err error) {
	err = db.inTx(ctx, func(tx *DB) error {
		t = reported.Taken{}
		r, err := tx.lockedRun(ctx, id)
		if err == nil && (r.Team != team || r.Kind != runs.Reported) {
			err = fault.NotFound("no such reported run")
		}
		if err != nil {
			return err
		}
		p, logSize, err := tx.picture(ctx, r, report)
		if err != nil {
			return err
		}
		t.Status, t.LastSeq = r.Status, p.LastSeq
		if r.Status == lifecycle.Running && !now.Before(r.HeardAt.Add(reported.GivenUpAfter)) {
			t.Status, t.Dropped = lifecycle.Interrupted, true
			return tx.endReported(ctx, r, reported.Silence(r.HeardAt), now)
		}
		if t.Dropped = p.Dropped(now); t.Dropped {
			return nil
		}
		c := p.Merge(report, now)
		t.LastSeq = max(p.LastSeq, report.Seq)
		if c.Ending != nil {
			t.Status, t.Ended = c.Ending.Status, true
		}
		return tx.countGrowth(ctx, team, tx.runBytes(ctx, id), func() error { return tx.saveReport(ctx, p, c, report, logSize, now) })
	})
	return t, err
}

// picture is what is known of a run, of its tasks those that a report is about.
func (db *DB) picture(ctx context.Context, r runs.Run, report reported.Report) (p *reported.Picture, logSize int64, err error) {
	p = &reported.Picture{Run: r, Edges: map[[2]string]bool{}, Rows: map[string]*reported.Row{}}
	var edges string
	err = db.q.QueryRowContext(ctx, `
		SELECT p.step, p.finished, p.last_seq, p.tasks, p.text_bytes, p.left_out, p.edges, r.log_size,
		       (SELECT SUM(text_bytes) FROM reported_runs t WHERE t.team_id = p.team_id)
		FROM reported_runs p JOIN runs r ON r.id = p.run_id WHERE p.run_id = $1`, r.ID).
		Scan(&p.Step, &p.Finished, &p.LastSeq, &p.Tasks, &p.Texts, &p.LeftOut, &edges, &logSize, &p.TeamTexts)
	if err != nil {
		return p, 0, db.asFault(err, "reported run")
	}
	if r.Team != "" {
		left, err := db.definitionsLeft(ctx, r.Team)
		if err != nil {
			return p, 0, err
		}
		p.TeamTexts = max(p.TeamTexts, reported.MaxTeamTexts-left)
	}
	var list [][2]string
	if err := json.Unmarshal([]byte(edges), &list); err != nil {
		return p, 0, err
	}
	for _, e := range list {
		p.Edges[e] = true
	}
	if p.Nodes, err = db.reportedNodes(ctx, r.ID); err != nil {
		return p, 0, err
	}
	var byID, byChain []string
	for _, t := range report.Tasks {
		byID, byChain = append(byID, t.ID), append(byChain, t.Chain)
	}
	for column, values := range map[string][]string{"id": byID, "chain": byChain} {
		if err := db.reportedRows(ctx, r.ID, column, values, p); err != nil {
			return p, 0, err
		}
	}
	return p, logSize, nil
}

const reportedNode = `
	SELECT node_id, name, place, first_task, expected, closed, counts, peak, cpu_micros, exit_code, attempt, started_at, ended_at, state
	FROM reported_nodes WHERE `

func (db *DB) reportedNodes(ctx context.Context, id ids.Run) (map[string]*reported.Node, error) {
	list, err := all(ctx, db, func(r *sql.Rows, n *reported.Node) error {
		var counts string
		var cpu int64
		var started, ended sql.NullInt64
		err := r.Scan(&n.ID, &n.Name, &n.Place, &n.First, &n.Expected, &n.Closed, &counts, &n.Peak, &cpu, &n.ExitCode, &n.Attempt, &started, &ended, (*string)(&n.State))
		if err == nil {
			n.Counts, err = reported.ReadCounts(counts)
		}
		n.CPU, n.StartedAt, n.EndedAt = time.Duration(cpu)*time.Microsecond, fromNull(started), fromNull(ended)
		return err
	}, reportedNode+`run_id = $1`, id)
	nodes := make(map[string]*reported.Node, len(list))
	for i := range list {
		nodes[list[i].ID] = &list[i]
	}
	return nodes, err
}

func (db *DB) saveReportedNodes(ctx context.Context, id ids.Run, nodes []*reported.Node) error {
	rows := make([][]any, len(nodes))
	for i, n := range nodes {
		rows[i] = []any{
			id, n.ID, n.Name, n.Place, n.First, n.Expected, n.Closed, n.Counts.Text(), n.Peak, n.CPU.Microseconds(), n.ExitCode, n.Attempt,
			microsOrNull(n.StartedAt), microsOrNull(n.EndedAt), n.State,
		}
	}
	return db.insertRows(ctx, `
		INSERT INTO reported_nodes (run_id, node_id, name, place, first_task, expected, closed, counts, peak, cpu_micros, exit_code, attempt, started_at, ended_at, state)`, `
		ON CONFLICT (run_id, node_id) DO UPDATE SET
			place = excluded.place, first_task = excluded.first_task, expected = excluded.expected, closed = excluded.closed, counts = excluded.counts,
			peak = excluded.peak, cpu_micros = excluded.cpu_micros, exit_code = excluded.exit_code, attempt = excluded.attempt,
			started_at = excluded.started_at, ended_at = excluded.ended_at, state = excluded.state`, rows)
}

// reportedTask is an attempt without its texts.
const reportedTask = `
	SELECT id, node_id, chain, number, shard, attempt, newest, state, will_retry, ignored, version, name, exit_code, submitted_at, started_at, ended_at,
	       peak, cpu_micros, details, OCTET_LENGTH(script), OCTET_LENGTH(message)`

func scanReportedTask(r scanner, t *reported.Row, more ...any) error {
	var submitted, started, ended sql.NullInt64
	var cpu int64
	var details string
	err := r.Scan(append([]any{
		&t.ID, &t.NodeID, &t.Chain, &t.Number, &t.Shard, &t.Attempt, &t.Newest, (*string)(&t.State), &t.WillRetry, &t.Ignored, &t.Version, &t.Name, &t.ExitCode,
		&submitted, &started, &ended, &t.Peak, &cpu, &details, &t.ScriptSize, &t.MessageSize,
	}, more...)...)
	if err != nil {
		return err
	}
	t.SubmittedAt, t.StartedAt, t.EndedAt, t.CPU = fromNull(submitted), fromNull(started), fromNull(ended), time.Duration(cpu)*time.Microsecond
	return json.Unmarshal([]byte(details), &t.Details)
}

// sameName bounds how many attempts are read because they may be of the tasks of a
// report: a stranger may give all of them one name.
const sameName = 2000

// reportedRows reads attempts whose column has one of the values.
func (db *DB) reportedRows(ctx context.Context, id ids.Run, column string, values []string, p *reported.Picture) error {
	return inChunks(values, func(some []string) error {
		list, err := all(ctx, db, func(r *sql.Rows, t *reported.Row) error { return scanReportedTask(r, t) },
			reportedTask+` FROM reported_tasks WHERE run_id = $1 AND `+column+` IN (`+placeholders(3, len(some))+`) ORDER BY number LIMIT $2 + 0`,
			append([]any{id, sameName}, anys(some)...)...)
		for i := range list {
			t := &list[i]
			if n := p.Nodes[t.NodeID]; n != nil && p.Rows[t.ID] == nil {
				t.Node = n.Name
				t.Loaded()
				p.Rows[t.ID] = t
			}
		}
		return err
	})
}

func (db *DB) saveReportedTasks(ctx context.Context, id ids.Run, tasks []*reported.Row) error {
	rows := make([][]any, len(tasks))
	for i, t := range tasks {
		details, err := json.Marshal(t.Details)
		if err != nil {
			return err
		}
		rows[i] = []any{
			id, t.ID, t.NodeID, t.Chain, t.Number, t.Shard, t.Attempt, t.Newest, t.Counted(), t.State, t.WillRetry, t.Ignored, t.Version, t.Name, t.ExitCode,
			microsOrNull(t.SubmittedAt), microsOrNull(t.StartedAt), microsOrNull(t.EndedAt), t.Peak, t.CPU.Microseconds(), string(details), t.Script, t.Message,
		}
	}
	return db.insertRows(ctx, `
		INSERT INTO reported_tasks (run_id, id, node_id, chain, number, shard, attempt, newest, kind, state, will_retry, ignored, version, name, exit_code,
			submitted_at, started_at, ended_at, peak, cpu_micros, details, script, message)`, `
		ON CONFLICT (run_id, id) DO UPDATE SET
			shard = excluded.shard, attempt = excluded.attempt, newest = excluded.newest, kind = excluded.kind, state = excluded.state, will_retry = excluded.will_retry,
			ignored = excluded.ignored, version = excluded.version, name = excluded.name, exit_code = excluded.exit_code, submitted_at = excluded.submitted_at,
			started_at = excluded.started_at, ended_at = excluded.ended_at, peak = excluded.peak, cpu_micros = excluded.cpu_micros, details = excluded.details,
			script = CASE WHEN excluded.script = '' THEN reported_tasks.script ELSE excluded.script END,
			message = CASE WHEN excluded.message = '' THEN reported_tasks.message ELSE excluded.message END`, rows)
}

// savePicture writes what a report has changed of a picture.
func (db *DB) savePicture(ctx context.Context, p *reported.Picture, c reported.Change, report reported.Report) error {
	if err := db.saveReportedTasks(ctx, p.Run.ID, c.Rows); err != nil {
		return err
	}
	if err := db.saveReportedNodes(ctx, p.Run.ID, c.Nodes); err != nil {
		return err
	}
	return db.saveAbout(ctx, p, c, report)
}

// saveReport writes what a report has changed of a run.
func (db *DB) saveReport(ctx context.Context, p *reported.Picture, c reported.Change, report reported.Report, logSize int64, now time.Time) error {
	if err := db.savePicture(ctx, p, c, report); err != nil {
		return err
	}
	if c.Redraw {
		_, err := db.changed(ctx, `UPDATE runs SET definition = $1, total_nodes = $2 WHERE id = $3`, string(p.Definition()), len(p.Nodes), p.Run.ID)
		if err != nil {
			return err
		}
	}
	r, step := p.Run, runs.Step{Events: c.Events, Done: c.Done, Progress: c.Progress, Billed: p.Run.Billed, BilledSince: p.Run.BilledSince}
	for _, n := range c.Nodes {
		step.Nodes = append(step.Nodes, n.Row())
	}
	if len(c.Log) > 0 {
		step.Logs = []runs.LogPiece{{NodeStart: logSize, Size: int64(len(c.Log)), Text: c.Log}}
	}
	if c.Ending != nil {
		e := *c.Ending
		e.Last = &step
		if e.Status == lifecycle.Failed {
			f, err := db.failedTask(ctx, r.ID, "", 0)
			if err != nil {
				return err
			}
			e.Message = cmp.Or(f.Message(report.Finish.Message), e.Message)
		}
		if _, err := db.changed(ctx, `UPDATE runs SET heard_at = $1 WHERE id = $2`, micros(now), r.ID); err != nil {
			return err
		}
		return db.end(ctx, r, e, now)
	}
	err := db.q.QueryRowContext(ctx, `
		UPDATE runs SET heard_at = $1, done_nodes = $2, progress = CASE WHEN progress > $3 THEN progress ELSE $3 END, seq = seq + $4, log_size = log_size + $5
		WHERE id = $6 RETURNING seq, log_size`, micros(now), step.Done, step.Progress, len(step.Events), step.LogSize(), r.ID).Scan(&r.Seq, &r.LogSize)
	if err != nil {
		return err
	}
	return db.writeStep(ctx, r, step, now)
}

// saveAbout writes what a report says of the run as a whole.
func (db *DB) saveAbout(ctx context.Context, p *reported.Picture, c reported.Change, report reported.Report) error {
	_, err := db.changed(ctx, `
		UPDATE reported_runs SET last_seq = $1, tasks = tasks + $2, text_bytes = text_bytes + $3, left_out = $4, finished = finished OR $5,
			engine_version = CASE WHEN $6 = '' THEN engine_version ELSE $6 END
		WHERE run_id = $7`,
		max(p.LastSeq, report.Seq), c.Tasks, c.Texts, c.LeftOut, c.Ending != nil, report.EngineVersion, p.Run.ID)
	if err != nil {
		return err
	}
	if c.Edges {
		list := make([][2]string, 0, len(p.Edges))
		for e := range p.Edges {
			list = append(list, e)
		}
		if err := db.saveAsJSON(ctx, `UPDATE reported_runs SET edges = $1 WHERE run_id = $2`, list, p.Run.ID); err != nil {
			return err
		}
	}
	if p.TeamTexts < reported.MaxTeamTexts {
		if err := db.saveAboutTexts(ctx, p.Run.ID, report); err != nil {
			return err
		}
	}
	if report.StartedAt.IsZero() {
		return nil
	}
	if p.Run.Status.Terminal() { // the end has overtaken the beginning
		at := report.StartedAt // by a clock that may be ahead of ours
		if at.After(p.Run.FinishedAt) {
			at = p.Run.FinishedAt
		}
		_, err = db.changed(ctx, `UPDATE runs SET started_at = $1, billed = finished_at - $1 WHERE id = $2`, micros(at), p.Run.ID)
		return err
	}
	p.Run.StartedAt, p.Run.BilledSince = report.StartedAt, report.StartedAt
	_, err = db.changed(ctx, `UPDATE runs SET started_at = $1, billed_since = $1 WHERE id = $2`, micros(report.StartedAt), p.Run.ID)
	return err
}

// saveAboutTexts writes what is said at length, and counts it.
func (db *DB) saveAboutTexts(ctx context.Context, id ids.Run, report reported.Report) error {
	if len(report.Metrics) > 0 {
		err := db.saveAsJSON(ctx, `UPDATE reported_runs SET text_bytes = text_bytes + OCTET_LENGTH($1) - OCTET_LENGTH(metrics), metrics = $1 WHERE run_id = $2`, report.Metrics, id)
		if err != nil {
			return err
		}
	}
	if len(report.Details) > 0 {
		err := db.saveAsJSON(ctx, `UPDATE reported_runs SET text_bytes = text_bytes + OCTET_LENGTH($1) - OCTET_LENGTH(details), details = $1 WHERE run_id = $2`, report.Details, id)
		if err != nil {
			return err
		}
	}
	if len(report.Parameters) == 0 {
		return nil
	}
	_, err := db.changed(ctx, `
		UPDATE reported_runs SET text_bytes = text_bytes + $1 - (SELECT OCTET_LENGTH(parameters) FROM runs WHERE id = $2) WHERE run_id = $2`, len(report.Parameters), id)
	if err != nil {
		return err
	}
	_, err = db.changed(ctx, `UPDATE runs SET parameters = $1, search_due = TRUE WHERE id = $2`, string(report.Parameters), id)
	return err
}

func (db *DB) saveAsJSON(ctx context.Context, statement string, v any, id ids.Run) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = db.changed(ctx, statement, string(text), id)
	return err
}
