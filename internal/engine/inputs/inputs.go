// Package inputs gives the tasks of a run what the run was given: objects of the team's
// store, files from elsewhere, and code from Git. Tasks that cannot change an input share
// one file, however many they are. What comes from another machine is cached while the run
// executes.
package inputs

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// ErrFetching is that something is on its way. Changed receives when more has come.
var ErrFetching = errors.New("inputs are being fetched")

// Inputs are those of one run. One goroutine owns it.
type Inputs struct {
	worker  *Worker
	run     runs.Run
	cache   *cache
	changed chan struct{}

	ctx  context.Context //nolint:containedctx // of what goes on behind the owner's back
	stop context.CancelFunc
	work sync.WaitGroup

	mu       sync.Mutex
	byURL    map[string]*item
	queue    []*item // to be fetched
	fetchers int
	all      bool // that nobody has read are in the queue, or were

	inFolder map[string][]*item // by the addresses of folders

	folders map[string]string // the keys of the bytes of folders, by those of their manifests

	objects chan struct{} // closed when missing objects were fetched
}

// item is something from elsewhere.
type item struct {
	addresses.Object
	queued  bool
	here    bool
	err     error
	arrived atomic.Int64
}

// maxFetchers is how many files of one run are fetched at the same time.
const maxFetchers = 4

// Of are the inputs of a run, which are fetched until ctx ends. The caller closes it.
func (w *Worker) Of(ctx context.Context, run runs.Run) *Inputs {
	in := &Inputs{worker: w, run: run, cache: newCache(w.Dir, run.ID, w.Fetched.Low), changed: make(chan struct{}, 1), byURL: map[string]*item{}, inFolder: map[string][]*item{}, folders: map[string]string{}}
	in.ctx, in.stop = context.WithCancel(ctx)
	return in
}

// Close ends what is being fetched, and removes what the run alone has here. Files
// that tasks were given stay.
func (in *Inputs) Close() error {
	in.stopFetching()
	return errors.Join(in.cache.Clear(), in.worker.Fetched.Release(in.run.ID))
}

func (in *Inputs) stopFetching() {
	in.stop()
	in.work.Wait()
}

// Changed receives when something was fetched, or could not be.
func (in *Inputs) Changed() <-chan struct{} { return in.changed }

func (in *Inputs) notify() {
	select {
	case in.changed <- struct{}{}:
	default:
	}
}

// Load reads what the run takes from elsewhere.
func (in *Inputs) Load(ctx context.Context) error {
	if len(in.run.Inputs) > 0 && !hasAddress(in.run.Inputs) {
		return nil
	}
	list, err := in.worker.Known.AddressesOf(ctx, in.run.Team, in.run.ID)
	if err != nil {
		return err
	}
	for _, o := range list {
		in.byURL[o.URL] = &item{Object: o}
	}
	return nil
}

func hasAddress(inputs []byte) bool {
	var byName map[string][]string
	if json.Unmarshal(inputs, &byName) != nil {
		return true
	}
	for _, keys := range byName {
		if slices.ContainsFunc(keys, addresses.Is) {
			return true
		}
	}
	return false
}

func (in *Inputs) urls() (list []string) {
	for url := range in.byURL {
		list = append(list, url)
	}
	return list
}

// Learn is nil once it is known what is in those of the keys that are addresses. It
// is ErrFetching meanwhile, and why it cannot be known if it cannot.
func (in *Inputs) Learn(keys []string) (err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, it := range in.items(keys) {
		switch {
		case it.Learnt != "":
		case it.err != nil:
			return it.err
		default:
			in.fetch(it)
			err = ErrFetching
		}
	}
	if err != nil && !in.all { // the others will be needed, too
		in.all = true
		for _, it := range in.byURL {
			if it.Learnt == "" && it.err == nil {
				in.fetch(it)
			}
		}
	}
	return err
}

// File is an input from elsewhere. Its blob is its address.
func (in *Inputs) File(key string) (files.File, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if addresses.IsFolder(key) {
		return in.folder(key)
	}
	it := in.byURL[key]
	if it == nil {
		return files.File{}, false
	}
	return files.File{Key: key, Name: it.Name(), Blob: key, Size: it.Size, SHA256: it.Learnt}, true
}

// Progress is how many bytes of the addresses among the keys are here, and of how
// many; of those whose size nobody knows, what is here.
func (in *Inputs) Progress(keys []string) (arrived, total int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, it := range in.items(keys) {
		got := it.arrived.Load()
		if it.here {
			got = max(got, it.Size)
		}
		arrived, total = arrived+got, total+max(it.Size, got)
	}
	return arrived, total
}

