// Bench measures the server beside its peers on this machine: listing and
// creating workflows under load, time from start to ready on an empty data
// folder, and memory when idle; then the transfer of a large file, and what it
// costs to carry out a task, people who type in editor rooms, and people who
// watch a run. Peers take turns inside every round, so that what else the
// machine does falls on all of them; the medians of one run are compared with
// each other and with the goals.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// settings are the flags of a run.
type settings struct {
	bin    string // folder with httpbare, httpload and the peers
	out    string
	store  string // folder for the peers' data, or "" for the system's temporary one
	part   string
	only   string
	rounds int
	conns  int
	length time.Duration
	idle   time.Duration
	rows   int
	size   int64 // of a file, in MiB
	tasks  int
	files  int // in a folder

	long, short, fan int // tasks of the orchestrators
	fibo             int // of the long ones
	atOnce           int
	resume           string // results of an earlier run
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	var s settings
	flag.StringVar(&s.bin, "bin", ".cache/bench/bin", "folder with the programs")
	flag.StringVar(&s.out, "out", ".cache/bench", "folder for the results and the servers' logs")
	flag.StringVar(&s.part, "part", "http,files,uploads,folders,tasks,sandbox,collab,stream,engines", "parts to measure")
	flag.StringVar(&s.only, "only", "", "peers to measure, for example millrace,bare (default all)")
	flag.IntVar(&s.rounds, "rounds", 3, "rounds; medians are over these")
	flag.IntVar(&s.conns, "conns", 32, "connections")
	flag.DurationVar(&s.length, "for", 5*time.Second, "length of each load")
	flag.DurationVar(&s.idle, "idle", 4*time.Second, "time from ready to the memory reading")
	flag.IntVar(&s.rows, "rows", 1000, "workflows there are before listing")
	flag.Int64Var(&s.size, "size", 1024, "size of the file, in MiB")
	flag.IntVar(&s.tasks, "tasks", 1000, "independent tasks; the other shapes follow")
	flag.IntVar(&s.files, "files", 50_000, "files in the folder")
	flag.IntVar(&s.long, "long", 10, "orchestrators: long tasks, one after the other; 0: none")
	flag.IntVar(&s.short, "short", 40, "orchestrators: short tasks, one after the other; 0: none")
	flag.IntVar(&s.fan, "fan", 1000, "orchestrators: files of the fan-out; 0: none")
	flag.IntVar(&s.fibo, "fibo", 33, "orchestrators: the number that a long task computes")
	flag.IntVar(&s.atOnce, "at-once", runtime.NumCPU(), "orchestrators: tasks at a time")
	flag.StringVar(&s.resume, "resume", "", "orchestrators: results of a run that broke off, to go on with")
	flag.Parse()

	if err := run(s); err != nil {
		log.Fatal(err)
	}
}

// part is what is measured of one set of peers.
type part struct {
	name    string
	peers   []peer
	rows    []row
	goals   []goal
	about   func(settings) string
	measure func(settings, []peer, *results) error
}

