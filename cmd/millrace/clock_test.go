package main

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/clock"
	"github.com/millrace/millrace/internal/store/storetest"
)

// clockFile is the variable that names the file which says how far the clock of a
// process is wrong.
const clockFile = "MILLRACE_TEST_CLOCK"

// setClock makes the clock of this process wrong, if it was started so.
func setClock() {
	file := os.Getenv(clockFile)
	if file == "" {
		return
	}
	clock.System = func() time.Time {
		text, err := os.ReadFile(file)
		off, wrong := time.ParseDuration(string(text))
		if err != nil || wrong != nil {
			panic(fmt.Sprint(err, wrong))
		}
		return time.Now().Add(off).Round(0) // a clock that is set has no monotonic part
	}
}

// replicas are two servers on one PostgreSQL, of which the second has a wrong clock.
type replicas struct {
	t            *testing.T
	right, wrong *server
	folder       string // of the wrong one
	clock        string // the file that says how wrong it is
	url          string
	db           *sql.DB

	who   []string // signed in
	runs  []string
	marks string // a folder in which tasks leave traces, and wait
}

// startReplicas starts both. The wrong one is the first on an empty database, so that
// the first key is its own.
func startReplicas(t *testing.T, off time.Duration) *replicas {
	t.Helper()
	r := &replicas{t: t, marks: t.TempDir(), folder: t.TempDir(), clock: filepath.Join(t.TempDir(), "clock"), url: storetest.Postgres(t)}
	db, err := sql.Open("pgx", r.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	r.db = db
	r.exec(`CREATE TABLE test_clock (ahead INTERVAL)`)
	r.exec(`INSERT INTO test_clock VALUES ('0')`)
	r.exec(`CREATE FUNCTION public.clock_timestamp() RETURNS TIMESTAMPTZ LANGUAGE SQL AS 'SELECT pg_catalog.clock_timestamp() + ahead FROM test_clock'`)
	r.exec(`DO 'BEGIN EXECUTE format(''ALTER DATABASE %I SET search_path = public, pg_catalog'', current_database()); END'`)
	r.setClock(off)
	r.wrong = launch(t, r.command("serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data", r.folder))
	right := r.command("serve", "--listen", "127.0.0.1:0", "--data", t.TempDir())
	right.Env = slices.DeleteFunc(right.Env, func(v string) bool { return strings.HasPrefix(v, clockFile+"=") })
	r.right = launch(t, right)
	return r
}

// command is one on the machine with the wrong clock.
func (r *replicas) command(args ...string) *exec.Cmd {
	r.t.Helper()
	c := millrace(r.t, append(args, "--database-url", r.url, "--secret-key", "shared by all replicas",
		"--public-urls", "http://localhost", "--sign-up", "open", "--sandbox", "none", "--capacity", "vcpu=4,ramGb=16")...)
	c.Env = append(c.Env, clockFile+"="+r.clock)
	return c
}

func (r *replicas) exec(query string, args ...any) {
	r.t.Helper()
	if _, err := r.db.Exec(query, args...); err != nil {
		r.t.Fatal(err)
	}
}

// setClock sets the clock of the wrong machine.
func (r *replicas) setClock(off time.Duration) {
	r.t.Helper()
	temp := r.clock + ".new"
	if err := errors.Join(os.WriteFile(temp, []byte(off.String()), 0o600), os.Rename(temp, r.clock)); err != nil {
		r.t.Fatal(err)
	}
}

// setDatabaseClock sets the clock of the database.
func (r *replicas) setDatabaseClock(off time.Duration) {
	r.t.Helper()
	r.exec(`UPDATE test_clock SET ahead = make_interval(secs => $1)`, off.Seconds())
}

// reported is what the server with the wrong clock last said of itself, and when.
func (r *replicas) reported() (problem string, seen int64) {
	r.t.Helper()
	err := r.db.QueryRow(`SELECT problem, seen_at FROM workers WHERE host LIKE '%:' || $1::text || '/attempts'`, r.folder).Scan(&problem, &seen)
	if err != nil && !errors.Is(err, sql.ErrNoRows) { // one that has not reported for hours is forgotten
		r.t.Error(err)
	}
	return problem, seen
}

// awaitReports waits until the server has reported twice: in between it has looked
// several times for runs that it could take.
func (r *replicas) awaitReports() {
	r.t.Helper()
	for range 2 {
		_, before := r.reported()
		await(r.t, "a report of the server with the wrong clock", func() bool { _, seen := r.reported(); return seen != before })
	}
}

// begin submits four runs, each server having room for two, and waits until some of
// them have started. Their tasks wait for finish.
func (r *replicas) begin(starts int) {
	r.t.Helper()
	token, cookie, _ := r.right.signUp("ada")
	r.who = []string{"Cookie", cookie}
	flow := r.right.workflow(token, fmt.Sprintf(`{"nodes":[{"id":"a","command":%q}]}`,
		fmt.Sprintf(`echo start >> %[1]s/$RUN_ID; until [ -e %[1]s/go ]; do sleep 0.1; done`, r.marks)))
	for range 4 {
		r.runs = append(r.runs, r.right.run(token, fmt.Sprintf(`{"workflowId":%q}`, flow)))
	}
	await(r.t, fmt.Sprintf("the start of %d runs", starts), func() bool {
		begun, _ := filepath.Glob(filepath.Join(r.marks, "run_*"))
		return len(begun) == starts
	})
}

// finish lets the tasks end, and checks that each ran once.
func (r *replicas) finish() {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.marks, "go"), nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
	for _, id := range r.runs {
		run := r.right.endedAs(id, r.who...)
		if !once(run) {
			r.t.Errorf("%s: %v\n%s", id, run, r.wrong.log)
		}
		if run["creditsUsed"].(float64) > 10 { // which is an hour
			r.t.Errorf("%s costs %v", id, run["creditsUsed"])
		}
		if at(r.t, run["startedAt"]).Before(at(r.t, run["createdAt"])) {
			r.t.Errorf("%s was started at %v and created at %v", id, run["startedAt"], run["createdAt"])
		}
		if text, err := os.ReadFile(filepath.Join(r.marks, id)); string(text) != "start\n" {
			r.t.Errorf("the task of %s was started as %q, %v", id, text, err)
		}
	}
}

