package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/admission"
	"github.com/millrace/millrace/internal/sizetest"
)

// fillRuns makes 10,000 queued, 10,000 running and 500,000 ended runs of 100
// teams with two attempts each, and a log of 100,000 pieces.
const fillRuns = `
	INSERT INTO teams (id, name, plan, created_at) SELECT 't' || n, 'T', 'free', 1 FROM generate_series(0, 99) n;
	INSERT INTO runs (id, team_id, workflow_id, workflow_name, workflow_revision, definition, parameters, inputs, vcpu, ram_gb, gpu, price,
		starter_type, starter_id, starter_name, status, total_nodes, seq, owner, fence, lease_until, claimed_at, created_at, finished_at, number)
	SELECT 'r' || LPAD(n::text, 8, '0'), 't' || n % 100, 'w' || n % 1000, 'W', 1, REPEAT('x', 500), '{}', '{}', 2, 8, 0, 1, 'user', 'u', 'Ada',
		CASE WHEN n < 500000 THEN 'completed' WHEN n < 510000 THEN 'running' ELSE 'queued' END, 2, 5,
		CASE WHEN n BETWEEN 500000 AND 509999 THEN 'host' || n % 10 || ' w' ELSE '' END, 1,
		CASE WHEN n BETWEEN 500000 AND 509999 THEN 4000000000000000 ELSE 0 END, 1, n, CASE WHEN n < 500000 THEN n END, n
	FROM generate_series(0, 519999) n;
	INSERT INTO run_attempts (run_id, node_id, shard, attempt, fence, host, state, away_until, started_at)
	SELECT 'r' || LPAD(n::text, 8, '0'), node, 0, 1, 'f' || n || node, 'host' || n % 10, CASE WHEN n >= 500000 AND node = 'b' THEN 'started' ELSE 'succeeded' END, 1, 1
	FROM generate_series(0, 509999) n, (VALUES ('a'), ('b')) AS nodes (node);
	INSERT INTO run_logs (run_id, start, node_id, shard, attempt, node_start, size, text)
	SELECT 'r00500000', n * 10, 'a', 0, 1, n * 10, 10, 'ten bytes!' FROM generate_series(0, 99999) n;
	INSERT INTO rate_hits (bucket, at, expires_at) SELECT 'address ' || n % 5000, n, 4000000000000000 FROM generate_series(1, 500000) n;
	ANALYZE`

