// Package outputcopy copies the outputs of completed runs to where their starters want
// them. What is still to copy is a row in the database, so that whoever lives goes
// on with what a dead process had begun. A copy that fails changes nothing of its run.
package outputcopy

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/panics"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/outputto"
)

// Store says what is to be copied. One process at a time is at a copy.
type Store interface {
	// ClaimOutputCopy takes one that is due, for an owner; no run: there is none. Of a
	// team, all servers together claim at most TeamAtOnce.
	ClaimOutputCopy(ctx context.Context, owner string, now, until time.Time) (outputto.Copy, error)
	// SaveOutputCopy writes down how far one has come, and until when it is still
	// the owner's. It is fault.KindConflict when it is not any more.
	SaveOutputCopy(ctx context.Context, owner string, c outputto.Copy, until time.Time) error
}

// Outputs knows what runs have made.
type Outputs interface {
	// OutputsToCopy are those that a run hands out, verified.
	OutputsToCopy(ctx context.Context, team ids.Team, id ids.Run) (runs.Run, []runs.Listed, error)
}

// Objects is where outputs are kept.
type Objects interface {
	// Open reads a stretch of an object, to its end where length is negative.
	Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
}

// Buckets are where they are copied to. What it says in a foreseen fault may be shown.
type Buckets interface {
	// OpenBucket is a team's target, if its connection is for that. A connection
	// that is gone is fault.KindNotFound.
	OpenBucket(ctx context.Context, team ids.Team, t outputto.Target) (Bucket, error)
}

// Bucket is one of them. Names are below the target. Writing again what is there
// does no harm.
type Bucket interface {
	Put(ctx context.Context, o Object, r io.Reader) error
	PutLarge(ctx context.Context, o Object, in outputto.Large) error
	// Abort forgets what has arrived of a large object.
	Abort(ctx context.Context, name, upload string) error
}

// Object is what an object in a bucket is to be.
type Object struct {
	Name   string
	Size   int64
	SHA256 string
	Type   string // of its content; empty: nobody knows
}

// Copier copies.
type Copier struct {
	Store   Store
	Outputs Outputs
	Objects Objects
	Buckets Buckets
	Log     *slog.Logger
	Now     func() time.Time
}

// TeamAtOnce is how many copies of a team are under way at the same time: a team whose
// buckets are slow keeps no other team's copies waiting.
const TeamAtOnce = 2

const (
	// copiesAtOnce are those of one process. They mostly wait for a bucket; package turns
	// says why there are so many.
	copiesAtOnce = 64

	look = 3 * time.Second
	// lease is how long a copy is one process's without a sign of life.
	lease = time.Minute
	// signs of life, with how far it has come
	beat = 2 * time.Second
	// turn is after what time a copy begins with no file and no part any more and
	// lets others go first.
	turn = 15 * time.Minute
)

// pauses are how long it takes until the next attempt. After the last one no more is
// made.
var pauses = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour,
}

// errTurn ends an attempt that goes on when others had their turn.
var errTurn = errors.New("others have their turn")

// Run copies until ctx ends.
func (c *Copier) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	free, ended := make(chan struct{}, copiesAtOnce), make(chan struct{}, 1)
	for {
		select {
		case <-ctx.Done():
			return nil
		case free <- struct{}{}:
		}
		if attempt := c.claim(ctx); attempt != nil {
			all.Go(func() {
				attempt()
				<-free
				select {
				case ended <- struct{}{}: // its team may have another
				default:
				}
			})
			continue
		}
		<-free
		t := time.NewTimer(look)
		select {
		case <-ctx.Done():
		case <-ended:
		case <-t.C:
		}
		t.Stop()
	}
}

// Round makes an attempt at one copy, and says whether there was one.
func (c *Copier) Round(ctx context.Context) (busy bool) {
	attempt := c.claim(ctx)
	if attempt == nil {
		return false
	}
	attempt()
	return true
}

// claim takes a copy that is due, and returns the attempt at it; nil: there is none.
func (c *Copier) claim(ctx context.Context) (attempt func()) {
	owner, now := rand.Text(), c.Now()
	due, err := c.Store.ClaimOutputCopy(ctx, owner, now, now.Add(lease))
	if err != nil {
		c.complain(ctx, "cannot look for outputs to copy", err)
		return nil
	}
	if due.Run == "" {
		return nil
	}
	return func() { c.attempt(ctx, owner, due) }
}

