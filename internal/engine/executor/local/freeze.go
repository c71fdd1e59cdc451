package local

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/folder"
	"github.com/millrace/millrace/internal/engine/executor/shim"
)

// Bounds of what the shim may take to halt all attempts, and to end one and
// remove its files, of which there may be very many.
const (
	freezeTimeout = time.Minute
	evictTimeout  = 5 * time.Minute
	evictLook     = 10 * time.Millisecond
)

var errOutdated = errors.New("the shim is of an earlier version, which cannot freeze tasks")

// Freeze has the shim halt what it has started. An outdated one cannot: what its attempts
// take up is measured from here, and they go on.
func (d *Driver) Freeze(ctx context.Context) ([]executor.Size, error) {
	ctx, cancel := context.WithTimeout(ctx, freezeTimeout)
	defer cancel()
	frozen := make(chan []executor.Size, 1)
	d.linkMu.Lock()
	d.mu.Lock()
	d.frozen, d.halted = frozen, true
	d.mu.Unlock()
	if d.link == nil {
		d.linkMu.Unlock()
		return nil, nil
	}
	if !d.link.Current() {
		d.linkMu.Unlock()
		return d.measureAll(), errOutdated
	}
	unheard := d.disconnected
	err := d.link.Send(shim.Order{Freeze: true})
	d.linkMu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case sizes := <-frozen:
		return sizes, nil
	case <-unheard:
		return nil, fault.Unavailable("the shim has gone; try again")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// measureAll measures the attempts that are at work.
func (d *Driver) measureAll() (sizes []executor.Size) {
	folders := map[string]shim.Folder{}
	d.mu.Lock()
	for id, a := range d.attempts {
		if a.sentToShim && !a.phase.Final() {
			folders[id] = a.folder
		}
	}
	d.mu.Unlock()
	for id, f := range folders {
		sizes = append(sizes, shim.Measure(id, f))
	}
	return sizes
}

// noteFrozen takes the shim's answer. The lock is held.
func (d *Driver) noteFrozen(sizes []executor.Size) {
	if d.frozen != nil {
		d.frozen <- sizes
		d.frozen = nil
	}
}

// Thaw has the shim let everything go on.
func (d *Driver) Thaw(context.Context) error {
	if err := d.send(shim.Order{Thaw: true}); err != nil {
		return err
	}
	d.mu.Lock()
	d.halted = false
	d.mu.Unlock()
	d.startQueued()
	return nil
}

// Evict has the shim end an attempt and remove its files.
func (d *Driver) Evict(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, evictTimeout)
	defer cancel()
	a := d.byID(id)
	if a == nil {
		return nil
	}
	d.mu.Lock()
	outdated := d.outdated
	a.evicted = outdated
	d.mu.Unlock()
	if err := d.send(shim.Order{Stop: &shim.Stop{ID: id, Evict: true}}); err != nil {
		return err
	}
	look := time.NewTicker(evictLook)
	defer look.Stop()
	for !d.hasEnded(a) {
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if outdated {
		return discard(a.folder)
	}
	return nil
}

// discard removes the files of an attempt that has ended, as a shim does that knows how to
// evict.
func discard(f shim.Folder) error {
	var failed []error
	for _, name := range []string{shim.WorkFolder, shim.TempFolder, shim.InputFolder} {
		failed = append(failed, folder.RemoveAll(filepath.Join(string(f), name)))
	}
	return errors.Join(failed...)
}

// LeftBehind is the attempts that an earlier server left in a folder. A server that
// starts on a full disk halts and ends them before it has a Driver. Those that have
// ended, and of whose files nothing is needed, count among them.
// Its methods are those of an executor.Freezer.
type LeftBehind struct{ Folder string }

// Freeze halts them, if there are any.
func (l LeftBehind) Freeze(ctx context.Context) (sizes []executor.Size, err error) {
	err = l.ask(ctx, freezeTimeout, shim.Order{Freeze: true}, func(r shim.Report) bool {
		if r.Frozen != nil {
			sizes = r.Frozen.Sizes
		}
		return r.Frozen != nil
	})
	outdated := errors.Is(err, errOutdated)
	records, unread := shim.Records(filepath.Join(l.Folder, shimFolder)) // now, as what was not frozen has ended
	for _, r := range records {
		if dispensable(r) || outdated && r.Exit == nil && !r.Lost {
			sizes = append(sizes, shim.Measure(r.ID, l.attempt(r.ID)))
		}
	}
	return sizes, errors.Join(err, unread)
}

// dispensable reports whether an attempt has ended and left nothing that is kept.
func dispensable(r shim.Record) bool {
	return r.Exit != nil && (r.Exit.Code != 0 || len(r.Exit.Outputs) == 0)
}

func (l LeftBehind) attempt(id string) shim.Folder { return shim.Folder(filepath.Join(l.Folder, id)) }

// Evict ends one and removes its files.
func (l LeftBehind) Evict(ctx context.Context, id string) error {
	records, err := shim.Records(filepath.Join(l.Folder, shimFolder))
	if slices.ContainsFunc(records, func(r shim.Record) bool { return r.ID == id && dispensable(r) }) {
		return discard(l.attempt(id))
	}
	if err != nil {
		return err
	}
	err = l.ask(ctx, evictTimeout, shim.Order{Stop: &shim.Stop{ID: id, Evict: true}}, func(r shim.Report) bool {
		return r.Record != nil && r.Record.ID == id && r.Record.Exit != nil
	})
	if err != nil {
		return err
	}
	return discard(l.attempt(id))
}

// Thaw lets them go on.
func (l LeftBehind) Thaw(ctx context.Context) error {
	return l.ask(ctx, freezeTimeout, shim.Order{Thaw: true}, nil)
}

// ask gives the shim an order, if there is a shim, and waits for its answer.
func (l LeftBehind) ask(ctx context.Context, timeout time.Duration, o shim.Order, answers func(shim.Report) bool) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	link, err := shim.Dial(ctx, filepath.Join(l.Folder, shimFolder))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil // nothing runs
	}
	if err != nil {
		return err
	}
	defer link.Close()
	defer context.AfterFunc(ctx, func() { link.Close() })()
	if !link.Current() && o.Stop == nil {
		return errOutdated
	}
	if err := link.Send(o); err != nil || answers == nil {
		return err
	}
	for {
		r, err := link.Next()
		if err != nil {
			return err
		}
		if answers(r) {
			return nil
		}
	}
}
