package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// peer is a server to measure and how to talk to it.
type peer struct {
	name       string
	readyPath  string
	command    func(addr, dir string) []string
	prepare    func(addr, dir string) error    // what it finds in its folder, if anything
	environ    func(addr, dir string) []string // nil: ours
	signIn     func(s settings, p *process) (session, error)
	fileStore  func(p *process) (fileStore, error)                   // for the files part
	taskRunner func(s settings, p peer) (taskRunner, error)          // for the tasks part
	rooms      func(p *process, n int) ([]string, error)             // addresses, for the collab part
	source     func(s settings, p *process, of peer) (source, error) // for the stream part
}

// session is a signed-in user of a running peer.
type session struct {
	listURL, createURL string
	authorization      func() (string, error) // fresh: a token may live for minutes only
	body               func(name string) string
	rows               func(answer []byte) (int, error)
}

const (
	email       = "ada@bench.test"
	password    = "correct horse battery"
	description = "Aligns reads, calls variants, and draws the figures of the paper."
	bareToken   = "tok_0123456789abcdef0123456789abcdef"
)

// apiPeers are the servers that the http part measures.
var apiPeers = []peer{millrace, pocketbase, bare}

var millrace = peer{
	name:      us,
	readyPath: "/api/health/ready",
	command: func(addr, dir string) []string {
		return []string{"millrace", "serve", "--listen", addr, "--data", filepath.Join(dir, "data")}
	},
	signIn: func(_ settings, p *process) (session, error) {
		base := p.base
		jar, err := cookiejar.New(nil)
		if err != nil {
			return session{}, err
		}
		c := caller{client: http.Client{Jar: jar, Timeout: 10 * time.Second}}
		sign := map[string]any{"email": email, "password": password, "name": "Ada Bench"}
		if err := c.post(base+"/auth/sign-up", sign, nil); err != nil {
			return session{}, err
		}
		return session{
			listURL:   base + "/api/workflows?limit=50",
			createURL: base + "/api/workflows",
			authorization: func() (string, error) {
				var answer struct{ Data struct{ Token string } }
				err := c.post(base+"/auth/token", nil, &answer)
				return "Bearer " + answer.Data.Token, err
			},
			body: workflowBody,
			rows: rowsIn("data"),
		}, nil
	},
}

var bare = peer{
	name:      "bare",
	readyPath: "/health",
	command: func(addr, dir string) []string {
		return []string{"httpbare", "-listen", addr, "-db", filepath.Join(dir, "bare.db"), "-token", bareToken}
	},
	signIn: func(_ settings, p *process) (session, error) {
		base := p.base
		return session{
			listURL:       base + "/api/workflows?limit=50",
			createURL:     base + "/api/workflows",
			authorization: func() (string, error) { return "Bearer " + bareToken, nil },
			body:          workflowBody,
			rows:          rowsIn("data"),
		}, nil
	},
}

// PocketBase keeps its own defaults (synchronous=NORMAL among them). The
// collection has the fields of a workflow, a rule that shows a user their own
// rows only, and the index that serves the page. The count of all rows is left
// out, as Millrace does not give one either.
var pocketbase = peer{
	name:      "pocketbase",
	readyPath: "/api/health",
	command: func(addr, dir string) []string {
		return []string{"pocketbase", "serve", "--http", addr, "--dir", filepath.Join(dir, "pb")}
	},
	signIn: signInPocketBase,
}