// attempt copies what is left, and writes down how that went.
func (c *Copier) attempt(ctx context.Context, owner string, due outputto.Copy) {
	working, stop := context.WithCancelCause(ctx)
	p := &progress{copy: due}
	var beats sync.WaitGroup
	beats.Go(func() { c.saveRegularly(working, owner, p, stop) })
	err := panics.Catch(func() error { return c.copyAll(working, owner, p) })
	lost := fault.Is(context.Cause(working), fault.KindConflict)
	after := p.now()
	if !lost && ctx.Err() == nil { // otherwise we are stopping, and somebody else goes on
		if after = c.ended(ctx, due, after, err); after.State == outputto.Failed {
			c.abortLast(working, p)
			after.Upload, after.UploadOf = p.now().Upload, p.now().UploadOf
		}
	}
	stop(nil)
	beats.Wait()
	if lost {
		return
	}
	c.complain(ctx, "cannot write down how outputs were copied", c.Store.SaveOutputCopy(context.WithoutCancel(ctx), owner, after, time.Time{}))
}

// saveRegularly shows that the copy is alive, and stops it when it is not ours any
// more.
func (c *Copier) saveRegularly(ctx context.Context, owner string, p *progress, stop context.CancelCauseFunc) {
	t := time.NewTicker(beat)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := c.Store.SaveOutputCopy(ctx, owner, p.now(), c.Now().Add(lease)); fault.Is(err, fault.KindConflict) {
			stop(err)
			return
		}
	}
}

// final is an error that another attempt would not change.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// ended is what a copy is after an attempt.
func (c *Copier) ended(ctx context.Context, before, after outputto.Copy, err error) outputto.Copy {
	now := c.Now()
	if err == nil {
		after.State, after.Message, after.Attempts, after.EndedAt = outputto.Completed, "", 0, now
		return after
	}
	if after.Done > before.Done || after.Copied > before.Copied {
		after.Attempts = 0 // it got somewhere
	}
	if errors.Is(err, errTurn) {
		after.Message, after.NextAt = "", now
		return after
	}
	after.Attempts++
	after.Message = said(err)
	if _, no := errors.AsType[*fault.Error](err); !no {
		c.Log.WarnContext(ctx, "outputs of a run could not be copied", append(panics.About(err), slog.String("run", string(after.Run)))...)
	}
	if _, no := errors.AsType[final](err); no || after.Attempts > len(pauses) {
		after.State, after.EndedAt = outputto.Failed, now
		return after
	}
	after.NextAt = now.Add(pauses[after.Attempts-1])
	return after
}

// said is what of a failure may be shown.
func said(err error) string {
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return known.Message
	}
	if panics.Is(err) {
		return "an internal error stopped the copy"
	}
	return "the bucket cannot be reached, or the connection to it broke"
}

func (c *Copier) complain(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		c.Log.ErrorContext(ctx, what, slog.Any("error", err))
	}
}

// progress is how far an attempt has come.
type progress struct {
	mu    sync.Mutex
	copy  outputto.Copy
	files []file
	ahead map[int]bool // files that are done before others in front of them
	base  int64        // bytes of the files that are done
	parts int64        // bytes of a large file that have arrived
}

func (p *progress) now() outputto.Copy {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.copy
	if p.files != nil {
		c.Copied = p.base + p.parts
	}
	return c
}

// begin counts what there is to do. Where that is not what it was, because an output was
// deleted, the files that are done are not the first ones any more: all are copied anew.
func (p *progress) begin(files []file) (from int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files, p.ahead = files, map[int]bool{}
	var bytes int64
	for _, f := range files {
		bytes += f.Size
	}
	if p.copy.Files != 0 && (p.copy.Files != len(files) || p.copy.Bytes != bytes) {
		p.copy.Done = 0
	}
	p.copy.Files, p.copy.Bytes = len(files), bytes
	p.copy.Done = min(p.copy.Done, len(files))
	if p.copy.Upload != "" && p.copy.UploadOf == "" && p.copy.Done < len(files) { // an older version began it
		p.copy.UploadOf = files[p.copy.Done].Name
	}
	for _, f := range files[:p.copy.Done] {
		p.base += f.Size
	}
	return p.copy.Done
}

// done notes a file, which others in front of may still be on their way.
func (p *progress) done(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ahead[i] = true
	for p.ahead[p.copy.Done] {
		delete(p.ahead, p.copy.Done)
		p.base += p.files[p.copy.Done].Size
		p.copy.Done++
		p.copy.Upload, p.copy.UploadOf, p.parts = "", "", 0
	}
}

// arrived notes bytes of a large file.
func (p *progress) arrived(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parts += bytes
}

// uploading notes that a large file is on its way; empty: none is.
func (p *progress) uploading(name, upload string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.copy.Upload, p.copy.UploadOf = upload, name
}

// uploadsOther reports whether the upload that has begun is not of the next file any
// more, because an output was deleted.
func (p *progress) uploadsOther() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.copy.Upload != "" && (p.copy.Done == len(p.files) || p.files[p.copy.Done].Name != p.copy.UploadOf)
}
