// Httpbare is the floor of the API numbers: the same two requests as a bare
// net/http and SQLite program would serve them, with nothing it could leave
// out. The token is looked up in the database per request, a row has the fields
// of a Millrace workflow, and a create is on disk (synchronous=FULL) before it
// is answered, many waiting creates sharing one commit.
//
//	GET  /api/workflows?limit=50
//	POST /api/workflows {"name": …, "description": …}
package main

import (
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"log"
	"net/http"
	"strings"
	"time"

	_ "modernc.org/sqlite"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9702", "address")
	file := flag.String("db", "bare.db", "database file; must not exist")
	token := flag.String("token", "", "the bearer token of the one user")
	flag.Parse()

	s, err := open(*file, *token)
	if err != nil {
		log.Fatal(err)
	}
	go s.commit()

	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	mux.HandleFunc("GET /api/workflows", s.list)
	mux.HandleFunc("POST /api/workflows", s.create)
	log.Fatal(http.ListenAndServe(*listen, mux))
}

type server struct {
	write                      *sql.DB
	caller, page, runs, insert *sql.Stmt
	creates                    chan *create
}

type caller struct{ user, name, team string }

type person struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type run struct {
	ID         string `json:"id"`
	Status     string `json:"status"`
	DurationMs int64  `json:"durationMs"`
	FinishedAt string `json:"finishedAt"`
}

type workflow struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Revision    int    `json:"revision"`
	NodeCount   int    `json:"nodeCount"`
	CreatedBy   person `json:"createdBy"`
	CreatedAt   string `json:"createdAt"`
	UpdatedAt   string `json:"updatedAt"`
	LastRuns    []run  `json:"lastRuns"`
}

// create is one row on its way to the disk.
type create struct {
	id, team, user, name, description string
	at                                int64
	done                              chan error
}

const schema = `
CREATE TABLE users (id TEXT PRIMARY KEY, name TEXT NOT NULL, team TEXT NOT NULL);
CREATE TABLE tokens (hash TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users);
CREATE TABLE workflows (
	id TEXT PRIMARY KEY, team TEXT NOT NULL, name TEXT NOT NULL, description TEXT NOT NULL,
	revision BIGINT NOT NULL, node_count BIGINT NOT NULL, created_by TEXT NOT NULL REFERENCES users,
	created_at BIGINT NOT NULL, updated_at BIGINT NOT NULL);
CREATE INDEX workflows_newest ON workflows (team, created_at DESC, id DESC);
CREATE TABLE runs (
	id TEXT PRIMARY KEY, workflow_id TEXT NOT NULL REFERENCES workflows, status TEXT NOT NULL,
	duration_ms BIGINT NOT NULL, finished_at BIGINT NOT NULL);
CREATE INDEX runs_of ON runs (workflow_id, finished_at DESC);`

func open(file, token string) (*server, error) {
	dsn := "file:" + file + "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)" +
		"&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)"
	write, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	write.SetMaxOpenConns(1)
	read, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	read.SetMaxOpenConns(8)
	read.SetMaxIdleConns(8)

	if _, err := write.Exec(schema); err != nil {
		return nil, err
	}
	if _, err := write.Exec(`INSERT INTO users VALUES ('user_1', 'Ada Bench', 'team_1')`); err != nil {
		return nil, err
	}
	if _, err := write.Exec(`INSERT INTO tokens VALUES ($1, 'user_1')`, hash(token)); err != nil {
		return nil, err
	}

	s := &server{write: write, creates: make(chan *create, 1024)}
	// A literal LIMIT: SQLite looks into a bound one and for that prepares the
	// statement again at every execution.
	for _, p := range []struct {
		stmt **sql.Stmt
		db   *sql.DB
		text string
	}{
		{&s.caller, read, `SELECT u.id, u.name, u.team FROM tokens t JOIN users u ON u.id = t.user_id WHERE t.hash = $1`},
		{&s.page, read, `
			SELECT w.id, w.name, w.description, w.revision, w.node_count, u.id, u.name, w.created_at, w.updated_at
			FROM workflows w JOIN users u ON u.id = w.created_by
			WHERE w.team = $1 ORDER BY w.created_at DESC, w.id DESC LIMIT 50`},
		{&s.runs, read, `
			SELECT workflow_id, id, status, duration_ms, finished_at FROM runs WHERE workflow_id IN
				(SELECT id FROM workflows WHERE team = $1 ORDER BY created_at DESC, id DESC LIMIT 50)
			ORDER BY finished_at DESC`},
		{&s.insert, write, `INSERT INTO workflows VALUES ($1, $2, $3, $4, 1, 0, $5, $6, $6)`},
	} {
		if *p.stmt, err = p.db.Prepare(p.text); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *server) who(r *http.Request) (c caller, err error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return c, errors.New("no token")
	}
	err = s.caller.QueryRow(hash(token)).Scan(&c.user, &c.name, &c.team)
	return c, err
}

