package inputs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs/addresses"
	"github.com/millrace/millrace/internal/safedial"
)

// fetchedFile is an object while it arrives: the bytes so far, and a mark for each part that
// is on the disk whole. A worker that was killed goes on with what is marked.
type fetchedFile struct {
	store  *Fetched
	team   ids.Team
	object addresses.Object
	path   string // with suffixes, until its hash is known

	transfer    *transfer
	data, marks *os.File
	arrived     atomic.Int64
}

const (
	partSize = 16 << 20

	dataSuffix  = ".part"
	marksSuffix = ".marks"
)

// The codes of what can go wrong, as the run shows them. The sentences with them are
// for people and have no cause: that may be what the other side wrote.
const (
	unreachableCode = "input_unreachable"
	changedCode     = "input_changed"
	diskFullCode    = "disk_full"
)

// begin opens the file for one transfer at a time.
func (f *fetchedFile) begin() (end func(), err error) {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return nil, err
	}
	if f.data, err = os.OpenFile(f.path+dataSuffix, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.data.Fd()), unix.LOCK_EX); err == nil { // one that was stopped may still be writing
		f.marks, err = os.OpenFile(f.path+marksSuffix, os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, f.data.Close())
	}
	return func() { _, _ = f.marks.Close(), f.data.Close() }, nil
}

// inParts reports whether stretches of the object can be read by themselves and
// belong together: its size is known, and an etag says that it is the same.
func (f *fetchedFile) inParts() bool { return f.object.ETag != "" && f.object.Size > 0 }

// fetch reads what is missing.
func (f *fetchedFile) fetch(ctx context.Context) error {
	if !f.inParts() {
		return f.whole(ctx)
	}
	info, err := f.data.Stat()
	if err == nil && info.Size() != f.object.Size { // the marks are of a file that is gone
		err = f.marks.Truncate(0)
	}
	if err == nil {
		err = f.data.Truncate(f.object.Size)
	}
	if err != nil {
		return f.local(err)
	}
	parts := (f.object.Size + partSize - 1) / partSize
	marks := make([]byte, parts)
	if _, err := f.marks.ReadAt(marks, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxParts)
	for n, mark := range marks {
		from := int64(n) * partSize
		size := min(partSize, f.object.Size-from)
		if mark == 1 {
			f.arrived.Add(size)
			continue
		}
		g.Go(func() error { return panics.Catch(func() error { return f.part(ctx, int64(n), from, size) }) })
	}
	return g.Wait()
}

// part reads one part, from where it broke off when it does. It is marked when its
// bytes are on the disk.
func (f *fetchedFile) part(ctx context.Context, n, from, size int64) error {
	end := from + size
	err := f.again(ctx, func() (moved int64, err error) {
		if f.store.low() {
			return 0, fault.Conflict("the server's disk has no room for %s", f.object.Name()).WithCode(diskFullCode)
		}
		got, err := f.read(ctx, from, end-from, func(r io.Reader) (int64, error) {
			return io.Copy(io.NewOffsetWriter(f.data, from), &counted{io.LimitReader(r, end-from), &f.arrived})
		})
		from += got
		if err == nil && from < end {
			err = io.ErrUnexpectedEOF
		}
		return got, err
	})
	if err != nil {
		return err
	}
	if err := unix.Fdatasync(int(f.data.Fd())); err != nil {
		return f.local(err)
	}
	_, err = f.marks.WriteAt([]byte{1}, n)
	return f.local(err)
}

// read has a stretch of the object copied, to its end where length is negative. A host
// that sends too slowly is safedial.ErrSlow.
func (f *fetchedFile) read(ctx context.Context, from, length int64, copied func(io.Reader) (int64, error)) (int64, error) {
	ctx, transfer := safedial.WatchSpeed(ctx)
	defer transfer.End()
	r, err := f.store.remote.Open(ctx, f.team, f.object, from, length)
	if err != nil {
		return 0, transfer.Err(err)
	}
	defer r.Close()
	n, err := copied(transfer.Reader(r))
	return n, transfer.Err(err)
}

// whole reads everything in one go, for there is nothing to tell what belongs
// together.
func (f *fetchedFile) whole(ctx context.Context) error {
	return f.again(ctx, func() (int64, error) {
		f.arrived.Store(0)
		if err := f.data.Truncate(0); err != nil {
			return 0, err
		}
		size, err := f.read(ctx, 0, -1, func(r io.Reader) (int64, error) {
			return io.Copy(io.NewOffsetWriter(f.data, 0), &watchful{counted{r, &f.arrived}, f.store.low, 0})
		})
		if err == nil && f.object.Size >= 0 && size != f.object.Size {
			err = fault.Conflict("the object has changed")
		}
		return 0, err
	})
}

