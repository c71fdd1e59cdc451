// Package diskguard makes room on a disk that tasks have nearly filled, so that
// the server and the other tasks go on. How full a disk is, is measured in
// internal/freedisk.
package diskguard

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
)

// Disk is the one that tasks write to.
type Disk interface {
	// Missing is how many bytes and files are missing at this moment until there
	// is a part of what should be free. It is negative where there is more.
	Missing(part float64) (bytes, files int64)
	// ReleaseReserve gives up the space that is kept for the server.
	ReleaseReserve()
}

// level is when room is made, and how much of it at least, as parts of what should be free.
type level struct{ below, until float64 }

// Where nearly nothing is free, room is made at once, for everybody to be able to
// write. Where a disk stays low nothing new starts; there, room is made until it is
// low no more.
var (
	nearlyNone = level{below: 0.5, until: 0.75}
	low        = level{below: 1, until: 1.05}
)

// pauseAfter is how long it takes until something is tried again that has not
// helped, and thawTries how often a thaw is tried.
const (
	pauseAfter = 3 * time.Second
	thawTries  = 5
)

// Tasks may take the room at once that was made. Where it has to be made again before
// calm has passed, each time growth times as much is.
const (
	calm   = 10 * time.Second
	growth = 4
)

// Guard makes room on one disk. It needs neither the database nor any space.
type Guard struct {
	disk  Disk
	tasks executor.Freezer
	log   *slog.Logger
	said  bool // that tasks are not the cause, since there was last space

	madeAt time.Time // when tasks were last ended
	times  float64   // as much room as a level says is made; in short succession it grows
}

// New makes a guard over the tasks that write to a disk.
func New(disk Disk, tasks executor.Freezer, log *slog.Logger) *Guard {
	return &Guard{disk: disk, tasks: tasks, log: log}
}

// Relieve makes room if there is nearly none: it freezes all tasks, so that
// nobody takes what is given up next; releases the reserve, so that the server
// can write; ends the largest tasks; and lets the others go on, as it does with
// tasks that an earlier server left frozen. Where tasks cannot be frozen it keeps the
// reserve, which they would take, and ends the largest all the same. Where that has
// not helped it returns after a pause.
func (g *Guard) Relieve(ctx context.Context) {
	g.MakeRoom(ctx)
	helped := !g.isBelow(nearlyNone) // before the others take more
	g.thaw(ctx)
	if !helped {
		pause(ctx)
	}
}

// RelieveLow makes room on a disk that has been low for some time, since the server
// accepts no uploads and runs until then. It ends the largest tasks, unless there would
// be too little space even without any task. It reports whether there is enough space.
func (g *Guard) RelieveLow(ctx context.Context) (enough bool) {
	if !g.isBelow(low) {
		return true
	}
	tasks, err := g.tasks.Freeze(ctx)
	if err != nil {
		g.log.ErrorContext(ctx, "cannot freeze tasks", slog.Any("error", err))
	}
	if err == nil && !g.suffice(tasks, low.below) {
		g.log.WarnContext(ctx, "the disk is low, and tasks take up little of it: delete what nobody needs, or make the file system larger", slog.Int("tasks", len(tasks)))
	}
	g.evict(ctx, tasks, low)
	enough = !g.isBelow(low)
	g.thaw(ctx)
	return enough
}

// MakeRoom is Relieve without letting tasks go on.
func (g *Guard) MakeRoom(ctx context.Context) {
	if !g.isBelow(nearlyNone) {
		g.said = false
		return
	}
	tasks, err := g.tasks.Freeze(ctx)
	if err != nil {
		g.log.ErrorContext(ctx, "cannot freeze tasks", slog.Any("error", err))
	} else {
		g.disk.ReleaseReserve()
	}
	if err == nil && !g.suffice(tasks, nearlyNone.below) && !g.said {
		g.said = true
		g.log.ErrorContext(ctx, "the disk is nearly full, and tasks take up little of it: delete what nobody needs, or make the file system larger", slog.Int("tasks", len(tasks)))
	}
	g.evict(ctx, tasks, nearlyNone)
}

func (g *Guard) thaw(ctx context.Context) {
	for range thawTries {
		err := g.tasks.Thaw(context.WithoutCancel(ctx)) // also where the server stops meanwhile
		if err == nil || ctx.Err() != nil {
			break
		}
		g.log.ErrorContext(ctx, "cannot let tasks go on", slog.Any("error", err))
		pause(ctx)
	}
}

func (g *Guard) isBelow(l level) bool {
	bytes, files := g.disk.Missing(l.below)
	return bytes > 0 || files > 0
}

// suffice reports whether a part of what should be free would be free without the
// tasks. Ending them would not help otherwise.
func (g *Guard) suffice(tasks []executor.Size, part float64) bool {
	bytes, files := g.disk.Missing(part)
	for _, s := range tasks {
		bytes -= s.Bytes
		files -= s.Files
	}
	return bytes <= 0 && files <= 0
}

// evict ends the tasks that take up most, until there is room. On a disk that is
// only low it stops where that has not helped.
func (g *Guard) evict(ctx context.Context, tasks []executor.Size, l level) {
	if g.times *= growth; time.Since(g.madeAt) >= calm {
		g.times = 1
	}
	for ctx.Err() == nil && g.suffice(tasks, l.below) {
		until := g.until(tasks, l)
		largest := g.largest(tasks, until)
		if len(largest) == 0 {
			return
		}
		bytes, files := g.disk.Missing(until)
		var ending sync.WaitGroup
		for _, s := range largest {
			ending.Go(func() { g.end(ctx, s) })
		}
		ending.Wait()
		g.madeAt = time.Now()
		bytesNow, filesNow := g.disk.Missing(until)
		if l == low && bytesNow >= bytes && filesNow >= files {
			return
		}
		tasks = tasks[len(largest):]
	}
}

// until is how much room is made, as a part of what should be free: no more than the end
// of all tasks makes.
func (g *Guard) until(tasks []executor.Size, l level) float64 {
	for times := g.times; times >= 1; times /= growth {
		if until := l.below + times*(l.until-l.below); g.suffice(tasks, until) {
			return until
		}
	}
	return l.below
}

// largest sorts tasks, the largest first, and returns as many as take up what is
// missing until there is a part of what should be free.
func (g *Guard) largest(tasks []executor.Size, part float64) []executor.Size {
	missing, files := g.disk.Missing(part)
	size := func(s executor.Size) int64 { return s.Bytes }
	if missing <= 0 {
		missing, size = files, func(s executor.Size) int64 { return s.Files }
	}
	slices.SortFunc(tasks, func(a, b executor.Size) int { return cmp.Compare(size(b), size(a)) })
	n := 0
	for ; missing > 0 && n < len(tasks) && size(tasks[n]) > 0; n++ {
		missing -= size(tasks[n])
	}
	return tasks[:n]
}

func (g *Guard) end(ctx context.Context, s executor.Size) {
	g.log.WarnContext(ctx, "the disk is nearly full: ending a task that takes up much of it",
		slog.String("attempt", s.ID), slog.Int64("bytes", s.Bytes), slog.Int64("files", s.Files))
	if err := g.tasks.Evict(ctx, s.ID); err != nil {
		g.log.ErrorContext(ctx, "cannot end a task", slog.String("attempt", s.ID), slog.Any("error", err))
	}
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(pauseAfter):
	}
}
