package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/retention"
	"github.com/millrace/millrace/internal/upkeep"
)

// archive is a team with many runs that ended an hour apart, the last of them
// in August, and all that they left.
type archive struct {
	t    *testing.T
	db   *DB
	team ids.Team
	runs int
}

const perRun = 3 // events, attempts, nodes and log pieces of each

func newArchive(t *testing.T, db *DB, runs int) *archive {
	t.Helper()
	team, owner := newTeam(t, db)
	a := &archive{t, db, team, runs}
	end, hour := micros(august), time.Hour.Microseconds()
	each := fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) `, runs)
	parts := fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d) `, runs*perRun-1)
	run := `'run_' || (i / 3 + 1)` // of a part
	a.exec(each+`INSERT INTO runs (id, team_id, workflow_id, workflow_name, workflow_revision, definition, parameters, inputs, vcpu, ram_gb, gpu,
			price, starter_type, starter_id, starter_name, status, total_nodes, seq, log_size, created_at, finished_at, number)
		SELECT 'run_' || i, '`+string(team)+`', 'wf_' || (i % 100), 'W', 1, '{}', '{}', '{}', 1, 1, 0, 1, 'user', 'u', 'U', 'completed', 1, 3, 30,
			CAST($1 AS BIGINT) - i * CAST($2 AS BIGINT), CAST($1 AS BIGINT) - i * CAST($2 AS BIGINT), i FROM n`, end, hour)
	a.exec(parts + `INSERT INTO run_events (run_id, seq, type, at, message) SELECT ` + run + `, i % 3 + 1, 'node.started', 1, 'm' FROM n`)
	a.exec(parts + `INSERT INTO run_nodes (run_id, node_id, name, state) SELECT ` + run + `, 'n' || (i % 3), 'N', 'succeeded' FROM n`)
	a.exec(parts + `INSERT INTO run_attempts (run_id, node_id, shard, attempt, fence, host, state, away_until, started_at)
		SELECT ` + run + `, 'n' || (i % 3), 0, 1, 'f', 'h', 'succeeded', 1, 1 FROM n`)
	// The first two pieces lie in one object, the third in the database.
	a.exec(parts + `INSERT INTO run_logs (run_id, start, node_id, shard, attempt, node_start, size, text, object, object_start, marks)
		SELECT ` + run + `, i % 3 * 10, 'n', 0, 1, i % 3 * 10, 10, '', CASE WHEN i % 3 < 2 THEN 'teams/` + string(team) + `/logs/' || (i / 3 + 1) ELSE '' END, 0, '' FROM n`)
	// Every tenth run was used again by the next one.
	a.exec(each + `INSERT INTO blobs (key, team_id, size, sha256, refs, created_at)
		SELECT 'blob' || i, '` + string(team) + `', 100, 's', CASE WHEN i % 10 = 2 THEN 2 ELSE 1 END, 1 FROM n WHERE i % 10 <> 1`)
	a.exec(each + `INSERT INTO files (key, team_id, source, rank, id, name, content_type, size, blob_key, run_id, created_by, created_at)
		SELECT 'teams/x/runs/run_' || i || '/f', '` + string(team) + `', 'output', 1, 'f' || i, 'f', 't', 100, 'blob' || CASE WHEN i % 10 = 1 THEN i + 1 ELSE i END,
			'run_' || i, 'u', 1 FROM n`)
	a.exec(each + `INSERT INTO ledger (id, team_id, type, source, source_id, monthly, top_up, run_id, description, created_at)
		SELECT 'entry_' || i, '` + string(team) + `', 'run', 'run', 'run_' || i, -1, 0, 'run_' || i, 'd', 1 FROM n`)
	a.exec(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99) INSERT INTO workflows (id, team_id, name, description, revision, node_count, created_by, created_at, updated_at, version)
		SELECT 'wf_' || i, '` + string(team) + `', 'W', '', ` + fmt.Sprint(runs/100) + `, 0, '` + string(owner) + `', 1, 1, 1 FROM n`)
	a.exec(each+`INSERT INTO workflow_revisions (workflow_id, revision, definition, fingerprint, problems, summary, created_by, created_at, updated_at)
		SELECT 'wf_' || (i % 100), (i - 1) / 100 + 1, '{}', '', '[]', '', '`+string(owner)+`', CAST($1 AS BIGINT) - (CAST($3 AS BIGINT) - (i - 1) / 100) * CAST($2 AS BIGINT), 1 FROM n`, end, hour, runs/100)
	a.exec(`INSERT INTO storage (team_id, bytes) VALUES ($1, $2) ON CONFLICT (team_id) DO UPDATE SET bytes = excluded.bytes`, team,
		100*a.count(`SELECT COUNT(*) FROM blobs`)+10*a.count(`SELECT COUNT(*) FROM run_logs WHERE object <> ''`))
	a.whole()
	return a
}

func (a *archive) exec(query string, args ...any) {
	a.t.Helper()
	if _, err := a.db.changed(a.t.Context(), query, args...); err != nil {
		a.t.Fatalf("%v: %s", err, query)
	}
}

func (a *archive) count(query string) (n int) {
	a.t.Helper()
	if err := a.db.q.QueryRowContext(a.t.Context(), query).Scan(&n); err != nil {
		a.t.Fatalf("%v: %s", err, query)
	}
	return n
}

// whole checks that what is counted is what is there.
func (a *archive) whole() {
	a.t.Helper()
	want := 100*a.count(`SELECT COUNT(*) FROM blobs`) + 10*a.count(`SELECT COUNT(*) FROM run_logs WHERE object <> ''`)
	if got := a.count(`SELECT bytes FROM storage`); got != want {
		a.t.Errorf("%d bytes are counted, there are %d", got, want)
	}
	for what, query := range map[string]string{
		"blobs whose files are miscounted": `SELECT COUNT(*) FROM blobs b WHERE refs <> (SELECT COUNT(*) FROM files f WHERE f.blob_key = b.key)`,
		"doomed that are used":             `SELECT COUNT(*) FROM doomed_blobs d WHERE EXISTS (SELECT 1 FROM blobs b WHERE b.key = d.key) OR EXISTS (SELECT 1 FROM run_logs l WHERE l.object = d.key AND l.object <> '')`,
		"missing entries of the ledger":    fmt.Sprintf(`SELECT %d - COUNT(*) FROM ledger WHERE type = 'run'`, a.runs),
	} {
		if n := a.count(query); n != 0 {
			a.t.Errorf("%d %s", n, what)
		}
	}
}

// own makes somebody else the one who does the chores.
func (a *archive) own(ctx context.Context) int64 {
	a.t.Helper()
	if err := a.db.ResetUpkeep(ctx); err != nil {
		a.t.Fatal(err)
	}
	fence, claimed, err := a.db.ClaimUpkeep(ctx, "somebody", august, august.Add(time.Hour))
	if err != nil || !claimed {
		a.t.Fatal(claimed, err)
	}
	return fence
}

// expire deletes all that is older than a number of hours before the last end.
func (a *archive) expire(ctx context.Context, fence int64, kind retention.Kind, hours int) (n int, err error) {
	for more := true; more && err == nil; {
		var some int
		some, more, err = a.db.Expire(ctx, fence, kind, a.team, august.Add(-time.Duration(hours)*time.Hour), august)
		n += some
	}
	return n, err
}

func TestLogsAndEventsGoInTheirTimeAndRunsStay(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		a := newArchive(t, db, 200)
		ctx := t.Context()
		fence := a.own(ctx)
		for range 2 { // the second time finds nothing
			if _, err := a.expire(ctx, fence, retention.Logs, 50); err != nil {
				t.Fatal(err)
			}
			if _, err := a.expire(ctx, fence, retention.Events, 20); err != nil {
				t.Fatal(err)
			}
			// Those that ended exactly then or later keep theirs.
			if n := a.count(`SELECT COUNT(*) FROM run_logs`); n != 50*perRun {
				t.Errorf("%d pieces of logs are left", n)
			}
			if n := a.count(`SELECT COUNT(*) FROM run_events`); n != 20*perRun+180 {
				t.Errorf("%d events are left", n)
			}
			if n := a.count(`SELECT COUNT(*) FROM run_events WHERE seq = 3`); n != 200 {
				t.Errorf("%d endings are left", n)
			}
			if n := a.count(`SELECT COUNT(*) FROM doomed_blobs`); n != 150 {
				t.Errorf("%d objects are to be deleted", n)
			}
			if n := a.count(`SELECT COUNT(*) FROM runs WHERE log_size = 0 AND logs_deleted_at IS NOT NULL`); n != 150 {
				t.Errorf("%d runs say so", n)
			}
			a.whole()
		}
		// One that ends later, when its time has come.
		if n, err := a.expire(ctx, fence, retention.Logs, 49); n != perRun || err != nil {
			t.Errorf("%d pieces more, %v", n, err)
		}
		a.whole()
	})
}

func TestRunsThatOthersNeedStay(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		a := newArchive(t, db, 200)
		ctx := t.Context()
		number := 10_000 // beyond those of the archive
		open := func(id, status, more, values string) {
			number++
			a.exec(`INSERT INTO runs (id, team_id, workflow_id, workflow_name, workflow_revision, definition, parameters, vcpu, ram_gb, gpu,
				price, starter_type, starter_id, starter_name, status, total_nodes, seq, created_at, number` + more + `)
				VALUES ('` + id + `', '` + string(a.team) + `', 'wf_1', 'W', 1, '{}', '{}', 1, 1, 0, 1, 'user', 'u', 'U', '` + status + `', 1, 1, 1, ` + fmt.Sprint(number) + values + `)`)
		}
		open("run_a", "running", ", inputs", `, '{"x":["teams/t/runs/run_150/f"]}'`)
		open("run_b", "queued", ", inputs, retry_of", `, '{}', 'run_160'`)
		open("run_c", "completed", ", inputs, retry_of", `, '{}', 'run_170'`)
		if _, err := a.expire(ctx, a.own(ctx), retention.Runs, 100); err != nil {
			t.Fatal(err)
		}
		if n := a.count(`SELECT COUNT(*) FROM runs WHERE id IN ('run_150', 'run_160', 'run_a', 'run_b', 'run_c')`); n != 5 {
			t.Errorf("%d of those that are needed are left", n)
		}
		if n := a.count(`SELECT COUNT(*) FROM files WHERE run_id IN ('run_150', 'run_160')`); n != 2 {
			t.Errorf("%d of their files", n)
		}
		if n := a.count(`SELECT COUNT(*) FROM runs`); n != 105 {
			t.Errorf("%d runs are left", n)
		}
		// What run_102 made is used again by run_101, which went; what run_92 made
		// by run_91, which stays.
		if n := a.count(`SELECT COUNT(*) FROM blobs WHERE key IN ('blob102', 'blob92')`); n != 1 {
			t.Errorf("%d of the shared bytes are left", n)
		}
		a.whole()
	})
}

func TestRevisionsThatAreInUseStay(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		a := newArchive(t, db, 1000) // ten revisions of each workflow, the runs all of the first
		ctx := t.Context()
		n, err := a.expire(ctx, a.own(ctx), retention.Revisions, 5)
		if err != nil {
			t.Fatal(err)
		}
		// The sixth was made more than five hours before, and is what was there then.
		if left := a.count(`SELECT COUNT(*) FROM workflow_revisions WHERE workflow_id = 'wf_7'`); left != 7 || n != 300 {
			t.Errorf("%d are left, %d deleted", left, n)
		}
		if left := a.count(`SELECT COUNT(*) FROM workflow_revisions WHERE workflow_id = 'wf_7' AND revision IN (1, 5, 10)`); left != 3 {
			t.Errorf("%d of those in use are left", left)
		}
		a.exec(`DELETE FROM runs`)
		if _, err := a.expire(ctx, a.own(ctx), retention.Revisions, -1000); err != nil {
			t.Fatal(err)
		}
		if left := a.count(`SELECT COUNT(*) FROM workflow_revisions`); left != 100 {
			t.Errorf("%d are left, though each workflow has one that is current", left)
		}
	})
}

// breaking fails one statement, as if the process had been killed before it.
type breaking struct {
	querier
	left *int
}

var errKilled = errors.New("killed")

func (b breaking) killed() bool {
	*b.left--
	return *b.left == 0
}

func (b breaking) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if b.killed() {
		return nil, errKilled
	}
	return b.querier.ExecContext(ctx, query, args...)
}

func (b breaking) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if b.killed() {
		return nil, errKilled
	}
	return b.querier.QueryContext(ctx, query, args...)
}

// A thousand of everything, ten thousand in `make chaos`, and whoever deletes is cut
// off again and again at a random statement: the next one finishes, and nothing is
// counted wrong.
func TestDeletingThousandsOfEverythingSurvivesBeingKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		runs, kept := 1000, 100
		if os.Getenv("MILLRACE_TEST_CHAOS") != "" {
			runs = 10000
		}
		a := newArchive(t, db, runs)
		kills := 0
		for _, kind := range []retention.Kind{retention.Logs, retention.Events, retention.Runs, retention.Revisions} {
			for round := 0; ; round++ {
				fence := a.own(t.Context())
				ctx, cancel := context.WithCancel(t.Context())
				if round < 6 {
					a.killSoon(ctx, cancel, 1+rand.IntN(runs/5))
				}
				_, err := a.expire(ctx, fence, kind, kept)
				cancel()
				a.revive()
				a.whole()
				if err == nil {
					break
				}
				kills++
			}
		}
		for table, want := range map[string]int{
			"runs": kept, "run_events": kept * perRun, "run_logs": kept * perRun, "run_attempts": kept * perRun, "run_nodes": kept * perRun,
			"files": kept, "doomed_blobs WHERE key LIKE '%/logs/%'": runs - kept,
		} {
			if n := a.count(`SELECT COUNT(*) FROM ` + table); n != want {
				t.Errorf("%d in %s, want %d", n, table, want)
			}
		}
		if n := a.count(`SELECT COUNT(*) FROM workflow_revisions`); n < 100 || n > 100*110 {
			t.Errorf("%d revisions", n)
		}
		if kills < 8 {
			t.Errorf("killed only %d times", kills)
		}
	})
}

// killSoon has the database cut the work off after some statements.
func (a *archive) killSoon(ctx context.Context, cancel context.CancelFunc, left int) {
	if w := a.db.writer; w != nil {
		_ = w.exclusive(ctx, func(querier) error { w.q = breaking{w.q, &left}; return nil })
		return
	}
	a.db.statement = func(string) {
		if left--; left == 0 {
			cancel()
		}
	}
}

func (a *archive) revive() {
	a.db.statement = nil
	if w := a.db.writer; w != nil {
		_ = w.exclusive(a.t.Context(), func(querier) error {
			if b, ok := w.q.(breaking); ok {
				w.q = b.querier
			}
			return nil
		})
	}
}

// Rows of every kind that has had its time, ten thousand of them.
func TestTenThousandExpiredRowsGoInBatches(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		team, _ := newTeam(t, db)
		a := &archive{t, db, team, 0}
		a.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) INSERT INTO rate_hits (bucket, at, expires_at) SELECT 'b' || (i % 7), i, i FROM n`)
		a.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) INSERT INTO answers (scope, key, fingerprint, status, sealed, created_at) SELECT 's', 'k' || i, 'f', 1, '', i FROM n`)
		fence := a.own(t.Context())
		batches, done := 0, 0
		for more := true; more; batches++ {
			r, err := db.Fenced(fence).DeleteExpired(t.Context(), august)
			if err != nil {
				t.Fatal(err)
			}
			if r.Done > len(allExpired)*upkeepBatch {
				t.Errorf("a batch of %d", r.Done)
			}
			done, more = done+r.Done, r.More
		}
		if batches < 20 || done < 20000 {
			t.Errorf("%d rows in %d batches", done, batches)
		}
		a.own(t.Context())
		if _, err := db.Fenced(fence).DeleteExpired(t.Context(), august); !errors.Is(err, upkeep.ErrLost) {
			t.Errorf("under an old fence: %v", err)
		}
	})
}