var parts = []part{
	{"http", apiPeers, apiRows, apiGoals, func(s settings) string {
		return fmt.Sprintf("%d connections, %s a load, %d workflows", s.conns, s.length, s.rows)
	}, measureAPI},
	{"files", filePeers, fileRows, fileGoals, func(s settings) string {
		return fmt.Sprintf("a file of %d MiB", s.size)
	}, measureFiles},
	{"uploads", uploadPeers, uploadRows, uploadGoals, func(s settings) string {
		return fmt.Sprintf("a file of %d MiB, until it is listed", s.size)
	}, measureUploads},
	{"folders", folderPeers, folderRows, folderGoals, func(s settings) string {
		return fmt.Sprintf("a folder of %d files below five levels, with links", s.files)
	}, measureFolders},
	{"tasks", taskPeers, taskRows, taskGoals, func(s settings) string {
		return fmt.Sprintf("%d independent tasks, two at a time", s.tasks)
	}, measureTasks},
	{"sandbox", sandboxPeers, sandboxRows, sandboxGoals, func(s settings) string {
		return fmt.Sprintf("%d independent tasks, two at a time, each in a sandbox", s.tasks)
	}, measureSandbox},
	{"cores", corePeers, coreRows, coreGoals, func(s settings) string {
		return fmt.Sprintf("a scatter over %d items", 4*s.tasks)
	}, measureCores},
	{"sleeping", sleepingPeers, sleepingRows, sleepingGoals, func(s settings) string {
		return fmt.Sprintf("%d tasks that sleep for %s", s.tasks, sleepingFor)
	}, measureSleeping},
	{"collab", collabPeers, collabRows, collabGoals, func(s settings) string {
		return fmt.Sprintf("%s a load", s.length)
	}, measureCollab},
	{"stream", streamPeers, streamRows, streamGoals, func(s settings) string {
		return fmt.Sprintf("%s a load, one client of ten leaves and comes back", s.length)
	}, measureStream},
	{"engines", enginePeers, engineRows, engineGoals, func(settings) string {
		return fmt.Sprintf("%d tasks of each a round", pairs)
	}, measureEngines},
}

func run(s settings) error {
	file := filepath.Join(s.out, time.Now().UTC().Format("20060102-150405")+".jsonl")
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()

	measured := false
	if slices.Contains(strings.Split(s.part, ","), "orchestrators") {
		measured = true
		fmt.Printf("\norchestrators: %s, load %s, %d rounds\n", machineFacts(), loadAverage(), s.rounds)
		if err := measureOrchestrators(s, f); err != nil {
			return fmt.Errorf("%w\nevery measurement: %s", err, file)
		}
	}
	for _, p := range parts {
		if !slices.Contains(strings.Split(s.part, ","), p.name) {
			continue
		}
		chosen := choose(s, p.peers)
		if len(chosen) == 0 {
			continue
		}
		measured = true
		fmt.Printf("\n%s: %d cores, load %s, %d rounds, %s\n", p.name, runtime.NumCPU(), loadAverage(), s.rounds, p.about(s))
		r := &results{file: f}
		if err := p.measure(s, chosen, r); err != nil {
			return err
		}
		fmt.Println()
		r.table(os.Stdout, p.rows)
		r.goals(os.Stdout, p.goals)
	}
	if !measured {
		return fmt.Errorf("there is nothing to measure with -part %q -only %q", s.part, s.only)
	}
	fmt.Printf("\nevery measurement: %s\n", file)
	return f.Close()
}

// choose leaves out what was not asked for, and what is not there.
func choose(s settings, all []peer) []peer {
	var chosen []peer
	for _, p := range all {
		if s.only != "" && !slices.Contains(strings.Split(s.only, ","), p.name) {
			continue
		}
		program := p.command("", "")[0]
		if _, err := os.Stat(filepath.Join(s.bin, program)); err != nil {
			fmt.Printf("%s is not here and is left out\n", program)
			continue
		}
		chosen = append(chosen, p)
	}
	return chosen
}

func measureAPI(s settings, chosen []peer, r *results) error {
	if err := measureLoad(s, chosen, r); err != nil {
		return err
	}
	return measureStart(s, chosen, r)
}