// counted adds up what is read.
type counted struct {
	r io.Reader
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// watchful stops reading when the disk has no room for more.
type watchful struct {
	counted
	low   func() bool
	since int64
}

func (w *watchful) Read(p []byte) (int, error) {
	if w.since > partSize {
		if w.since = 0; w.low() {
			return 0, fault.Conflict("the server's disk has no room for it").WithCode(diskFullCode)
		}
	}
	n, err := w.counted.Read(p)
	w.since += int64(n)
	return n, err
}

// How often something is tried that makes no progress, and how long the pauses get.
const (
	maxTries   = 5
	firstPause = 500 * time.Millisecond
)

// again tries until it works, is refused, or fails too often in a row. A try that moved
// bytes does not count, unless all together are slower than a host may be.
func (f *fetchedFile) again(ctx context.Context, try func() (moved int64, err error)) error {
	pause, began, got := firstPause, time.Now(), int64(0)
	for tries := 1; ; tries++ {
		moved, err := try()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err, final := f.final(err); final {
			return err
		}
		slow := errors.Is(err, safedial.ErrSlow)
		if got += moved; got >= safedial.MinBytes {
			began, got = time.Now(), 0
		}
		if moved > 0 && !slow && time.Since(began) < safedial.MinTime {
			tries, pause = 0, firstPause
		}
		if tries == maxTries && slow {
			return fault.Invalid("%s cannot be read: %s", f.object.Shown(), safedial.ErrSlow).WithCode(unreachableCode)
		}
		if tries == maxTries {
			return fault.Invalid("%s cannot be read: the other side breaks off again and again", f.object.Shown()).WithCode(unreachableCode)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause *= 2
	}
}

// final is an error for people, if trying again is of no use.
func (f *fetchedFile) final(err error) (error, bool) {
	known, foreseen := errors.AsType[*fault.Error](err)
	switch {
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT):
		return f.local(err), true
	case !foreseen || known.Kind == fault.KindUnavailable:
		return err, false
	case known.Code == diskFullCode:
		return err, true
	case known.Kind == fault.KindConflict:
		return f.changed(), true
	}
	return fault.Invalid("%s cannot be read: %s", f.object.Shown(), known.Message).WithCode(unreachableCode), true
}

func (f *fetchedFile) changed() error {
	return fault.Invalid("%s has changed since the run was accepted: start it again to use what is there now", f.object.Shown()).WithCode(changedCode)
}

// local is a failure of our own disk.
func (f *fetchedFile) local(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fault.Conflict("the server's disk has no room for %s", f.object.Name()).WithCode(diskFullCode)
	}
	return err
}

// keep verifies what has arrived, and gives it its place.
func (f *fetchedFile) keep() (sum string, err error) {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f.data, 0, 1<<62)); err != nil {
		return "", err
	}
	sum = hex.EncodeToString(h.Sum(nil))
	if err := f.verify(sum); err != nil {
		return "", errors.Join(err, os.Remove(f.path+marksSuffix), os.Remove(f.path+dataSuffix))
	}
	if err := f.data.Sync(); err != nil {
		return "", f.local(err)
	}
	kept := filepath.Join(filepath.Dir(f.path), sum)
	f.store.mu.Lock()
	f.store.ending[f.transfer] = kept
	f.store.mu.Unlock()
	if err := os.Rename(f.path+dataSuffix, kept); err != nil {
		return "", err
	}
	return sum, os.Remove(f.path + marksSuffix)
}

// verify holds a hash against what was given and what was learnt before.
func (f *fetchedFile) verify(sum string) error {
	if err := asGiven(f.object, sum); err != nil {
		return err
	}
	if f.object.Learnt != "" && f.object.Learnt != sum {
		return f.changed()
	}
	return nil
}

// asGiven holds a hash against the one that was asked for, if one was.
func asGiven(o addresses.Object, sum string) error {
	if o.SHA256 != "" && o.SHA256 != sum {
		return fault.Invalid("%s is not what was asked for: its sha256 is %s, not %s", o.Shown(), sum, o.SHA256).WithCode(changedCode)
	}
	return nil
}