func (s *server) list(w http.ResponseWriter, r *http.Request) {
	c, err := s.who(r)
	if err != nil {
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	page, err := s.newest(c.team)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, http.StatusOK, page)
}

func (s *server) newest(team string) ([]workflow, error) {
	rows, err := s.page.Query(team)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	page := make([]workflow, 0, 50)
	at := make(map[string]int, 50)
	for rows.Next() {
		var f workflow
		var created, updated int64
		if err := rows.Scan(&f.ID, &f.Name, &f.Description, &f.Revision, &f.NodeCount,
			&f.CreatedBy.ID, &f.CreatedBy.Name, &created, &updated); err != nil {
			return nil, err
		}
		f.CreatedAt, f.UpdatedAt, f.LastRuns = stamp(created), stamp(updated), []run{}
		at[f.ID] = len(page)
		page = append(page, f)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}

	runs, err := s.runs.Query(team)
	if err != nil {
		return nil, err
	}
	defer runs.Close()
	for runs.Next() {
		var of string
		var one run
		var finished int64
		if err := runs.Scan(&of, &one.ID, &one.Status, &one.DurationMs, &finished); err != nil {
			return nil, err
		}
		one.FinishedAt = stamp(finished)
		if i, ok := at[of]; ok && len(page[i].LastRuns) < 10 {
			page[i].LastRuns = append(page[i].LastRuns, one)
		}
	}
	return page, runs.Err()
}

func (s *server) create(w http.ResponseWriter, r *http.Request) {
	c, err := s.who(r)
	if err != nil {
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	var body struct{ Name, Description string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Name == "" {
		http.Error(w, "a name is needed", http.StatusBadRequest)
		return
	}
	n := &create{
		id: "wf_" + rand.Text(), team: c.team, user: c.user, name: body.Name, description: body.Description,
		at: time.Now().UnixMicro(), done: make(chan error, 1),
	}
	s.creates <- n
	if err := <-n.done; err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, http.StatusCreated, workflow{
		ID: n.id, Name: n.name, Description: n.description, Revision: 1, CreatedBy: person{c.user, c.name},
		CreatedAt: stamp(n.at), UpdatedAt: stamp(n.at), LastRuns: []run{},
	})
}

// commit writes all creates that wait in one transaction, for ever.
func (s *server) commit() {
	for first := range s.creates {
		batch := []*create{first}
		for len(s.creates) > 0 && len(batch) < 256 {
			batch = append(batch, <-s.creates)
		}
		err := s.insertAll(batch)
		for _, n := range batch {
			n.done <- err
		}
	}
}

func (s *server) insertAll(batch []*create) error {
	tx, err := s.write.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	insert := tx.Stmt(s.insert)
	for _, n := range batch {
		if _, err := insert.Exec(n.id, n.team, n.name, n.description, n.user, n.at); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func answer(w http.ResponseWriter, status int, data any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(struct {
		Success bool `json:"success"`
		Data    any  `json:"data"`
	}{true, data})
}

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func stamp(micros int64) string {
	return time.UnixMicro(micros).UTC().Format("2006-01-02T15:04:05.000Z")
}
