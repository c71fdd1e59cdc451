package main

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// collabPeers host editor rooms, with persistence on.
var collabPeers = []peer{
	{name: us, readyPath: millrace.readyPath, command: millrace.command, rooms: millraceRooms},
	{name: "hocuspocus", readyPath: "/", command: nodeHost("hocuspocus"), rooms: plainRooms("#room%d")},
	{name: "y-websocket", readyPath: "/", command: nodeHost("ywebsocket"), rooms: plainRooms("/room%d")},
}

var collabRows = []row{
	{"busy", "relays_s", "1 room × 20: relays/s", 0},
	{"busy", "cpu_us", "1 room × 20: CPU µs/relay", 2},
	{"rooms", "relays_s", "50 rooms × 2: relays/s", 0},
	{"rooms", "cpu_us", "50 rooms × 2: CPU µs/relay", 1},
	{"steady", "p50_ms", "20/s each, 1 × 20: p50 ms", 2},
	{"steady", "p99_ms", "20/s each, 1 × 20: p99 ms", 2},
	{"steady", "cpu_us", "20/s each, 1 × 20: CPU µs/relay", 2},
	{"steady", "rss_mb", "20/s each, 1 × 20: memory, MB", 0},
	{"steady", "private_mb", "20/s each, 1 × 20: of it private", 0},
	{"steadyrooms", "p99_ms", "20/s each, 50 × 2: p99 ms", 2},
	{"steadyrooms", "cpu_us", "20/s each, 50 × 2: CPU µs/relay", 1},
	{"steadyrooms", "rss_mb", "20/s each, 50 × 2: memory, MB", 0},
	{"steadyrooms", "private_mb", "20/s each, 50 × 2: of it private", 0},
}

var collabGoals = []goal{
	{"busy", "relays_s", "hocuspocus", true, 1, "one busy room: relays/s at least those of Hocuspocus"},
	{"busy", "cpu_us", "hocuspocus", false, 1, "one busy room: CPU per relay at most that of Hocuspocus"},
	{"rooms", "cpu_us", "hocuspocus", false, 0.6, "50 rooms: CPU per relay at most 0.6 × Hocuspocus"},
	{"steady", "p99_ms", "hocuspocus", false, 0.8, "20 changes/s each: p99 at most 0.8 × Hocuspocus"},
	{"steady", "p99_ms", "y-websocket", false, 0.8, "20 changes/s each: p99 at most 0.8 × y-websocket"},
	{"steadyrooms", "rss_mb", "hocuspocus", false, 1.0 / 3, "memory at most a third of Hocuspocus"},
	{"steadyrooms", "rss_mb", "y-websocket", false, 1.0 / 3, "memory at most a third of y-websocket"},
}

// collabCase is how many people are where, and how fast they type.
type collabCase struct {
	name          string
	rooms, people int
	rate          float64
}

var collabCases = []collabCase{{"busy", 1, 20, 0}, {"steady", 1, 20, 20}, {"steadyrooms", 50, 2, 20}, {"rooms", 50, 2, 0}}

// measureCollab gives each peer a fresh process for each load, in turn.
func measureCollab(s settings, chosen []peer, r *results) error {
	for round := range s.rounds {
		for _, c := range collabCases {
			for i := range chosen {
				p := chosen[(i+round)%len(chosen)]
				m, err := measureRooms(s, p, c)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", p.name, c.name, err)
				}
				if err := r.keep(m.add("name", p.name).add("op", c.name).add("round", round)); err != nil {
					return err
				}
				fmt.Fprintf(os.Stderr, "%-11s %-12s %7.0f relays/s, p99 %7.1f ms, CPU %6.2f µs/relay, %4.0f MB\n", c.name, p.name,
					m.number("relays_s"), m.number("p99_ms"), m.number("cpu_us"), m.number("rss_mb"))
			}
		}
	}
	return nil
}

func measureRooms(s settings, p peer, c collabCase) (measurement, error) {
	proc, err := start(s, p)
	if err != nil {
		return nil, err
	}
	defer proc.stop()
	urls, err := p.rooms(proc, c.rooms)
	if err != nil {
		return nil, err
	}
	// Signing up takes memory that is not the rooms'.
	if err := proc.again(s, p); err != nil {
		return nil, err
	}
	args := []string{"-people", fmt.Sprint(c.people), "-for", s.length.String(), "-rate", fmt.Sprint(c.rate)}
	if strings.Contains(urls[0], "#") {
		args = append(args, "-hocuspocus")
	}
	m, used, err := proc.under(exec.Command(filepath.Join(s.bin, "editorload"), append(args, urls...)...))
	if err != nil {
		return nil, err
	}
	// The CPU is also that of the warming up.
	warm := (s.length + 500*time.Millisecond).Seconds() / s.length.Seconds()
	return m.add("cpu_us", used.Seconds()*1e6/(m.number("relays")*warm)).
		add("rss_mb", proc.memory()).add("private_mb", proc.private()), nil
}

func nodeHost(name string) func(addr, dir string) []string {
	return func(addr, dir string) []string {
		host, port, _ := strings.Cut(addr, ":")
		return []string{name, host, port, filepath.Join(dir, "data")}
	}
}

// plainRooms are where anybody may enter any room.
func plainRooms(format string) func(*process, int) ([]string, error) {
	return func(p *process, n int) (urls []string, err error) {
		for i := range n {
			urls = append(urls, "ws"+strings.TrimPrefix(p.base, "http")+fmt.Sprintf(format, i))
		}
		return urls, nil
	}
}

// millraceRooms are those of as many workflows, with their tokens.
func millraceRooms(p *process, n int) (urls []string, err error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	c := caller{client: http.Client{Jar: jar, Timeout: 10 * time.Second}}
	if err := c.post(p.base+"/auth/sign-up", map[string]any{"email": email, "password": password, "name": "Ada Bench"}, nil); err != nil {
		return nil, err
	}
	for range n {
		var w struct{ Data struct{ ID string } }
		if err := c.post(p.base+"/api/workflows", map[string]any{"name": "shared"}, &w); err != nil {
			return nil, err
		}
		var t struct{ Data struct{ Token, Room string } }
		if err := c.post(p.base+"/api/collab/token", map[string]any{"workflowId": w.Data.ID}, &t); err != nil {
			return nil, err
		}
		urls = append(urls, "ws"+strings.TrimPrefix(p.base, "http")+"/editor/"+t.Data.Room+"?token="+t.Data.Token)
	}
	return urls, nil
}
