package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// state is what the database says of itself.
type state struct {
	calls       int
	ms, queueMS float64
	started     int
	tables      map[string]int
}

// ours leaves out what this program asks.
const ours = `query NOT LIKE '%scaleload%' AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())`

func (in *installation) database() (s state, err error) {
	rows, err := in.query(`SELECT /* scaleload */ coalesce(sum(calls), 0), coalesce(sum(total_exec_time), 0),
		coalesce(sum(total_exec_time) FILTER (WHERE query LIKE '%RECURSIVE executors%' OR query LIKE '%) older)%'), 0),
		(SELECT count(*) FROM runs WHERE started_at IS NOT NULL) FROM pg_stat_statements WHERE ` + ours)
	if err != nil {
		return s, err
	}
	s.calls, s.started = whole(rows[0][0]), whole(rows[0][3])
	s.ms, s.queueMS = number(rows[0][1]), number(rows[0][2])
	s.tables = map[string]int{}
	rows, err = in.query(`SELECT /* scaleload */ relname, pg_total_relation_size(relid) FROM pg_stat_user_tables`)
	for _, r := range rows {
		s.tables[r[0]] = whole(r[1])
	}
	return s, err
}

func whole(text string) int { n, _ := strconv.ParseFloat(text, 64); return int(n) }

func number(text string) float64 { n, _ := strconv.ParseFloat(text, 64); return n }

func (in *installation) awaitEnd() error {
	return in.await(`SELECT /* scaleload */ count(*) FROM runs WHERE finished_at IS NULL`, func(n int) bool { return n == 0 })
}

func (in *installation) awaitStarts(n int) error {
	return in.await(`SELECT /* scaleload */ count(*) FROM runs WHERE started_at IS NOT NULL`, func(found int) bool { return found >= n })
}

func (in *installation) await(query string, done func(int) bool) error {
	last, since := -1, time.Now()
	for pause := time.Duration(0); ; time.Sleep(pause) {
		asked := time.Now()
		rows, err := in.query(query)
		pause = max(200*time.Millisecond, 20*time.Since(asked)) // among many runs, asking is work for the database
		if err != nil {
			return err
		}
		n := whole(rows[0][0])
		if done(n) {
			return nil
		}
		if n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) > 2*time.Minute {
			return fmt.Errorf("nothing has happened for two minutes: %s says %d; logs are in %s", query, n, in.dir)
		}
	}
}

// reportRuns says how fast runs began, how long they waited, and how even the teams'
// shares were while all of them had some.
func (in *installation) reportRuns() error {
	rows, err := in.query(`WITH /* scaleload */ busy AS (SELECT team_id, max(started_at) AS last FROM runs GROUP BY team_id),
		shares AS (SELECT r.team_id, count(*) AS n FROM runs r WHERE r.started_at <= (SELECT min(last) FROM busy) GROUP BY r.team_id)
		SELECT count(*) / greatest((max(started_at) - min(started_at)) / 1e6, 0.001),
			percentile_cont(0.5) WITHIN GROUP (ORDER BY (started_at - created_at) / 1e6), percentile_cont(0.99) WITHIN GROUP (ORDER BY (started_at - created_at) / 1e6),
			count(*) FILTER (WHERE status <> 'completed'),
			(SELECT sum(n) * sum(n) / (count(*) * sum(n * n)) FROM shares), (SELECT count(*) FROM shares),
			percentile_cont(0.5) WITHIN GROUP (ORDER BY (finished_at - started_at) / 1e6)
		FROM runs`)
	if err != nil {
		return err
	}
	r := rows[0]
	fmt.Printf("runs started a second: %.0f; waited p50 %.1f s, p99 %.1f s; took p50 %.2f s; %s did not complete\nfairness (Jain) %.3f over %s teams, until the first had no more\n",
		number(r[0]), number(r[1]), number(r[2]), number(r[6]), r[3], number(r[4]), r[5])
	return nil
}

// reportRate says how fast the newest runs began, once the first of them had.
func (in *installation) reportRate(n int) error {
	rows, err := in.query(fmt.Sprintf(`SELECT /* scaleload */ count(*) / greatest((max(started_at) - min(started_at)) / 1e6, 0.001)
		FROM (SELECT started_at FROM runs WHERE started_at IS NOT NULL ORDER BY started_at DESC LIMIT %d) newest`, n))
	if err == nil {
		fmt.Printf("%.0f started a second\n", number(rows[0][0]))
	}
	return err
}

