// Scaleload submits many runs of many teams to servers and workers on one PostgreSQL,
// while people watch and type, and says what that costs: runs started a second, how
// long they waited, how even the shares were, statements and time of the database for
// each run, what its tables grew by, how late events came, and what each process
// used. Tasks only pretend (-program is built with the tag pretend), so that
// everything else is measured.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type settings struct {
	program, editorload, postgres            string
	runs, teams, servers, workers            int
	streams, rooms, submitters, places, each int
	task                                     time.Duration
	depths                                   string
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("scaleload: ")
	var s settings
	flag.StringVar(&s.program, "program", "", "millrace, built with -tags pretend")
	flag.StringVar(&s.editorload, "editorload", "", "the program that types")
	flag.StringVar(&s.postgres, "postgres", os.Getenv("MILLRACE_TEST_POSTGRES"), "an empty database, with pg_stat_statements")
	flag.IntVar(&s.runs, "runs", 5000, "runs, of two tasks each")
	flag.IntVar(&s.teams, "teams", 50, "teams; half of them submit three times as many runs as the others")
	flag.IntVar(&s.servers, "servers", 2, "servers")
	flag.IntVar(&s.workers, "workers", 3, "workers")
	flag.IntVar(&s.streams, "streams", 200, "clients that watch a run each")
	flag.IntVar(&s.rooms, "rooms", 20, "editor rooms of two people, who type twice a second")
	flag.IntVar(&s.submitters, "submitters", 8, "requests at once that submit runs")
	flag.IntVar(&s.places, "places", 100, "runs that each worker has room for")
	flag.DurationVar(&s.task, "task", 200*time.Millisecond, "how long a task pretends to take")
	flag.StringVar(&s.depths, "depths", "1000,10000,100000", "then: lengths of the queue at which the cost of a run is measured; empty: none")
	flag.IntVar(&s.each, "each", 1000, "runs that are measured at each of them")
	flag.Parse()
	if err := run(s); err != nil {
		log.Fatal(err)
	}
}

func run(s settings) error {
	in, err := prepare(s)
	if err != nil {
		return err
	}
	defer in.stop()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() { <-interrupted; in.stop(); os.Exit(1) }()
	fmt.Printf("%d runs of %d teams, %d servers, %d workers of %d places, %d streams, %d rooms; tasks of %s; load %s\n",
		s.runs, s.teams, s.servers, s.workers, s.places, s.streams, s.rooms, s.task, loadAverage())
	if err := in.mainLoad(); err != nil {
		return err
	}
	for word := range strings.SplitSeq(s.depths, ",") {
		if word == "" {
			continue
		}
		depth, err := strconv.Atoi(word)
		if err != nil {
			return err
		}
		if err := in.depth(depth); err != nil {
			return err
		}
	}
	return nil
}

// mainLoad submits everything, then lets workers, watchers and writers in at once.
func (in *installation) mainLoad() error {
	before, err := in.database()
	if err != nil {
		return err
	}
	took, ids, err := in.submit(in.s.runs)
	if err != nil {
		return err
	}
	after, err := in.database()
	if err != nil {
		return err
	}
	fmt.Printf("\nsubmitting: %.0f a second; %.1f statements and %.2f ms of the database each\n", float64(in.s.runs)/took.Seconds(),
		float64(after.calls-before.calls)/float64(in.s.runs), (after.ms-before.ms)/float64(in.s.runs))

	watching, err := in.watch(ids)
	if err != nil {
		return err
	}
	typing := in.typing()
	usedBefore := in.used()
	began := time.Now()
	if err := in.drain(false); err != nil {
		return err
	}
	if err := in.awaitEnd(); err != nil {
		return err
	}
	lasted := time.Since(began)
	ended, err := in.database()
	if err != nil {
		return err
	}
	fmt.Printf("executing: %.1f statements and %.2f ms of the database for each run\n", float64(ended.calls-after.calls)/float64(in.s.runs), (ended.ms-after.ms)/float64(in.s.runs))
	if err := in.reportRuns(); err != nil {
		return err
	}
	watching.report(in)
	typing.report()
	in.reportProcesses(usedBefore, lasted)
	if err := in.reportStatements(float64(in.s.runs)); err != nil {
		return err
	}
	return in.reportGrowth(before.tables)
}

// depth measures what a run costs while so many others wait behind it.
func (in *installation) depth(waiting int) error {
	if err := in.drain(true); err != nil {
		return err
	}
	if _, _, err := in.submit(in.s.each); err != nil {
		return err
	}
	if err := in.sql(clones(waiting)); err != nil {
		return err
	}
	if err := in.sql("SELECT /* scaleload */ pg_stat_statements_reset()"); err != nil {
		return err
	}
	before, err := in.database()
	if err != nil {
		return err
	}
	used := in.used()
	if err := in.drain(false); err != nil {
		return err
	}
	if err := in.awaitStarts(before.started + in.s.each); err != nil {
		return err
	}
	after, err := in.database()
	if err != nil {
		return err
	}
	cpu, started := in.used().minus(used), float64(after.started-before.started)
	fmt.Printf("\nqueue of %d: each run %.1f statements and %.2f ms of the database, of it %.2f ms for the queue; CPU of workers %.1f ms, of PostgreSQL %.1f ms; ",
		waiting, float64(after.calls-before.calls)/started, (after.ms-before.ms)/started, (after.queueMS-before.queueMS)/started,
		cpu.workers.Seconds()*1000/started, cpu.postgres.Seconds()*1000/started)
	if err := in.reportRate(in.s.each); err != nil {
		return err
	}
	if err := in.reportStatements(started); err != nil {
		return err
	}
	if err := in.drain(true); err != nil {
		return err
	}
	return in.clear()
}

// clear takes away what waits. Runs that are just being taken may stand in its way.
func (in *installation) clear() (err error) {
	for range 10 {
		if err = in.sql("DELETE /* scaleload */ FROM runs WHERE status = 'queued'"); err == nil {
			return in.awaitEnd()
		}
		time.Sleep(time.Second)
	}
	return err
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
