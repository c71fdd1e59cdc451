package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

var fileRows = []row{
	{"put", "mb_s", "PUT: MB/s", 0},
	{"put", "durable_mb_s", "PUT until on disk: MB/s", 0},
	{"put", "cpu_s", "PUT: server CPU s/GiB", 2},
	{"put", "peak_mb", "PUT: peak memory, MB", 0},
	{"get", "mb_s", "GET: MB/s", 0},
	{"get", "cpu_s", "GET: server CPU s/GiB", 2},
	{"get", "peak_mb", "GET: peak memory, MB", 0},
}

var fileGoals = []goal{
	{"put", "mb_s", "nginx", true, 0.7, "PUT (SHA-256, fsync): MB/s at least 0.7 × nginx (neither)"},
	{"put", "mb_s", "versitygw", true, 1.8, "PUT: MB/s at least 1.8 × versitygw (MD5 and CRC, no fsync)"},
	{"get", "mb_s", "nginx", true, 0.75, "GET: MB/s at least 0.75 × nginx"},
	{"put", "peak_mb", "", false, 200, "PUT: peak memory at most 200 MB"},
	{"get", "peak_mb", "", false, 200, "GET: peak memory at most 200 MB"},
}

// gets is how often a file is fetched in each round: that is short and varies.
const gets = 3

// measureFiles sends one file to each peer and fetches it again, one peer at a
// time while all of them run, on the file system of the results' folder.
func measureFiles(s settings, chosen []peer, r *results) error {
	// Always the same folder, so that a run that was interrupted leaves its
	// gigabytes until the next one only.
	s.store = filepath.Join(s.out, "files")
	if err := errors.Join(os.RemoveAll(s.store), os.Mkdir(s.store, 0o700)); err != nil {
		return err
	}
	defer os.RemoveAll(s.store)
	source := filepath.Join(s.store, "source")
	if err := writeSource(source, s.size<<20); err != nil {
		return err
	}
	type ready struct {
		*process
		fileStore fileStore
	}
	var all []ready
	for _, p := range chosen {
		proc, err := start(s, p)
		if err != nil {
			return err
		}
		defer proc.stop()
		fileStore, err := p.fileStore(proc)
		if err != nil {
			return fmt.Errorf("%s: %w (log: %s)", p.name, err, proc.log)
		}
		all = append(all, ready{proc, fileStore})
	}
	// The first file on memory and disk that nobody used before is slow, whoever
	// writes it.
	for _, one := range all {
		if err := measureFile(one.process, one.fileStore, source, func(measurement) error { return nil }); err != nil {
			return fmt.Errorf("%s: %w (log: %s)", one.name, err, one.log)
		}
	}
	for round := range s.rounds {
		for i := range all {
			// A different peer begins each round.
			one := all[(i+round)%len(all)]
			if err := measureFile(one.process, one.fileStore, source, func(m measurement) error {
				return r.keep(m.add("name", one.name).add("round", round))
			}); err != nil {
				return fmt.Errorf("%s: %w (log: %s)", one.name, err, one.log)
			}
			fmt.Fprintf(os.Stderr, "%-7s %-11s PUT %5.0f MB/s  GET %5.0f MB/s\n", "files", one.name, r.latest(one.name, "put", "mb_s"), r.latest(one.name, "get", "mb_s"))
		}
	}
	return nil
}

// writeSource makes a file that does not compress, and leaves it in memory.
func writeSource(name string, size int64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, io.LimitReader(rand.NewChaCha8([32]byte{1}), size))
	return errors.Join(err, f.Close())
}

// measureFile is one PUT, some GETs of what was put, and the end of it. What is
// in memory only goes to the disk between measurements, so that nobody pays for
// somebody else's writing.
func measureFile(proc *process, at fileStore, source string, keep func(measurement) error) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	address, err := at.putURL(info.Size())
	if err != nil {
		return err
	}
	syscall.Sync()
	m, err := transfer(proc, func(c *http.Client) (int64, error) { return put(c, address, source) })
	if err != nil {
		return err
	}
	begun := time.Now()
	syscall.Sync()
	if err := keep(m.add("op", "put").add("durable_mb_s", 1/(1/m.number("mb_s")+time.Since(begun).Seconds()*1e6/float64(info.Size())))); err != nil {
		return err
	}
	for range gets {
		if address, err = at.getURL(); err != nil {
			return err
		}
		if m, err = transfer(proc, func(c *http.Client) (int64, error) { return get(c, address) }); err != nil {
			return err
		}
		if got := int64(m.number("bytes")); got != info.Size() {
			return fmt.Errorf("%d bytes came back of %d", got, info.Size())
		}
		if err := keep(m.add("op", "get")); err != nil {
			return err
		}
	}
	return at.remove()
}

// transfer measures the client's time and the server's effort.
func transfer(proc *process, move func(*http.Client) (int64, error)) (measurement, error) {
	transport := &http.Transport{WriteBufferSize: 1 << 20, ReadBufferSize: 1 << 20, DisableCompression: true}
	defer transport.CloseIdleConnections()
	proc.forgetPeak()
	before, begun := proc.cpu(), time.Now()
	n, err := move(&http.Client{Transport: transport, Timeout: time.Minute})
	if err != nil {
		return nil, err
	}
	took, used := time.Since(begun).Seconds(), (proc.cpu() - before).Seconds()
	return measurement{
		"bytes": float64(n), "mb_s": float64(n) / 1e6 / took,
		"cpu_s": used * (1 << 30) / float64(n), "peak_mb": proc.peak(),
	}, nil
}

func put(c *http.Client, address, source string) (int64, error) {
	f, err := os.Open(source)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequest(http.MethodPut, address, f)
	if err != nil {
		return 0, err
	}
	req.ContentLength = info.Size()
	req.Header.Set("Content-Type", octets)
	_, err = drain(c.Do(req))
	return info.Size(), err
}

func get(c *http.Client, address string) (int64, error) {
	return drain(c.Get(address))
}

// drain reads an answer to its end and counts its bytes.
func drain(resp *http.Response, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode > 299 {
		text, _ := bufio.NewReader(resp.Body).ReadString('\n')
		return 0, fmt.Errorf("%s: %s", resp.Status, text)
	}
	var n int64
	buffer := make([]byte, 1<<20)
	for {
		read, err := resp.Body.Read(buffer)
		n += int64(read)
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