// measureLoad puts the load on one peer at a time while all of them run. All
// lists come before the first create, so that all list the same number of rows.
func measureLoad(s settings, chosen []peer, r *results) error {
	type ready struct {
		*process
		session session
	}
	var all []ready
	for _, p := range chosen {
		proc, err := start(s, p)
		if err != nil {
			return err
		}
		defer proc.stop()
		sess, err := p.signIn(s, proc)
		if err != nil {
			return fmt.Errorf("%s: %w (log: %s)", p.name, err, proc.log)
		}
		if err := seed(sess, s.rows); err != nil {
			return fmt.Errorf("%s: %w (log: %s)", p.name, err, proc.log)
		}
		if err := sess.expectRows(50); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		all = append(all, ready{proc, sess})
	}
	time.Sleep(time.Second)

	for _, op := range []string{"list", "create"} {
		for round := range s.rounds {
			for i := range all {
				// A different peer begins each round.
				one := all[(i+round)%len(all)]
				m, err := load(s, one.process, one.session, op)
				if err != nil {
					return fmt.Errorf("%s: %s: %w (log: %s)", one.name, op, err, one.log)
				}
				m.add("name", one.name).add("op", op).add("round", round)
				if err := r.keep(m); err != nil {
					return err
				}
				fmt.Fprintf(os.Stderr, "%-7s %-11s %7.0f/s  p99 %6.1f ms  errors %.0f\n", op, one.name, m.number("rps"), m.number("p99_ms"), m.number("errors"))
			}
		}
	}
	return nil
}

func load(s settings, proc *process, sess session, op string) (measurement, error) {
	auth, err := sess.authorization()
	if err != nil {
		return nil, err
	}
	args := []string{"-conns", fmt.Sprint(s.conns), "-for", s.length.String(), "-header", "Authorization: " + auth}
	if op == "list" {
		args = append(args, "-url", sess.listURL)
	} else {
		args = append(args, "-method", "POST", "-url", sess.createURL, "-body", sess.body("a workflow of the load"))
	}
	m, used, err := proc.under(exec.Command(filepath.Join(s.bin, "httpload"), args...))
	if err != nil {
		return nil, err
	}
	if m.number("requests") == 0 {
		return nil, fmt.Errorf("no good answer: %v", m["bad"])
	}
	return m.add("cpu_us", used.Seconds()*1e6/m.number("served")).add("rss_mb", proc.memory()), nil
}

// under runs a load and returns what it reports, with the CPU that the process
// used meanwhile.
func (p *process) under(load *exec.Cmd) (m measurement, used time.Duration, err error) {
	load.Stderr = os.Stderr
	before := p.cpu()
	out, err := load.Output()
	if err != nil {
		return nil, 0, err
	}
	used = p.cpu() - before
	err = json.Unmarshal(bytes.TrimSpace(out), &m)
	return m, used, err
}

// measureStart starts each peer on an empty folder, alone: a few times for the
// time to ready, which is short and varies, then once more to read its memory.
func measureStart(s settings, chosen []peer, r *results) error {
	const starts = 4
	for round := range s.rounds {
		for i := range chosen {
			p := chosen[(i+round)%len(chosen)]
			for n := range starts {
				m, err := measureOneStart(s, p, n == starts-1)
				if err != nil {
					return err
				}
				if err := r.keep(m.add("name", p.name).add("op", "start").add("round", round)); err != nil {
					return err
				}
			}
			fmt.Fprintf(os.Stderr, "%-7s %-11s %7.0f ms to ready, %.0f MB idle\n", "start", p.name, r.median(p.name, "start", "ready_ms"), r.median(p.name, "start", "rss_mb"))
		}
	}
	return nil
}

func measureOneStart(s settings, p peer, memory bool) (measurement, error) {
	proc, err := start(s, p)
	if err != nil {
		return nil, err
	}
	defer proc.stop()
	m := measurement{}.add("ready_ms", float64(proc.ready.Microseconds())/1000)
	if memory {
		time.Sleep(s.idle)
		m.add("rss_mb", proc.memory())
	}
	return m, nil
}

func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}

// results are the measurements of this run, also written out one by one.
type results struct {
	file io.Writer
	all  []measurement
}

func (r *results) keep(m measurement) error {
	r.all = append(r.all, m)
	return json.NewEncoder(r.file).Encode(m)
}

// measurement is one line of the results.
type measurement map[string]any

func (m measurement) add(name string, value any) measurement {
	m[name] = value
	return m
}

func (m measurement) number(name string) float64 {
	f, _ := m[name].(float64)
	return f
}