func signInPocketBase(s settings, p *process) (session, error) {
	base := p.base
	superuser := exec.Command(filepath.Join(s.bin, "pocketbase"), "superuser", "create", email, password, "--dir", filepath.Join(p.dir, "pb"))
	if out, err := superuser.CombinedOutput(); err != nil {
		return session{}, fmt.Errorf("create a superuser: %w: %s", err, out)
	}
	c := caller{client: http.Client{Timeout: 10 * time.Second}}
	login := func(collection string) (token, id string, err error) {
		var answer struct {
			Token  string
			Record struct{ ID string }
		}
		err = c.post(base+"/api/collections/"+collection+"/auth-with-password", map[string]any{"identity": email, "password": password}, &answer)
		return answer.Token, answer.Record.ID, err
	}
	var err error
	if c.auth, _, err = login("_superusers"); err != nil {
		return session{}, err
	}
	user := map[string]any{"email": email, "password": password, "passwordConfirm": password, "name": "Ada Bench"}
	if err := c.post(base+"/api/collections/users/records", user, nil); err != nil {
		return session{}, err
	}
	own := `@request.auth.id != "" && createdBy = @request.auth.id`
	collection := map[string]any{
		"name": "workflows", "type": "base",
		"listRule": own, "viewRule": own, "createRule": own,
		"fields": []map[string]any{
			{"name": "name", "type": "text", "required": true},
			{"name": "description", "type": "text"},
			{"name": "revision", "type": "number"},
			{"name": "nodeCount", "type": "number"},
			{"name": "createdBy", "type": "relation", "collectionId": "_pb_users_auth_", "maxSelect": 1},
			{"name": "lastRuns", "type": "json"},
			{"name": "created", "type": "autodate", "onCreate": true},
			{"name": "updated", "type": "autodate", "onCreate": true, "onUpdate": true},
		},
		"indexes": []string{"CREATE INDEX workflows_newest ON workflows (createdBy, created DESC)"},
	}
	if err := c.post(base+"/api/collections", collection, nil); err != nil {
		return session{}, err
	}
	token, id, err := login("users")
	if err != nil {
		return session{}, err
	}
	records := base + "/api/collections/workflows/records"
	return session{
		listURL:       records + "?perPage=50&skipTotal=1&sort=-created",
		createURL:     records,
		authorization: func() (string, error) { return token, nil },
		body: func(name string) string {
			return encode(map[string]any{"name": name, "description": description, "revision": 1, "createdBy": id, "lastRuns": []any{}})
		},
		rows: rowsIn("items"),
	}, nil
}

func workflowBody(name string) string {
	return encode(map[string]any{"name": name, "description": description})
}

// rowsIn counts the rows of an answer that keeps them in the named field.
func rowsIn(field string) func([]byte) (int, error) {
	return func(answer []byte) (int, error) {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(answer, &fields); err != nil {
			return 0, err
		}
		var rows []json.RawMessage
		err := json.Unmarshal(fields[field], &rows)
		return len(rows), err
	}
}

// seed creates the rows that will be listed.
func seed(s session, rows int) error {
	auth, err := s.authorization()
	if err != nil {
		return err
	}
	names := make(chan string)
	go func() {
		defer close(names)
		for i := range rows {
			names <- fmt.Sprintf("Workflow number %d", i+1)
		}
	}()
	var wg sync.WaitGroup
	failures := make(chan error, rows)
	for range 8 {
		wg.Go(func() {
			c := caller{client: http.Client{Timeout: 10 * time.Second}, auth: auth}
			for name := range names {
				if _, err := c.do(http.MethodPost, s.createURL, s.body(name)); err != nil {
					failures <- err
				}
			}
		})
	}
	wg.Wait()
	close(failures)
	return <-failures
}

// expectRows fails when the list does not answer with this many rows.
func (s session) expectRows(want int) error {
	auth, err := s.authorization()
	if err != nil {
		return err
	}
	c := caller{client: http.Client{Timeout: 10 * time.Second}, auth: auth}
	answer, err := c.do(http.MethodGet, s.listURL, "")
	if err != nil {
		return err
	}
	if got, err := s.rows(answer); err != nil || got != want {
		return fmt.Errorf("a list has %d rows instead of %d (%v)", got, want, err)
	}
	return nil
}

// caller makes the few requests around a load.
type caller struct {
	client http.Client
	auth   string
}

// post sends a value and decodes the answer into another, if one is given.
func (c *caller) post(url string, send, receive any) error {
	body := ""
	if send != nil {
		body = encode(send)
	}
	answer, err := c.do(http.MethodPost, url, body)
	if err != nil || receive == nil {
		return err
	}
	return json.Unmarshal(answer, receive)
}

func (c *caller) get(url string, receive any) error {
	answer, err := c.do(http.MethodGet, url, "")
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, receive)
}

func (c *caller) delete(url string) error {
	_, err := c.do(http.MethodDelete, url, "")
	return err
}

func (c *caller) do(method, url, body string) ([]byte, error) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.auth != "" {
		req.Header.Set("Authorization", c.auth)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode > 299 {
		return nil, fmt.Errorf("%s %s: %s: %s", method, req.URL.Path, resp.Status, bytes.TrimSpace(answer))
	}
	return answer, nil
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // the values are literals above
	}
	return string(b)
}
