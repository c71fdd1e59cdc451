package shim

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Link is a server's connection to the shim of a folder.
type Link struct {
	conn    *net.UnixConn
	reports *json.Decoder
	current bool       // the shim understands every order of this build
	mu      sync.Mutex // one order after the other
}

// Reach connects to the shim that serves a folder, and starts one where there
// is none. The records are all that was started and not released. It waits for
// a shim that is there and does not answer, as long as ctx does.
func Reach(ctx context.Context, folder string, p Program) (*Link, []Record, error) {
	var failed error
	// A shim that has nothing to do may leave just when somebody comes, and one
	// that was killed holds the folder until the kernel is done with it.
	for try := range tries {
		link, records, err := dial(ctx, folder)
		if err == nil {
			return link, records, nil
		}
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		failed = errors.Join(err, spawn(folder, p))
		if try > 0 && try < tries-1 {
			pause(ctx, time.Millisecond<<try)
		}
	}
	return nil, nil, failed
}

// tries pause for two seconds in all.
const tries = 12

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Dial connects to the shim that serves a folder, if there is one.
func Dial(ctx context.Context, folder string) (*Link, error) {
	link, _, err := dial(ctx, folder)
	return link, err
}

// dial returns when the shim has reported its attempts. One that serves another
// server reports when that one is gone.
func dial(ctx context.Context, folder string) (*Link, []Record, error) {
	var conn net.Conn
	err := withSocket(folder, func(socket string) (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, "unix", socket)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	l := &Link{conn: conn.(*net.UnixConn), reports: json.NewDecoder(conn)}
	var records []Record
	for {
		r, err := l.Next()
		if err != nil {
			conn.Close()
			return nil, nil, err
		}
		if r.Record != nil {
			records = append(records, *r.Record)
		}
		if r.Ready {
			l.current = isCurrent(r.Version)
			return l, records, nil
		}
	}
}

// spawn starts a shim. It listens before it lives, so that nobody has to wait
// for it.
func spawn(folder string, p Program) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	var listener *net.UnixListener
	err := withSocket(folder, func(socket string) (err error) {
		// Nobody answers at the one that is there.
		_ = os.Remove(socket)
		listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
		return err
	})
	if err != nil {
		return err
	}
	listener.SetUnlinkOnClose(false)
	defer listener.Close()
	file, err := listener.File()
	if err != nil {
		return err
	}
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	words, err := os.Create(filepath.Join(folder, stderrFile))
	if err != nil {
		return err
	}
	defer words.Close()
	argv := append(append([]string{}, p...), serveFlag, folder)
	// A session of its own, so that nothing sent to the server's terminal
	// reaches it; no environment, so that nothing of the server's leaks.
	process, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: []*os.File{null, null, words, file}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err
	}
	go process.Wait() //nolint:errcheck // its socket shows whether it lives
	return nil
}

// LastStderr is what a shim wrote to its standard error, from the beginning.
func LastStderr(folder string) string {
	text, _ := os.ReadFile(filepath.Join(folder, stderrFile))
	return string(text[:min(len(text), 2000)])
}

// withSocket gives a name for the socket that is short enough, however long the
// folder's is.
func withSocket(folder string, do func(socket string) error) error {
	dir, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer dir.Close()
	return do(filepath.Join("/proc/self/fd", strconv.Itoa(int(dir.Fd())), socketFile))
}

// Send gives an order. One that could not be sent whole was not given, and the
// link is of no more use.
func (l *Link) Send(o Order) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err = l.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err == nil {
		_, err = l.conn.Write(append(text, '\n'))
	}
	if err != nil {
		l.conn.Close()
	}
	return err
}

// Next waits for the next report. An error is the end of the link.
func (l *Link) Next() (r Report, err error) { return r, l.reports.Decode(&r) }

func isCurrent(version int) bool { return oldestCurrent <= version && version <= Version }

// Current reports whether the shim is of this build's kind. Another one can be
// ordered to stop and to release, but not to start.
func (l *Link) Current() bool { return l.current }

// Close leaves the shim to itself, and to the next server.
func (l *Link) Close() error { return l.conn.Close() }