// Ready reports whether files are on this machine as far as they have to be, or
// cannot be fetched. They are fetched meanwhile, since that can take hours.
func (in *Inputs) Ready(shared bool, list map[string]files.File) bool {
	ready := true
	var objects []string
	in.mu.Lock()
	for _, f := range list {
		of := in.items([]string{f.Key})
		if len(of) == 0 {
			objects = append(objects, f.Blob)
			if f.Folder != nil {
				in.folders[f.Blob] = f.Folder.Data
				objects = append(objects, f.Folder.Data)
			}
		}
		for _, it := range of {
			if !it.here && it.err == nil {
				in.fetch(it)
				ready = false
			}
		}
	}
	in.mu.Unlock()
	return in.objectsReady(shared, objects) && ready
}

// objectsReady is that of objects: where tasks share them, and they lie on another
// machine, they come first.
func (in *Inputs) objectsReady(shared bool, keys []string) bool {
	if !shared || !in.worker.Remote {
		return true
	}
	missing := in.cache.Missing(keys)
	if len(missing) == 0 {
		return true
	}
	if in.objects != nil {
		select {
		case <-in.objects:
		default:
			return false
		}
	}
	done := make(chan struct{})
	in.objects = done
	in.work.Go(func() {
		in.cache.Fetch(in.ctx, missing, in.worker.Objects)
		close(done)
		in.notify()
	})
	return false
}

// fetch has something fetched. The lock is held.
func (in *Inputs) fetch(it *item) {
	if it.queued {
		return
	}
	it.queued = true
	in.queue = append(in.queue, it)
	if in.fetchers < maxFetchers {
		in.fetchers++
		in.work.Go(in.fetchQueued)
	}
}

func (in *Inputs) fetchQueued() {
	for {
		in.mu.Lock()
		if len(in.queue) == 0 || in.ctx.Err() != nil {
			in.fetchers--
			in.mu.Unlock()
			return
		}
		it := in.queue[0]
		in.queue = in.queue[1:]
		o := it.Object
		in.mu.Unlock()
		var sum string
		err := panics.Catch(func() (err error) {
			sum, err = in.bring(o, &it.arrived)
			return err
		})
		in.mu.Lock()
		it.here, it.err, it.queued = err == nil, err, false
		if err == nil {
			it.Learnt = sum
		}
		in.mu.Unlock()
		in.notify()
	}
}

// bring fetches an object and records what it is.
func (in *Inputs) bring(o addresses.Object, arrived *atomic.Int64) (sum string, err error) {
	w := in.worker
	if o.Learnt == "" && o.ETag != "" { // another run may have read it since
		known := []addresses.Object{o}
		if err := w.Known.LearntHashes(in.ctx, in.run.Team, known); err != nil {
			return "", err
		}
		o = known[0]
	}
	if sum, err = w.Fetched.Fetch(in.ctx, in.run.Team, in.run.ID, o, arrived.Store); err != nil {
		return "", err
	}
	before, err := w.Known.Learn(in.ctx, in.run.Team, in.run.ID, o, sum, w.Now())
	if err == nil && before != "" && before != sum {
		err = fault.Invalid("%s has changed since the run first read it", o.Shown()).WithCode(changedCode)
	}
	return sum, err
}

// Moved grows with all that Link reads, links or copies. It may be called at any time.
func (in *Inputs) Moved() int64 { return in.cache.room.moved.Load() }

// Link puts an input into a new file of a task.
func (in *Inputs) Link(ctx context.Context, file string, shared bool, object string) error {
	if addresses.IsFolder(object) {
		return in.linkFetched(ctx, file, shared, object)
	}
	in.mu.Lock()
	data, folder := in.folders[object]
	in.mu.Unlock()
	if folder {
		return in.cache.LinkFolder(ctx, file, shared, object, data, in.open)
	}
	return in.cache.Link(ctx, file, shared, object, in.open)
}

func (in *Inputs) open(ctx context.Context, key string) (io.ReadCloser, error) {
	in.mu.Lock()
	it := in.byURL[key]
	var o addresses.Object
	var err error
	if it != nil {
		o, err = it.Object, it.err
	}
	in.mu.Unlock()
	switch {
	case it == nil:
		r, err := in.worker.Objects(ctx, key)
		if _, here := r.(*os.File); err != nil || here {
			return r, err
		}
		return movingReader{r, in.cache.room}, nil
	case err != nil:
		return nil, err
	}
	return in.worker.Fetched.Open(in.run.Team, o)
}

// movingReader notes what is read.
type movingReader struct {
	io.ReadCloser
	room *room
}

func (r movingReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if n > 0 {
		r.room.moved.Add(1)
	}
	return n, err
}