// reportStatements lists what the database spent most time on for so many runs.
func (in *installation) reportStatements(runs float64) error {
	rows, err := in.query(`SELECT /* scaleload */ total_exec_time, calls, left(regexp_replace(query, '\s+', ' ', 'g'), 110) FROM pg_stat_statements WHERE ` + ours + ` ORDER BY 1 DESC LIMIT 8`)
	if err != nil {
		return err
	}
	fmt.Println("most time of the database:")
	for _, r := range rows {
		fmt.Printf("  %8.2f ms a run, %6.2f calls: %s\n", number(r[0])/runs, number(r[1])/runs, r[2])
	}
	return nil
}

func (in *installation) reportGrowth(before map[string]int) error {
	after, err := in.database()
	if err != nil {
		return err
	}
	var names []string
	total := 0
	for name, size := range after.tables {
		if size > before[name] {
			names, total = append(names, name), total+size-before[name]
		}
	}
	slices.SortFunc(names, func(a, b string) int { return (after.tables[b] - before[b]) - (after.tables[a] - before[a]) })
	fmt.Printf("tables grew by %.1f kB a run:", float64(total)/1024/float64(in.s.runs))
	for _, name := range names[:min(8, len(names))] {
		fmt.Printf(" %s %.1f", name, float64(after.tables[name]-before[name])/1024/float64(in.s.runs))
	}
	fmt.Println()
	return nil
}

// clones are queued runs like the newest one of each team, behind all others, which
// nobody has to read into the index for words. Ids differ between lengths, each twice the
// one before at least.
func clones(n int) string {
	return fmt.Sprintf(`INSERT /* scaleload */ INTO runs SELECT copied.* FROM (
			SELECT to_jsonb(r) AS run, %[1]d + row_number() OVER () AS at FROM
				(SELECT DISTINCT ON (team_id) * FROM runs WHERE status = 'queued' ORDER BY team_id, id DESC) r
				CROSS JOIN generate_series(0, %[1]d / (SELECT count(DISTINCT team_id) FROM runs WHERE status = 'queued'))
			LIMIT %[1]d
		) lines CROSS JOIN LATERAL jsonb_populate_record(NULL::runs, run || jsonb_build_object('id', 'run_z' || lpad(at::text, 31, '0'), 'number', 1000000 + at, 'search_due', false, 'search_version', 1)) copied;
		INSERT INTO run_events (run_id, seq, type, at, message) SELECT id, 1, 'run_queued', created_at, 'the run waits for its turn' FROM runs WHERE id LIKE 'run_z%%' AND status = 'queued';
		ANALYZE runs`, n)
}

// usage is CPU time.
type usage struct{ servers, workers, postgres time.Duration }

func (u usage) minus(v usage) usage {
	return usage{u.servers - v.servers, u.workers - v.workers, u.postgres - v.postgres}
}

func (in *installation) used() (u usage) {
	for _, p := range in.servers {
		u.servers += ticks(p.cmd.Process.Pid)
	}
	for _, p := range in.workers {
		u.workers += ticks(p.cmd.Process.Pid)
	}
	u.postgres = in.postgresCPU()
	return u
}

// postgresCPU is that of the server and all its processes, those that ended, too.
func (in *installation) postgresCPU() (sum time.Duration) {
	rows, err := in.query("SHOW data_directory")
	if err != nil {
		return 0
	}
	text, err := os.ReadFile(filepath.Join(rows[0][0], "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid := whole(first)
	sum = ticks(pid)
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(children)) {
			sum += ticks(whole(child))
		}
	}
	return sum
}

// ticks is the CPU time of a process and its children that have ended.
func ticks(pid int) (sum time.Duration) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	all := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux we run on
	for _, i := range []int{11, 12, 13, 14} {
		sum += time.Duration(whole(all[i])) * tick
	}
	return sum
}

func (in *installation) reportProcesses(before usage, lasted time.Duration) {
	u := in.used().minus(before)
	per := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(in.s.runs) }
	fmt.Printf("CPU for each run while they were executed: servers %.1f ms, workers %.1f ms, PostgreSQL %.1f ms; %.1f s in all\n", per(u.servers), per(u.workers), per(u.postgres), lasted.Seconds())
	for _, p := range slices.Concat(in.servers, in.workers) {
		fmt.Printf("  %s: %.0f MB at most\n", p.name, peak(p.cmd.Process.Pid))
	}
}

func peak(pid int) float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	if f := strings.Fields(rest); len(f) > 0 {
		return number(f[0]) / 1024
	}
	return 0
}
