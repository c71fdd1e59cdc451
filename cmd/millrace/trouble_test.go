package main

import (
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
)

// cable is a connection to a server that can be pulled out.
type cable struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	out   bool
	count int // of connections so far

	refused int // connections since it was pulled
	conns   map[net.Conn]bool

	stalled sync.RWMutex // held while nothing gets through
}

func (c *cable) made() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// newCable leads to an address.
func newCable(t *testing.T, to string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c := &cable{listener: l, to: to, conns: map[net.Conn]bool{}}
	go c.serve()
	return c
}

func (c *cable) serve() {
	for {
		near, err := c.listener.Accept()
		if err != nil {
			return
		}
		if !c.add(near) { // without a connection to the server, which would be left there
			near.Close()
			continue
		}
		far, err := net.Dial("tcp", c.to)
		if err != nil {
			near.Close()
			continue
		}
		if !c.add(far) {
			far.Close()
			continue
		}
		go c.copy(near, far)
		go c.copy(far, near)
	}
}

func (c *cable) add(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out {
		c.refused++
		return false
	}
	c.count++
	c.conns[conn] = true
	return true
}

func (c *cable) copy(to, from net.Conn) {
	_, _ = io.Copy(io.MultiWriter(stall{&c.stalled}, to), from)
	to.Close()
	from.Close()
}

// stall lets nothing pass while it is held.
type stall struct{ held *sync.RWMutex }

func (s stall) Write(p []byte) (int, error) {
	s.held.RLock()
	defer s.held.RUnlock()
	return len(p), nil
}

// hang leaves all connections as they are, and lets nothing through for a while.
func (c *cable) hang(t *testing.T, d time.Duration) {
	t.Helper()
	c.stalled.Lock()
	defer c.stalled.Unlock()
	lasts(t, d, func() bool { return !c.stalled.TryRLock() })
}

// away refuses all connections for a while.
func (c *cable) away(t *testing.T, d time.Duration) {
	t.Helper()
	c.pull(true)
	defer c.pull(false)
	lasts(t, d, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.out
	})
}

// restart cuts all connections and takes new ones once it has refused one.
func (c *cable) restart(t *testing.T) {
	t.Helper()
	c.pull(true)
	await(t, "a connection that is refused", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.refused > 0
	})
	c.pull(false)
}

// lasts lets a disturbance last for a time, and fails the test if it ends by itself.
func lasts(t *testing.T, d time.Duration, holds func() bool) {
	t.Helper()
	if !waittest.While(d, holds) {
		t.Error("the disturbance ended early")
	}
}

// pull cuts all connections, and refuses new ones until it is put back.
func (c *cable) pull(out bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out, c.refused = out, 0
	for conn := range c.conns {
		conn.Close()
	}
	clear(c.conns)
}

// The database is away while runs go: their tasks go on, nothing is
// interrupted, lost, doubled or stuck, and who asks is told to come back.
func TestRunsGoOnWhenTheDatabaseWasAway(t *testing.T) {
	t.Parallel()
	database := storetest.Postgres(t)
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	c := newCable(t, u.Host)
	u.Host = c.listener.Addr().String()
	shared := t.TempDir()
	s := start(t, "--data", t.TempDir(), "--database-url", u.String(), "--sandbox", "none", "--capacity", "vcpu=20,ramGb=80",
		"--runs-per-minute", "1000", "--secret-key", strings.Repeat("ab", 32))
	_, cookie, _ := s.signUp("ada")
	mark := fmt.Sprintf(alone, shared)
	w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":"w","definition":{"nodes":[
		{"id":"a","command":%q,"scatter":{"over":"[1,2]"},"outputs":{"o":{"path":"o"}}},{"id":"b","command":%q}],
		"edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}}`,
		mark+"sleep 4; echo x > o", mark+"cat $INPUT_in"), "Cookie", cookie)["id"].(string)
	var ids []string
	for range 10 {
		ids = append(ids, s.want(202, "POST", "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, w), "Cookie", cookie)["runId"].(string))
	}
	await(t, "tasks", func() bool {
		made, _ := filepath.Glob(filepath.Join(shared, "*.lock"))
		return len(made) > 4
	})
	c.pull(true)
	waittest.While(12*time.Second, func() bool {
		status, body, header := s.call("GET", "/api/runs", "", "Cookie", cookie)
		if status != 503 || header.Get("Retry-After") == "" {
			t.Errorf("while it is away a request gets %d %v, Retry-After %q", status, body, header.Get("Retry-After"))
		}
		if status, body, _ := s.call("GET", "/api/health/ready", ""); status != 503 || !strings.Contains(fmt.Sprint(body), "database") {
			t.Errorf("readiness says %d %v", status, body)
		}
		return !t.Failed()
	})
	c.pull(false)
	for range 3 { // and every connection cut once more, while they go on
		before := c.made()
		await(t, "another connection", func() bool { return c.made() > before })
		c.pull(false)
	}
	// A connection that was cut a moment ago may be noticed by the request that
	// uses it.
	await(t, "an answer", func() bool {
		status, _, _ := s.call("GET", "/api/runs", "", "Cookie", cookie)
		return status == 200
	})
	for _, id := range ids {
		if r := s.endedFor(cookie, id); r["status"] != "completed" {
			t.Errorf("%s is %v: %v", id, r["status"], r["errorMessage"])
		}
		for _, task := range []string{"a.0", "a.1", "b.0"} {
			if text, err := os.ReadFile(filepath.Join(shared, id+"."+task)); err != nil || strings.Count(string(text), "\n") != 1 {
				t.Errorf("%s of %s ran as %q, %v", task, id, text, err)
			}
		}
	}
	s.billedOnce(cookie, ids)
}

// A full disk of PostgreSQL is trouble of the service, and nobody's mistake.
func TestFullDiskOfPostgreSQLIs503(t *testing.T) {
	t.Parallel()
	database := storetest.Postgres(t)
	s := start(t, "--data", t.TempDir(), "--database-url", database, "--public-urls", "http://localhost", "--sign-up", "open")
	_, cookie, _ := s.signUp("ada")
	withDatabase(t, database, func(db *sql.DB) error {
		_, err := db.Exec(`
			CREATE FUNCTION full_disk() RETURNS TRIGGER LANGUAGE plpgsql AS $$
				BEGIN RAISE 'could not extend file "base/1/2": No space left on device' USING ERRCODE = 'disk_full'; END $$;
			CREATE TRIGGER full_disk BEFORE INSERT ON workflows FOR EACH ROW EXECUTE FUNCTION full_disk()`)
		return err
	})
	status, answer, header := s.call("POST", "/api/workflows", `{"name":"w"}`, "Cookie", cookie)
	if status != 503 || answer["code"] != "unavailable" || header.Get("Retry-After") == "" {
		t.Errorf("%d %v, Retry-After %q", status, answer, header.Get("Retry-After"))
	}
	withDatabase(t, database, func(db *sql.DB) error { _, err := db.Exec(`DROP TRIGGER full_disk ON workflows`); return err })
	s.want(201, "POST", "/api/workflows", `{"name":"w"}`, "Cookie", cookie)
}
