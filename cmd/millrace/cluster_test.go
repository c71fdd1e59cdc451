package main

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
)

// member is one process of a cluster, which may come and go.
type member struct {
	*server
	worker bool
	args   []string
}

// cluster is three servers and two workers on one PostgreSQL and one S3 server,
// both behind connections that can be pulled.
type cluster struct {
	t       *testing.T
	members []*member
	admin   *sql.DB // past the pulled connection
	name    string  // of the database
	db      *cable
	objects *cable
	shared  string // a folder in which tasks leave traces
	cookie  string
	flow    string
	runs    []string
}

// startCluster starts all five and one workflow of three tasks, which take
// about as long as is asked for.
func startCluster(t *testing.T, taskSeconds int, extra ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, shared: t.TempDir()}
	databaseURL := c.connectDatabase(storetest.Postgres(t))
	storageURL := c.connectObjects()
	for i := range 5 {
		m := &member{worker: i > 2, args: append([]string{
			"--data", t.TempDir(), "--database-url", databaseURL, "--storage-url", storageURL,
			"--secret-key", strings.Repeat("ab", 32), "--public-urls", "http://localhost", "--sign-up", "open",
			"--sandbox", "none", "--capacity", "vcpu=16,ramGb=64", "--runs-per-minute", "100000",
		}, extra...)}
		c.members = append(c.members, m)
		m.start(t)
	}
	_, c.cookie, _ = c.members[0].signUp("ada")
	mark := fmt.Sprintf(alone, c.shared)
	c.flow = c.members[0].want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":"w","definition":{"nodes":[
		{"id":"a","command":%q,"scatter":{"over":"[1,2]"},"outputs":{"o":{"path":"o"}}},{"id":"b","command":%q}],
		"edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}}`,
		mark+fmt.Sprintf("sleep %d; echo x > o", taskSeconds), mark+"cat $INPUT_in"), "Cookie", c.cookie)["id"].(string)
	return c
}

// connectDatabase leads to the database as a user whom limits concern.
func (c *cluster) connectDatabase(address string) string {
	c.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		c.t.Fatal(err)
	}
	c.name = strings.TrimPrefix(u.Path, "/")
	if c.admin, err = sql.Open("pgx", address); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { c.admin.Close() })
	role := c.name + "_user"
	for _, q := range []string{
		"CREATE ROLE " + role + " LOGIN", "GRANT ALL ON SCHEMA public TO " + role,
		"GRANT ALL ON ALL TABLES IN SCHEMA public TO " + role, "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO " + role,
	} {
		c.sql(q)
	}
	c.t.Cleanup(func() { c.sql("DROP OWNED BY " + role); c.sql("DROP ROLE " + role) })
	c.db = newCable(c.t, u.Host)
	u.User, u.Host = url.User(role), c.db.listener.Addr().String()
	return u.String()
}

func (c *cluster) sql(query string) {
	c.t.Helper()
	if _, err := c.admin.Exec(query); err != nil {
		c.t.Errorf("%s: %v", query, err)
	}
}

func (c *cluster) connectObjects() string {
	c.t.Helper()
	u, err := url.Parse(bucketAddress(c.t))
	if err != nil {
		c.t.Fatal(err)
	}
	q := u.Query()
	endpoint, err := url.Parse(q.Get("endpoint"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.objects = newCable(c.t, endpoint.Host)
	endpoint.Host = c.objects.listener.Addr().String()
	q.Set("endpoint", endpoint.String())
	u.RawQuery = q.Encode()
	return u.String()
}

// start runs the process; one that was there before is followed by its like.
func (m *member) start(t *testing.T) {
	t.Helper()
	if !m.worker {
		m.server = start(t, m.args...)
		return
	}
	m.server = &server{t: t, cmd: millrace(t, append([]string{"worker"}, m.args...)...), log: &lockedBuffer{}}
	m.cmd.Stderr = m.log
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.kill)
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("the worker did not start: %s", m.log)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
}

func (m *member) signal(s syscall.Signal) {
	m.t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		m.t.Error(err)
	}
}

