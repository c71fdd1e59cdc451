package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/admission"
	"github.com/millrace/millrace/internal/runs/offers"
)

func writeNeeds(needs []admission.Need) string {
	if len(needs) == 0 {
		return ""
	}
	text, _ := json.Marshal(needs) // strings always can be
	return string(text)
}

func readNeeds(text string, run *admission.Candidate) error {
	if text == "" {
		return nil
	}
	err := json.Unmarshal([]byte(text), &run.Needs)
	run.Needs = admission.Fetched(run.Needs)
	return err
}

// writeLaunches are the engines among what a run needs, each once and in order.
func writeLaunches(needs []admission.Need) string {
	var engines []string
	for _, n := range needs {
		if n.Kind == admission.Engine && !slices.Contains(engines, n.Ref) {
			engines = append(engines, n.Ref)
		}
	}
	slices.Sort(engines)
	return strings.Join(engines, " ")
}

// launchable are all that writeLaunches may write of the engines that a worker has, as a list.
func launchable(lacks []pipeline.Engine) string {
	sets := []string{""}
	for _, e := range slices.Sorted(slices.Values(pipeline.Engines)) {
		if slices.Contains(lacks, e) {
			continue
		}
		for _, set := range sets[:len(sets):len(sets)] {
			sets = append(sets, strings.TrimSpace(set+" "+string(e)))
		}
	}
	return `'` + strings.Join(sets, `', '`) + `'`
}

// launches finds runs that launch a pipeline of an engine, by what writeNeeds wrote
// of it. A reference in there cannot look like that: its quotes are escaped.
func launches(e pipeline.Engine) string {
	text := writeNeeds([]admission.Need{{Kind: admission.Engine, Ref: string(e)}})
	return `needs LIKE '%` + strings.Trim(text, "[]") + `%'`
}

// launchedEngine is the engine whose pipeline a run launches; empty: none.
func launchedEngine(column string) string {
	cases := "CASE"
	for _, e := range pipeline.Engines {
		cases += ` WHEN ` + column + `.` + launches(e) + ` THEN '` + string(e) + `'`
	}
	return cases + ` ELSE '' END`
}

// prepare hands a worker the runs for which it is to fetch what they need, and
// takes note of those that are ready.
func (db *DB) prepare(ctx context.Context, c admission.Claim, lines []admission.TeamQueue, claimed *runs.Claimed) error {
	for _, l := range lines {
		for _, run := range l.Waiting {
			if !c.Preparing[run.ID] || run.PreparedBy != c.Owner {
				continue
			}
			if _, err := db.changed(ctx, `UPDATE runs SET preparing = '' WHERE id = $1`, run.ID); err != nil {
				return err
			}
		}
	}
	claimed.Prepare = admission.ToPrepare(c, lines)
	for _, run := range claimed.Prepare {
		_, err := db.changed(ctx, `UPDATE runs SET preparing_by = $1, preparing = $2 WHERE id = $3`, c.Owner, run.Needs[0].Kind, run.ID)
		if err != nil {
			return err
		}
	}
	claimed.Queued = map[ids.Run]bool{}
	for id := range c.Preparing {
		var queued bool
		if err := db.q.QueryRowContext(ctx, `SELECT COUNT(*) > 0 FROM runs WHERE id = $1 AND status = 'queued'`, id).Scan(&queued); err != nil {
			return err
		}
		if queued {
			claimed.Queued[id] = true
		}
	}
	return nil
}

// QueuedRun is a run with all that it was given, while nobody executes it.
func (db *DB) QueuedRun(ctx context.Context, id ids.Run) (r runs.Run, err error) {
	err = scanWhole(db.q.QueryRowContext(ctx, `SELECT `+wholeColumns+` FROM runs WHERE id = $1 AND status = 'queued'`, id), &r)
	return r, db.asFault(err, "run")
}

// preparing adds what workers fetch at the moment for the queued runs of a team, or of
// all, and how far they are.
func (db *DB) preparing(ctx context.Context, team ids.Team, now time.Time, q *offers.QueueState) error {
	q.Preparing, q.Fetched = map[ids.Run]runs.WaitReason{}, map[ids.Run]offers.Fetched{}
	whose, args := ``, []any{micros(now.Add(-present))}
	if team != "" {
		whose, args = ` AND r.team_id = $2`, append(args, team)
	}
	_, err := all(ctx, db, func(r *sql.Rows, _ *struct{}) error {
		var id ids.Run
		var text string
		if err := r.Scan((*string)(&id), &text); err != nil {
			return err
		}
		kind, bytes, progress := strings.Cut(text, " ")
		q.Preparing[id] = runs.WaitReason(kind)
		var f offers.Fetched
		if n, _ := fmt.Sscan(bytes, &f.Bytes, &f.Total); progress && n == 2 {
			q.Fetched[id] = f
		}
		return nil
	}, `
		SELECT r.id, r.preparing FROM runs r JOIN workers w ON w.owner = r.preparing_by
		WHERE r.status = 'queued' AND r.preparing <> '' AND w.seen_at > $1`+whose, args...)
	return err
}

// InputsFetched notes how far the inputs of a run are that the owner prepares. When
// another does so by now it is nothing.
func (db *DB) InputsFetched(ctx context.Context, owner string, id ids.Run, bytes, total int64) error {
	_, err := db.changed(ctx, `UPDATE runs SET preparing = $1 WHERE id = $2 AND status = 'queued' AND preparing <> '' AND preparing_by = $3`,
		fmt.Sprint(admission.Inputs, " ", bytes, " ", total), id, owner)
	return err
}