// TestReadingAndClaimingAreCheap looks at the plans that PostgreSQL makes for
// what workers ask again and again, and prints them with their times:
//
//	MILLRACE_TEST_ALL=1 scripts/with-postgres go test ./internal/store -run Cheap -v
func TestReadingAndClaimingAreCheap(t *testing.T) {
	if !sizetest.All() {
		t.Skip("it takes minutes: make test-all")
	}
	url, ctx := databases.Postgres(t), t.Context()
	var asked []string
	db, err := Open(ctx, Options{URL: url, SecretKey: "a secret key for tests only", Statement: func(s string) { asked = append(asked, s) }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for statement := range strings.SplitSeq(fillRuns, ";\n") {
		if _, err := db.pool.ExecContext(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	explain, err := db.pool.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer explain.Close()
	now := time.UnixMicro(1_000_000)
	held := make([]runs.HeldRun, 1000)
	for i := range held {
		held[i] = runs.HeldRun{Run: ids.Run(fmt.Sprintf("r%08d", 500000+10*i)), Fence: 1}
	}
	for name, call := range map[string]func(context.Context) error{
		"claim": func(ctx context.Context) error {
			_, err := db.ClaimRuns(ctx, admission.Claim{Owner: "host0 w", Host: "host0", Total: credits.Size{VCPU: 64, RAMGB: 256}, Most: 1000}, now, now.Add(time.Minute))
			return err
		},
		"claim with room for four": func(ctx context.Context) error {
			_, err := db.ClaimRuns(ctx, admission.Claim{Owner: "new w", Host: "new", Total: credits.Size{VCPU: 8, RAMGB: 256}, Most: 1000}, now, now.Add(time.Minute))
			return err
		},
		"take over": func(ctx context.Context) error {
			_, err := db.TakeOver(ctx, runs.TakeOver{Owner: "new w", Host: "new", AbandonAfter: time.Minute}, now, now.Add(time.Minute))
			return err
		},
		"renew 1,000 leases": func(ctx context.Context) error {
			known, err := db.RenewLeases(ctx, held, time.UnixMicro(4000000000000001))
			if err == nil && len(known.Kept) != len(held) {
				err = fmt.Errorf("%d of %d were kept", len(known.Kept), len(held))
			}
			return err
		},
		"live attempts": func(ctx context.Context) error { _, err := db.LiveFences(ctx, "host3"); return err },
		"wishes to end": func(ctx context.Context) error { _, err := db.Cancelling(ctx, "host3 w"); return err },
		"why it waits": func(ctx context.Context) error {
			_, err := db.QueueState(ctx, "t1", []ids.Run{"r00515001"}, now)
			return err
		},
		"tail of a log": func(ctx context.Context) error {
			_, err := db.LogPieces(ctx, "t0", "r00500000", 990000, 1000000)
			return err
		},
		"tail of a node": func(ctx context.Context) error {
			_, err := db.NodeLogPieces(ctx, "t0", "r00500000", "a", 0, 990000, 1000000)
			return err
		},
		"end of a log": func(ctx context.Context) error { _, err := db.NodeLogSize(ctx, "t0", "r00500000", "a", 0); return err },
		"hits of address": func(ctx context.Context) error {
			_, err := db.TakeHit(ctx, "address 7", limits.Window{Most: 1000, Per: time.Minute}, now)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var fastest time.Duration
			for range 5 {
				asked = nil
				began := time.Now()
				if err := call(ctx); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); fastest == 0 || took < fastest {
					fastest = took
				}
			}
			t.Logf("%s: %d statements, fastest of five %s", name, len(asked), fastest)
			for _, s := range asked {
				plan := planOf(t, explain, s)
				if strings.Contains(plan, "Seq Scan on runs") || strings.Contains(plan, "Seq Scan on run_") || strings.Contains(plan, "Seq Scan on rate_hits") {
					t.Errorf("the whole table is read:\n%s\n%s", s, plan)
				}
				t.Logf("%s\n%s", strings.Join(strings.Fields(s), " ")[:min(120, len(strings.Join(strings.Fields(s), " ")))], plan)
			}
		})
	}
}

// planOf is how PostgreSQL would carry a statement out, whatever its arguments.
func planOf(t *testing.T, conn *sql.Conn, statement string) string {
	t.Helper()
	first, _, _ := strings.Cut(strings.TrimSpace(statement), " ")
	if !slices.Contains([]string{"SELECT", "UPDATE", "WITH"}, first) {
		return ""
	}
	var plan []string
	err := conn.Raw(func(driver any) error {
		nulls := strings.TrimPrefix(strings.Repeat(", NULL", arguments(statement)), ", ")
		if nulls != "" {
			nulls = "(" + nulls + ")"
		}
		text := "DEALLOCATE ALL; SET plan_cache_mode = force_generic_plan; PREPARE asked AS " + statement + "; EXPLAIN (COSTS FALSE) EXECUTE asked" + nulls
		results, err := driver.(*stdlib.Conn).Conn().PgConn().Exec(t.Context(), text).ReadAll()
		for _, r := range results {
			for _, row := range r.Rows {
				plan = append(plan, string(row[0]))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "\n")
}

// arguments is how many a statement has.
func arguments(statement string) (n int) {
	for strings.Contains(statement, fmt.Sprintf("$%d", n+1)) {
		n++
	}
	return n
}
