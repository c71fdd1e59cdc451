package schedules_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/schedules"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
)

// replicaOf is the variable that makes a process of this test a server: it holds
// the address of its database.
const replicaOf = "MILLRACE_TEST_REPLICA_OF"

func TestMain(m *testing.M) {
	if url := os.Getenv(replicaOf); url != "" {
		if err := serve(url, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serve looks for due schedules at each time that it is told, and says when it
// has.
func serve(url string, in io.Reader, out io.Writer) error {
	ctx := context.Background()
	db, err := store.Open(ctx, store.Options{URL: url, SecretKey: storetest.SecretKey, Catalog: credits.DefaultCatalog(), MaxConnections: 5})
	if err != nil {
		return err
	}
	var now time.Time
	clock := func() time.Time { return now }
	asked := runs.NewService(runs.Options{
		Store: db, Details: db, Shards: db, Logs: db, Submit: db, Known: db, Targets: targets{}, Engine: idle{}, Catalog: credits.DefaultCatalog(), Now: clock,
	})
	runner := &schedules.Runner{Store: db, Runs: asked, Base: "http://here", Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Now: clock}
	fmt.Fprintln(out, "ready")
	for lines := bufio.NewScanner(in); lines.Scan(); {
		at, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			return err
		}
		now = time.UnixMicro(at)
		if err := runner.Round(ctx); err != nil {
			return err
		}
		fmt.Fprintln(out, "done")
	}
	return nil
}

// replica is a server in a process of its own, whose clock is off.
type replica struct {
	t   *testing.T
	url string
	off time.Duration
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func (r *replica) start() {
	r.t.Helper()
	r.cmd = exec.Command(os.Args[0])
	r.cmd.Env = append(os.Environ(), replicaOf+"="+r.url)
	r.cmd.Stderr = r.t.Output()
	var err error
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		r.t.Fatal(err)
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.out = bufio.NewScanner(out)
	r.heard("ready")
}

func (r *replica) heard(word string) {
	r.t.Helper()
	process := r.cmd.Process
	late := time.AfterFunc(time.Minute, func() { _ = process.Kill() }) // which ends the wait
	defer late.Stop()
	if !r.out.Scan() || r.out.Text() != word {
		r.t.Fatalf("the server said %q, want %q", r.out.Text(), word)
	}
}

func (r *replica) look(now time.Time) {
	r.t.Helper()
	if _, err := fmt.Fprintln(r.in, now.Add(r.off).UnixMicro()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *replica) kill() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

// Three servers on one database, with clocks that are 90 seconds apart, one of
// which is killed at any moment: each due time has one outcome, and one run where
// it started one.
func TestEachDueTimeIsStartedOnceThoughServersAreKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	url := storetest.Postgres(t)
	b := newBench(t, storetest.Open(t, url))
	b.clock.Pass(30 * time.Second)
	s := b.make(b.owner, "* * * * *")
	servers := []*replica{{t: t, url: url, off: -90 * time.Second}, {t: t, url: url}, {t: t, url: url, off: 90 * time.Second}}
	for _, r := range servers {
		r.start()
		t.Cleanup(r.kill)
	}
	for minute := range 8 {
		if minute > 0 {
			b.clock.Pass(time.Minute)
		}
		for _, r := range servers {
			r.look(b.clock.Now())
		}
		victim := servers[rand.IntN(len(servers))]
		waittest.While(time.Duration(rand.IntN(20_000))*time.Microsecond, func() bool { return true }) // where it is hit is chance
		victim.kill()
		for _, r := range servers {
			if r != victim {
				r.heard("done")
			}
		}
		victim.start()
		victim.look(b.clock.Now())
		victim.heard("done")
		b.end() // so that the next does not overlap
	}
	servers[2].look(b.clock.Now())
	servers[2].heard("done")
	b.onceEach(s.ID)
}
