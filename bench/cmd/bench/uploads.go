package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A file is sent to the same server with one request: with its SHA-256, which the
// command line takes of smaller files, too, and as curl does it.
const (
	onePUT = "one PUT"
	noHash = "no hash"
)

var uploadRows = []row{
	{"disk", "mb_s", "to a disk: MB/s", 0},
	{"disk", "cpu_s", "to a disk: server CPU s/GiB", 2},
	{"disk", "peak_mb", "to a disk: peak memory, MB", 0},
	{"bucket", "mb_s", "to a bucket: MB/s", 0},
	{"bucket", "cpu_s", "to a bucket: server CPU s/GiB", 2},
	{"bucket", "peak_mb", "to a bucket: peak memory, MB", 0},
}

var uploadGoals = []goal{
	{"disk", "mb_s", onePUT, true, 0.8, "parts by the command line (SHA-256 at both ends): MB/s at least 0.8 × one PUT (the same) to a disk"},
	{"bucket", "mb_s", onePUT, true, 0.8, "the same to a bucket"},
	{"disk", "peak_mb", "", false, 200, "to a disk: peak memory at most 200 MB"},
	{"bucket", "peak_mb", "", false, 200, "to a bucket: peak memory at most 200 MB"},
}

var uploadPeers = []peer{millraceFiles}

// destination is a server of ours that files are uploaded to.
type destination struct {
	*process
	op        string
	client    *caller
	cli       []string // environment of the command line
	fileStore fileStore
}

// measureUploads sends one file in parts by the command line, and with one request,
// in turn, to a server that keeps it on disk and to one that keeps it in a bucket.
func measureUploads(s settings, _ []peer, r *results) error {
	s.store = filepath.Join(s.out, "files")
	if err := errors.Join(os.RemoveAll(s.store), os.Mkdir(s.store, 0o700)); err != nil {
		return err
	}
	defer os.RemoveAll(s.store)
	source := filepath.Join(s.store, "source")
	if err := writeSource(source, s.size<<20); err != nil {
		return err
	}
	all, stop, err := destinations(s)
	defer stop()
	if err != nil {
		return err
	}
	for round := range s.rounds + 1 { // the first is not measured
		for _, to := range all {
			ways := []string{us, onePUT, noHash}
			for i := range ways {
				name := ways[(i+round)%len(ways)]
				m, err := to.send(s, name, source)
				if err != nil {
					return fmt.Errorf("%s: %w (log: %s)", to.op, err, to.log)
				}
				if round == 0 {
					continue
				}
				if err := r.keep(m.add("name", name).add("op", to.op).add("round", round)); err != nil {
					return err
				}
				fmt.Fprintf(os.Stderr, "%-7s %-8s %-9s %5.0f MB/s\n", "uploads", to.op, name, m.number("mb_s"))
			}
		}
	}
	return nil
}

// destinations starts the servers, the one with a bucket where there is a server
// of buckets.
func destinations(s settings) (all []destination, stop func(), err error) {
	var running []*process
	stop = func() {
		for _, p := range running {
			p.stop()
		}
	}
	add := func(op string, of peer) error {
		proc, err := start(s, of)
		if err != nil {
			return err
		}
		running = append(running, proc)
		to, err := signUp(proc, op)
		all = append(all, to)
		return err
	}
	if err := add("disk", millraceFiles); err != nil {
		return nil, stop, err
	}
	if len(choose(s, []peer{versitygw})) == 0 {
		return all, stop, nil
	}
	buckets, err := start(s, versitygw)
	if err != nil {
		return nil, stop, err
	}
	running = append([]*process{buckets}, running...)
	inBucket := millraceFiles
	inBucket.name = us + "-bucket"
	inBucket.command = func(addr, dir string) []string {
		return append(millraceFiles.command(addr, dir), "--storage-url",
			"s3://bench?endpoint="+buckets.base+"&region=us-east-1&access-key="+s3Access+"&secret-key="+s3Secret)
	}
	return all, stop, add("bucket", inBucket)
}

// signUp is a person at a server, who has a token for the command line.
func signUp(p *process, op string) (destination, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return destination{}, err
	}
	c := &caller{client: http.Client{Jar: jar, Timeout: time.Minute}}
	if err := c.post(p.base+"/auth/sign-up", map[string]any{"email": email, "password": password, "name": "Ada Bench"}, nil); err != nil {
		return destination{}, err
	}
	var made struct{ Data struct{ Token string } }
	if err := c.post(p.base+"/auth/api-tokens", map[string]any{"name": "bench", "role": "member"}, &made); err != nil {
		return destination{}, err
	}
	c.auth = "Bearer " + made.Data.Token
	home := filepath.Join(p.dir, "home")
	env := append(os.Environ(), "MILLRACE_TOKEN="+made.Data.Token, "HOME="+home, "XDG_CONFIG_HOME="+home)
	return destination{process: p, op: op, client: c, cli: env, fileStore: millraceFileStore(p.base, c)}, os.MkdirAll(home, 0o700)
}

// send is one upload, until the file is listed, and the end of it.
func (d destination) send(s settings, name, source string) (measurement, error) {
	info, err := os.Stat(source)
	if err != nil {
		return nil, err
	}
	syscall.Sync()
	m, err := transfer(d.process, func(c *http.Client) (int64, error) {
		switch name {
		case us:
			err = d.byCommand(s, source)
		case onePUT:
			err = d.byRequest(c, source, info.Size(), sha256.New())
		default:
			err = d.byRequest(c, source, info.Size(), io.Discard)
		}
		if err != nil {
			return 0, err
		}
		_, err := d.fileStore.getURL()
		return info.Size(), err
	})
	if err != nil {
		return nil, err
	}
	return m, d.fileStore.remove()
}

func (d destination) byCommand(s settings, source string) error {
	c := exec.Command(filepath.Join(s.bin, us), "files", "upload", source, "--server", d.base)
	c.Env = d.cli
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// byRequest hashes what is sent, as it is sent.
func (d destination) byRequest(c *http.Client, source string, size int64, hash io.Writer) error {
	address, err := d.fileStore.putURL(size)
	if err != nil {
		return err
	}
	f, err := os.Open(source)
	if err != nil {
		return err
	}
	defer f.Close()
	req, err := http.NewRequest(http.MethodPut, address, io.TeeReader(f, hash))
	if err != nil {
		return err
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", octets)
	_, err = drain(c.Do(req))
	return err
}
