package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// installation is the servers and workers, and the teams that use them.
type installation struct {
	s       settings
	dir     string
	servers []*process
	workers []*process
	teams   []team
	http    http.Client
	once    sync.Once
}

type team struct{ token, workflow, address string }

type process struct {
	name, base string
	cmd        *exec.Cmd
	ended      chan struct{}
}

// prepare starts the servers and makes the teams.
func prepare(s settings) (*installation, error) {
	dir, err := os.MkdirTemp("", "millrace-scale-")
	if err != nil {
		return nil, err
	}
	in := &installation{s: s, dir: dir, http: http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}}
	if err := in.begin(); err != nil {
		in.stop()
		return nil, err
	}
	return in, nil
}

func (in *installation) begin() error {
	if err := in.sql("CREATE EXTENSION IF NOT EXISTS pg_stat_statements"); err != nil {
		return err
	}
	plans := `{"plans":{"free":{"monthlyCredits":1000000000}}}`
	if err := os.WriteFile(filepath.Join(in.dir, "plans.json"), []byte(plans), 0o600); err != nil {
		return err
	}
	for i := range in.s.servers {
		p, err := in.start(fmt.Sprintf("server-%d", i+1), "serve", "--executor", "none")
		if err != nil {
			return err
		}
		in.servers = append(in.servers, p)
	}
	for i := range in.s.workers {
		p, err := in.start(fmt.Sprintf("worker-%d", i+1), "worker")
		if err != nil {
			return err
		}
		in.workers = append(in.workers, p)
	}
	if err := in.await("SELECT count(*) FROM workers WHERE vcpu > 0", func(n int) bool { return n >= in.s.workers }); err != nil {
		return err
	}
	if err := in.drain(true); err != nil {
		return err
	}
	for i := range in.s.teams {
		if err := in.addTeam(i); err != nil {
			return err
		}
	}
	return nil
}

// start starts a process and waits until it answers.
func (in *installation) start(name string, args ...string) (*process, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	at := l.Addr().String()
	l.Close()
	listen, health := "--listen", "/api/health/ready"
	if args[0] == "worker" {
		listen, health = "--admin-listen", "/health"
	}
	out, err := os.Create(filepath.Join(in.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	args = append(args, listen, at, "--data", filepath.Join(in.dir, name), "--database-url", in.s.postgres, "--secret-key", "a key for measuring only",
		"--public-urls", "http://localhost", "--sign-up", "open", "--runs-per-minute", "100000000", "--trusted-proxies", "127.0.0.1",
		"--plans-file", filepath.Join(in.dir, "plans.json"), "--sandbox", "none", "--log-level", "warn",
		"--capacity", fmt.Sprintf("vcpu=%d,ramGb=%d", 2*in.s.places, 8*in.s.places))
	p := &process{name: name, base: "http://" + at, cmd: exec.Command(in.s.program, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		select {
		case <-p.ended:
			text, _ := os.ReadFile(out.Name())
			return nil, fmt.Errorf("%s has ended: %s", name, text)
		default:
		}
		if resp, err := http.Get(p.base + health); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return p, nil
			}
		}
	}
	p.end()
	return nil, fmt.Errorf("%s does not answer", name)
}

func (p *process) end() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// drain has workers take no more runs, or take them again. A run is only accepted
// while there are workers.
func (in *installation) drain(yes bool) error {
	return in.sql(fmt.Sprintf("UPDATE /* scaleload */ workers SET draining = %v", yes))
}

func (in *installation) stop() {
	in.once.Do(func() {
		for _, p := range append(in.workers, in.servers...) {
			p.end()
		}
		os.RemoveAll(in.dir)
	})
}

// addTeam signs somebody up, from an address of their own, with a workflow of two
// tasks.
func (in *installation) addTeam(i int) error {
	t := team{address: fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)}
	var person struct{ Data struct{ Token string } }
	if err := in.post(t, i, "/auth/sign-up", fmt.Sprintf(`{"email":"p%d@example.org","password":"correct horse battery","name":"P"}`, i), &person); err != nil {
		return err
	}
	t.token = person.Data.Token // for some minutes; a load takes longer
	if err := in.post(t, i, "/auth/api-tokens", `{"name":"load"}`, &person); err != nil {
		return err
	}
	t.token = person.Data.Token
	command := fmt.Sprintf("# dummy: print=begins sleep=%s print=ends", in.s.task)
	var w struct{ Data struct{ ID string } }
	err := in.post(t, i, "/api/workflows", fmt.Sprintf(`{"name":"w","definition":{"nodes":[{"id":"a","command":%q},{"id":"b","command":%q}]}}`, command, command), &w)
	t.workflow = w.Data.ID
	in.teams = append(in.teams, t)
	return err
}

func (in *installation) post(t team, server int, path, body string, into any) error {
	r, err := http.NewRequest(http.MethodPost, in.servers[server%len(in.servers)].base+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Forwarded-For", t.address)
	if t.token != "" {
		r.Header.Set("Authorization", "Bearer "+t.token)
	}
	resp, err := in.http.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s: %s %s", path, resp.Status, text)
	}
	return json.Unmarshal(text, into)
}

// submission is a run and whose it is.
type submission struct {
	run  string
	team int
}

// submit sends runs, as many requests at once as there are submitters.
func (in *installation) submit(n int) (time.Duration, []submission, error) {
	began, next := time.Now(), make(chan int)
	all, errs := make([]submission, n), make(chan error, in.s.submitters)
	for range in.s.submitters {
		go func() {
			for i := range next {
				who := in.shareOf(i)
				var answer struct{ Data struct{ RunID string } }
				if err := in.post(in.teams[who], i, "/api/runs", fmt.Sprintf(`{"workflowId":%q}`, in.teams[who].workflow), &answer); err != nil {
					errs <- err
					return
				}
				all[i] = submission{answer.Data.RunID, who}
			}
			errs <- nil
		}()
	}
	var failed error
	left := in.s.submitters
	for i := 0; i < n && failed == nil; {
		select {
		case next <- i:
			i++
		case failed = <-errs:
			left--
		}
	}
	close(next)
	for range left {
		if err := <-errs; failed == nil {
			failed = err
		}
	}
	return time.Since(began), all, failed
}

// shareOf spreads runs over the teams: odd ones get three times as many.
func (in *installation) shareOf(i int) int {
	if len(in.teams) < 2 {
		return 0
	}
	pairs := len(in.teams) / 2
	at := i % (4 * pairs)
	if at%4 == 0 {
		return at / 4 * 2
	}
	return at/4*2 + 1
}

func (in *installation) query(text string) ([][]string, error) {
	cmd := exec.Command("psql", "--no-psqlrc", "--tuples-only", "--no-align", "--field-separator=\t", "--set=ON_ERROR_STOP=1", "--command", text, in.s.postgres)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, complaint.String())
	}
	var rows [][]string
	for line := range strings.Lines(string(out)) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return rows, nil
}

func (in *installation) sql(text string) error { _, err := in.query(text); return err }
