package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

var streamRows = []row{
	{"1000", "p50_ms", "1,000 clients: p50 ms", 1},
	{"1000", "p99_ms", "1,000 clients: p99 ms", 1},
	{"1000", "spread_p99_ms", "1,000: first to last, p99 ms", 1},
	{"1000", "cpu_us", "1,000: CPU µs/frame", 1},
	{"1000", "kb", "1,000: memory kB/client", 1},
	{"5000", "p50_ms", "5,000 clients: p50 ms", 1},
	{"5000", "p99_ms", "5,000 clients: p99 ms", 1},
	{"5000", "spread_p99_ms", "5,000: first to last, p99 ms", 1},
	{"5000", "cpu_us", "5,000: CPU µs/frame", 1},
	{"5000", "kb", "5,000: memory kB/client", 1},
	{"5000", "frames_s", "5,000: frames/s a client", 1},
}

var streamGoals = []goal{
	{"1000", "p99_ms", "bare", false, 1.5, "1,000 clients: p99 at most 1.5 × bare"},
	{"5000", "p99_ms", "bare", false, 1.5, "5,000 clients: p99 at most 1.5 × bare"},
	{"1000", "spread_p99_ms", "bare", false, 1.5, "1,000 clients: from the first to the last at most 1.5 × bare"},
	{"5000", "spread_p99_ms", "bare", false, 1.5, "5,000 clients: from the first to the last at most 1.5 × bare"},
	{"1000", "p99_ms", "mercure", false, 0.5, "1,000 clients: p99 at most half of Mercure"},
	{"5000", "p99_ms", "mercure", false, 0.5, "5,000 clients: p99 at most half of Mercure"},
	{"1000", "kb", "", false, 23, "1,000 clients: memory at most 23 kB each"},
	{"5000", "kb", "", false, 23, "5,000 clients: memory at most 23 kB each"},
	{"1000", "amiss", "", false, 0, "1,000 clients: nothing is lost or told twice"},
	{"5000", "amiss", "", false, 0, "5,000 clients: nothing is lost or told twice"},
}

// eventRate is how often something new happens, a second.
const eventRate = 10

// measureStream gives each peer a fresh process for each load, in turn.
func measureStream(s settings, chosen []peer, r *results) error {
	for round := range s.rounds {
		for _, clients := range []int{1000, 5000} {
			for i := range chosen {
				p := chosen[(i+round)%len(chosen)]
				m, err := measureClients(s, p, clients)
				if err != nil {
					return fmt.Errorf("%s, %d clients: %w", p.name, clients, err)
				}
				if err := r.keep(m.add("name", p.name).add("op", fmt.Sprint(clients)).add("round", round)); err != nil {
					return err
				}
				fmt.Fprintf(os.Stderr, "%-5d %-9s p50 %6.1f ms, p99 %6.1f ms, spread %6.1f ms, %4.1f kB a client, CPU %5.1f µs a frame, %4.1f frames/s, %.0f amiss\n", clients, p.name,
					m.number("p50_ms"), m.number("p99_ms"), m.number("spread_p99_ms"), m.number("kb"), m.number("cpu_us"), m.number("frames_s"), m.number("amiss"))
			}
		}
	}
	return nil
}

func measureClients(s settings, p peer, clients int) (measurement, error) {
	proc, err := start(s, p)
	if err != nil {
		return nil, err
	}
	defer proc.stop()
	from, err := p.source(s, proc, p)
	if err != nil {
		return nil, err
	}
	time.Sleep(2 * time.Second) // until its memory is that of a server at work
	return listen(s, proc, from, clients)
}

// listen reads the memory of the server before the clients come, when they
// are there, and after the load. The larger one counts.
func listen(s settings, proc *process, from source, clients int) (measurement, error) {
	load := exec.Command(filepath.Join(s.bin, "streamload"), "-url", from.url, "-events", from.events, "-publish", from.publish,
		"-header", from.header, "-clients", fmt.Sprint(clients), "-for", s.length.String(), "-rate", fmt.Sprint(eventRate))
	load.Stderr = os.Stderr
	in, err := load.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := load.StdoutPipe()
	if err != nil {
		return nil, err
	}
	before := proc.own()
	if err := load.Start(); err != nil {
		return nil, err
	}
	defer load.Wait()
	defer in.Close()
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil {
		return nil, fmt.Errorf("not everybody was let in: %w", err)
	}
	with, cpu := proc.own(), proc.cpu()
	result, err := lines.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	with, cpu = max(with, proc.own()), proc.cpu()-cpu
	var m measurement
	if err := json.Unmarshal(result, &m); err != nil {
		return nil, err
	}
	m.add("kb", (with-before)*1024/float64(clients)).add("rss_mb", with).add("cpu_us", cpu.Seconds()*1e6/m.number("frames"))
	return m.add("amiss", m.number("lost")+m.number("repeated")), nil
}
