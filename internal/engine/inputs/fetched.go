package inputs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs/addresses"
	"github.com/millrace/millrace/internal/turns"
)

// fetchedFolder is in the folder of the attempts, so that tasks can be given hard links.
const fetchedFolder = ".fetched"

// RemoteReader reads what lies elsewhere.
type RemoteReader interface {
	// Open reads a stretch of an object, to its end where length is negative. An
	// object that is not what it was is fault.KindConflict.
	Open(ctx context.Context, team ids.Team, o addresses.Object, from, length int64) (io.ReadCloser, error)
}

// Fetched keeps on disk what a worker has read from elsewhere: once for all tasks and
// runs of a team that need the same bytes, each file under the hash of what it holds.
// Teams and endpoints share nothing. All methods may be called at the same time.
type Fetched struct {
	dir    string
	remote RemoteReader
	limit  int64       // bytes that are kept beyond what runs use
	low    func() bool // the disk has no room for more

	mu     sync.Mutex
	active map[string]*transfer        // by the name of what arrives
	ending map[*transfer]string        // the files they become, until their runs use them
	sums   map[string]string           // of what has arrived, by the same names
	used   map[ids.Run]map[string]bool // files that runs need
	turns  *turns.Turns[ids.Team]
}

// How much is read at the same time: files in all, files of a team, and parts of a
// file. A file takes a connection for each part, two descriptors and some buffers;
// package turns says why there are so many in all.
const (
	maxFiles     = 128
	maxTeamFiles = 4
	maxParts     = 4

	arrivedEvery = 500 * time.Millisecond // how far a transfer is
)

// NewFetched is the store of the worker whose attempts are in a folder. It uses no disk until
// something is fetched.
func NewFetched(attempts string, remote RemoteReader, limit int64, low func() bool) *Fetched {
	return &Fetched{
		dir: filepath.Join(attempts, fetchedFolder), remote: remote, limit: limit, low: low,
		active: map[string]*transfer{}, ending: map[*transfer]string{}, sums: map[string]string{}, used: map[ids.Run]map[string]bool{}, turns: turns.New[ids.Team](maxFiles, maxTeamFiles),
	}
}

// transfer is one file on its way. It ends when nobody waits for it any more.
type transfer struct {
	stop    context.CancelFunc
	waiting int
	done    chan struct{}
	arrived func() int64
	sum     string
	err     error
}

// folder is where what a team has of an endpoint is kept.
func (s *Fetched) folder(team ids.Team, endpoint string) string {
	return filepath.Join(s.dir, string(team), name(endpoint))
}

func name(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		_, _ = io.WriteString(h, part+"\x00")
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Has reports whether an object whose hash is known is here, and keeps it for the
// run.
func (s *Fetched) Has(team ids.Team, run ids.Run, o addresses.Object) bool {
	if o.Learnt == "" {
		return false
	}
	file := filepath.Join(s.folder(team, o.Endpoint), o.Learnt)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := os.Stat(file); err != nil {
		return false
	}
	s.use(run, file)
	return true
}

// Open is an object of a run's that was fetched.
func (s *Fetched) Open(team ids.Team, o addresses.Object) (*os.File, error) {
	return os.Open(filepath.Join(s.folder(team, o.Endpoint), o.Learnt))
}

// Fetch brings an object here for a run, and returns its hash. Others who want the same
// bytes at that time wait for the same transfer; arrived is told how far it is.
func (s *Fetched) Fetch(ctx context.Context, team ids.Team, run ids.Run, o addresses.Object, arrived func(int64)) (sum string, err error) {
	folder := s.folder(team, o.Endpoint)
	if err := asGiven(o, o.Learnt); o.Learnt != "" && err != nil {
		return "", err
	}
	if s.Has(team, run, o) {
		return o.Learnt, nil
	}
	// Who asks for other bytes waits for a transfer of their own.
	version := name(o.URL, o.ETag, string(o.Connection), o.SHA256)
	if o.ETag == "" { // nothing says that these are the bytes of another run
		version = name(o.URL, string(o.Connection), string(run), o.SHA256)
	}
	path := filepath.Join(folder, version)
	if same := o; o.Learnt == "" {
		if same.Learnt = s.learnt(path); s.Has(team, run, same) {
			return same.Learnt, nil
		}
	}
	t := s.join(ctx, path, team, o)
	defer s.leave(path, t)
	if err := t.wait(ctx, arrived); err != nil {
		return "", err
	}
	s.mu.Lock()
	s.use(run, filepath.Join(folder, t.sum))
	s.mu.Unlock()
	return t.sum, nil
}

// learnt is the hash of what has arrived under a name, if that is known.
func (s *Fetched) learnt(path string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sums[path]
}

// wait waits for the end of a transfer.
func (t *transfer) wait(ctx context.Context, arrived func(int64)) error {
	ticker := time.NewTicker(arrivedEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			arrived(t.arrived())
		case <-t.done:
			return t.err
		}
	}
}

// join begins a transfer, or waits for one that is under way.
func (s *Fetched) join(ctx context.Context, path string, team ids.Team, o addresses.Object) *transfer {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.active[path]
	if t == nil {
		alone, stop := context.WithCancel(context.WithoutCancel(ctx))
		f := &fetchedFile{store: s, team: team, object: o, path: path}
		t = &transfer{stop: stop, done: make(chan struct{}), arrived: f.arrived.Load}
		f.transfer = t
		s.active[path] = t
		go func() {
			t.err = panics.Catch(func() (err error) {
				t.sum, err = s.transfer(alone, f)
				return err
			})
			s.mu.Lock()
			if s.active[path] == t {
				delete(s.active, path)
			}
			if t.err == nil && o.ETag != "" {
				s.sums[path] = t.sum
			}
			s.mu.Unlock()
			stop()
			close(t.done)
		}()
	}
	t.waiting++
	return t
}

// leave ends a transfer that nobody waits for, and returns when it has ended.
func (s *Fetched) leave(path string, t *transfer) {
	s.mu.Lock()
	t.waiting--
	last := t.waiting == 0
	if last && s.active[path] == t {
		delete(s.active, path)
	}
	s.mu.Unlock()
	if last {
		t.stop()
		<-t.done
		s.mu.Lock()
		delete(s.ending, t)
		s.mu.Unlock()
	}
}

func (s *Fetched) transfer(ctx context.Context, f *fetchedFile) (sum string, err error) {
	giveBack, err := s.turns.Take(ctx, f.team)
	if err != nil {
		return "", err
	}
	defer giveBack()
	unlock, err := f.begin()
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := f.fetch(ctx); err != nil {
		return "", err
	}
	return f.keep()
}

// use keeps a file for a run. The lock is held.
func (s *Fetched) use(run ids.Run, file string) {
	if s.used[run] == nil {
		s.used[run] = map[string]bool{}
	}
	s.used[run][file] = true
}

// Release lets go of what a run used, and makes room.
func (s *Fetched) Release(run ids.Run) error {
	s.mu.Lock()
	_, used := s.used[run]
	delete(s.used, run)
	s.mu.Unlock()
	if !used {
		return nil
	}
	return s.MakeRoom()
}

// Low reports whether the disk has no room for more.
func (s *Fetched) Low() bool { return s.low() }

// Teams are those of which something is here.
func (s *Fetched) Teams() (list []ids.Team, err error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		list = append(list, ids.Team(entry.Name()))
	}
	return list, err
}

// Forget removes what a team has here. Files that tasks were given stay.
func (s *Fetched) Forget(team ids.Team) error {
	return os.RemoveAll(filepath.Join(s.dir, string(team)))
}
