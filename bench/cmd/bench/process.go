package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a peer that runs on a data folder of its own.
type process struct {
	name  string
	base  string        // http://host:port
	log   string        // file with its output
	ready time.Duration // from start to the first good answer
	cmd   *exec.Cmd
	dir   string
	ended chan struct{}
}

// start starts a peer on an empty folder and waits until it is ready.
func start(s settings, p peer) (*process, error) {
	dir, err := os.MkdirTemp(s.store, "millrace-bench-")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	if p.prepare != nil {
		if err := p.prepare(addr, dir); err != nil {
			return nil, err
		}
	}
	proc := &process{name: p.name, base: "http://" + addr, log: filepath.Join(s.out, p.name+".log"), dir: dir}
	if err := proc.launch(s, p); err != nil {
		return nil, err
	}
	return proc, nil
}

// launch runs the peer on its folder and waits until it is ready.
func (p *process) launch(s settings, of peer) error {
	out, err := os.Create(p.log)
	if err != nil {
		return err
	}
	defer out.Close()

	args := of.command(strings.TrimPrefix(p.base, "http://"), p.dir)
	p.cmd, p.ended = exec.Command(filepath.Join(s.bin, args[0]), args[1:]...), make(chan struct{})
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = p.dir, out, out
	if of.environ != nil {
		p.cmd.Env = of.environ(strings.TrimPrefix(p.base, "http://"), p.dir)
	}
	if p.cmd.Path, err = filepath.Abs(p.cmd.Path); err != nil {
		return err
	}
	begun := time.Now()
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		p.cmd.Wait()
		close(p.ended)
	}()
	if err := p.await(of.readyPath, begun); err != nil {
		p.stop()
		return err
	}
	return nil
}

// again ends the process and runs it anew on what it left behind.
func (p *process) again(s settings, of peer) error {
	p.end()
	return p.launch(s, of)
}

// readyWithin is long: a server in Python takes its time on a busy machine.
const readyWithin = 3 * time.Minute

func (p *process) await(path string, begun time.Time) error {
	client := http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	for time.Since(begun) < readyWithin {
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended before it was ready, see %s", p.name, p.log)
		default:
		}
		if resp, err := client.Get(p.base + path); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				p.ready = time.Since(begun)
				return nil
			}
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("%s was not ready within %s, see %s", p.name, readyWithin, p.log)
}

func (p *process) stop() {
	p.end()
	os.RemoveAll(p.dir)
}

func (p *process) end() {
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		p.cmd.Process.Kill()
		<-p.ended
	}
}

// cpu is what the process has used so far.
func (p *process) cpu() time.Duration { return ticks(p.cmd.Process.Pid, 11, 12) }

// cpuOfAll also counts all that it started, and what those have seen the end
// of.
func (p *process) cpuOfAll() (sum time.Duration) {
	for _, pid := range family(p.cmd.Process.Pid) {
		sum += ticks(pid, 11, 12, 13, 14)
	}
	return sum
}

func ticks(pid int, fields ...int) (sum time.Duration) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The fields are counted after the program's name, which may hold spaces.
	all := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux we run on
	for _, i := range fields {
		n, _ := strconv.Atoi(all[i])
		sum += time.Duration(n) * tick
	}
	return sum
}

// memory is the resident set in MB of the process and what it started.
func (p *process) memory() float64 { return p.sum("VmRSS:") }

// private is how much of that is not pages of files.
func (p *process) private() float64 { return p.sum("RssAnon:") }

func (p *process) sum(field string) (total float64) {
	for _, pid := range family(p.cmd.Process.Pid) {
		total += memoryOf(pid, field)
	}
	return total
}

// own is the resident set in MB of the process alone.
func (p *process) own() float64 { return memoryOf(p.cmd.Process.Pid, "VmRSS:") }

// forgetPeak lets the kernel measure the peak anew.
func (p *process) forgetPeak() {
	const resetPeak = "5"
	os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte(resetPeak), 0)
}

// peak is the largest resident set in MB since forgetPeak.
func (p *process) peak() float64 { return memoryOf(p.cmd.Process.Pid, "VmHWM:") }

func memoryOf(pid int, field string) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), field)
	f := strings.Fields(rest)
	if len(f) == 0 {
		return 0
	}
	kb, _ := strconv.ParseFloat(f[0], 64)
	return kb / 1024
}

func family(pid int) []int {
	all := []int{pid}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		b, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(child); err == nil {
				all = append(all, family(n)...)
			}
		}
	}
	return all
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