// submit asks the servers in turn for runs, and returns when tasks of several
// run.
func (c *cluster) submit(n int) {
	c.t.Helper()
	c.runs = nil
	for i := range n {
		id := c.members[i%3].want(202, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, c.flow), "Cookie", c.cookie)["runId"].(string)
		c.runs = append(c.runs, id)
	}
	await(c.t, "a start of tasks", func() bool {
		made := 0
		for _, id := range c.runs {
			if found, _ := filepath.Glob(filepath.Join(c.shared, id+".a.?")); len(found) > 0 {
				made++
			}
		}
		return made > n/2
	})
}

// ask looks at the runs through each server until stop: whatever is away, an
// answer comes, and is either right or says when to come back. It comes within ten
// seconds, which can be seen only where nothing else keeps the machine busy.
func (c *cluster) ask(stop <-chan struct{}) *sync.WaitGroup {
	var all sync.WaitGroup
	client := http.Client{Timeout: 5 * time.Minute}
	if long() {
		client.Timeout = 12 * time.Second
	}
	for _, m := range c.members[:3] {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(300 * time.Millisecond):
				}
				r, _ := http.NewRequest("GET", m.base+"/api/runs", nil)
				r.Header.Set("Cookie", c.cookie)
				resp, err := client.Do(r)
				if err != nil {
					c.t.Errorf("no answer: %v", err)
					continue
				}
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != 200 && (resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "") {
					c.t.Errorf("%d %s", resp.StatusCode, body)
				}
			}
		})
	}
	return &all
}

// finish waits for the ends of all runs, and checks them: times says how often
// each task may have been started.
func (c *cluster) finish(times int) {
	c.t.Helper()
	for _, id := range c.runs {
		r := c.ended(id)
		if r["status"] != "completed" {
			c.t.Errorf("%s is %v: %v", id, r["status"], r["errorMessage"])
		}
		for _, task := range []string{"a.0", "a.1", "b.0"} {
			text, err := os.ReadFile(filepath.Join(c.shared, id+"."+task))
			if starts := strings.Fields(string(text)); err != nil || len(starts) > times || strings.Contains(string(text), "doubled") {
				c.t.Errorf("%s of %s ran as %q, %v", task, id, text, err)
			}
		}
		c.members[0].gapless(c.cookie, id, map[string]int{"run.completed": 1})
	}
	c.members[0].billedOnce(c.cookie, c.runs)
	if held := c.members[0].want(200, "GET", "/api/billing/credits", "", "Cookie", c.cookie)["heldCredits"]; held != 0.0 {
		c.t.Errorf("%v credits are still held", held)
	}
	var left int
	if err := c.admin.QueryRow("SELECT count(*) FROM runs WHERE status IN ('queued', 'running')").Scan(&left); err != nil || left != 0 {
		c.t.Errorf("%d runs are left, %v", left, err)
	}
}

// ended follows a run through whichever server answers.
func (c *cluster) ended(id string) (run map[string]any) {
	c.t.Helper()
	if waittest.Until(func() bool { run = c.look(id); return run != nil }) {
		return run
	}
	c.t.Errorf("%s has not ended", id)
	for i, m := range c.members {
		if text := grep(m.log.String(), id); text != "" {
			c.t.Logf("member %d of it:\n%s", i, text)
		}
	}
	return map[string]any{}
}

// look is the run if it has ended, as far as a server answers.
func (c *cluster) look(id string) map[string]any {
	client := http.Client{Timeout: time.Minute}
	for _, m := range c.members[:3] {
		r, _ := http.NewRequest("GET", m.base+"/api/runs/"+id, nil)
		r.Header.Set("Cookie", c.cookie)
		resp, err := client.Do(r)
		if err != nil {
			continue
		}
		var run map[string]any
		err = json.NewDecoder(resp.Body).Decode(&run)
		resp.Body.Close()
		if status, _ := run["status"].(string); err == nil && resp.StatusCode == 200 && status != "queued" && status != "running" {
			return run
		}
	}
	return nil
}

func grep(text, word string) string {
	var found []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			found = append(found, line)
		}
	}
	return strings.Join(found, "")
}