// A server whose clock is wrong harms no run: not those of others, which it does not
// take for abandoned, and not its own, which others do not take for abandoned.
func TestWrongClockHarmsNoRun(t *testing.T) {
	t.Parallel()
	for off, starts := range map[time.Duration]int{90 * time.Second: 2, -90 * time.Second: 2, 40 * time.Second: 4, -40 * time.Second: 4} {
		t.Run(off.String(), func(t *testing.T) {
			t.Parallel()
			r := startReplicas(t, off)
			r.begin(starts)
			r.awaitReports()
			if problem, _ := r.reported(); strings.Contains(problem, "the clock of this machine is 1m30s") != (starts == 2) {
				t.Errorf("the server says of itself: %q", problem)
			}
			r.finish()
		})
	}
}

// A clock that is set wrong while its server works is reported, and harms no run.
func TestClockThatJumpsHarmsNoRun(t *testing.T) {
	t.Parallel()
	r := startReplicas(t, 0)
	r.begin(4)
	for _, tt := range []struct {
		off                     time.Duration
		problem, logged, doctor string
	}{
		{90 * time.Second, "ahead of the database's", "this process takes no runs", "warning  clock: the clock of this machine is 1m30s ahead of the database's"},
		{-10 * time.Second, "", "is 10s behind the database's", "warning  clock: the clock of this machine is 10s behind the database's"},
		{0, "", "the clock is right again", "ok       clock"},
	} {
		r.setClock(tt.off)
		await(t, tt.logged, func() bool { return strings.Contains(r.wrong.log.String(), tt.logged) })
		await(t, fmt.Sprintf("%q", tt.problem), func() bool {
			problem, _ := r.reported()
			return strings.Contains(problem, tt.problem) && (problem == "") == (tt.problem == "")
		})
		metric := regexp.MustCompile(`(?m)^millrace_clock_offset_seconds (\S+)`).FindStringSubmatch(r.wrong.scraped())
		if got, err := strconv.ParseFloat(metric[1], 64); err != nil || math.Abs(got-tt.off.Seconds()) > 2 {
			t.Errorf("%s: the metric is %v, %v", tt.off, got, err)
		}
		out, _ := r.command("admin", "doctor", "--data", r.folder).CombinedOutput() // which may find more
		if !strings.Contains(string(out), tt.doctor) {
			t.Errorf("%s: the doctor says\n%s", tt.off, out)
		}
	}
	r.finish()
}

// The database's clock jumps, as when another machine takes its place, and the clock of
// one server with it: leases that were written before do not count as expired after.
func TestDatabaseClockThatJumpsHarmsNoRun(t *testing.T) {
	t.Parallel()
	r := startReplicas(t, 0)
	r.begin(4)
	for _, off := range []time.Duration{10 * time.Hour, -10 * time.Hour} {
		r.setClock(off)
		r.setDatabaseClock(off)
		r.awaitReports()
	}
	for _, s := range []*server{r.right, r.wrong} {
		if !strings.Contains(s.log.String(), "the clock of the database has jumped") {
			t.Errorf("a server did not notice:\n%s", s.log)
		}
	}
	r.finish()
}

// People sign up on both servers of a fresh installation of which one is ahead, and what
// one signs is good on the other.
func TestPeopleSignUpWhileOneServerIsAhead(t *testing.T) {
	t.Parallel()
	r := startReplicas(t, 2*time.Minute)
	for name, servers := range map[string][2]*server{"ada": {r.wrong, r.right}, "bob": {r.right, r.wrong}} {
		mine, other := servers[0], servers[1]
		token, cookie, _ := mine.signUp(name)
		second := other.want(200, "POST", "/auth/token", "", "Cookie", cookie)["token"].(string)
		for _, s := range servers {
			s.want(200, "GET", "/api/me", "", "Authorization", bearer(token))
			s.want(200, "GET", "/api/me", "", "Authorization", bearer(second))
		}
		address, _ := mine.presign(token, "numbers.txt", 2)
		if u, err := url.Parse(address); err != nil || put(t, other.base+u.RequestURI(), strings.NewReader("1\n"), 2) != 200 {
			t.Errorf("%s cannot upload: %v", name, err)
		}
	}
}
