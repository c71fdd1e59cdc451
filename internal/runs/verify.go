package runs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/panics"
)

// Recorded is what the database has of a stored object.
type Recorded struct {
	Key          string
	Team         ids.Team
	Size         int64
	SHA256       string
	Mark         string // under which it was last known to have these bytes
	RejectedMark string // under which it was found to have others
}

// MarkStore keeps the marks under which objects were verified.
type MarkStore interface {
	// RecordedObject is fault.KindNotFound where no object of this key is recorded.
	RecordedObject(ctx context.Context, key string) (Recorded, error)
	// RenewMark records that the object with this hash has the mark.
	RenewMark(ctx context.Context, key, sha256, mark string) error
	// RejectMark records that the object with this mark does not have this hash.
	RejectMark(ctx context.Context, key, sha256, mark string) error
}

const (
	// verifyAtOnce is how many objects are looked up at a time for one caller: a remote
	// store takes milliseconds for each.
	verifyAtOnce = 16
	// verifyPatience is how long a request waits for objects to be hashed.
	verifyPatience = 5 * time.Second

	hashWorkers = 4
	hashSlice   = 32 << 20        // bytes of an object that are hashed before another team's turn
	sliceTime   = 5 * time.Minute // how long a slice may take
	maxHashings = 10_000          // of a team, that wait or have failed
	failureKept = time.Minute     // for whoever is still to hear of it
)

// Verifier decides whether stored objects still have the bytes that were recorded for them.
// It does not read an object that has the mark under which it was last verified. It hashes
// one with another mark, as after a restore, and renews or rejects the mark.
//
// Run hashes objects, by turns for all teams. Callers who ask for an object that is being
// hashed wait for the same work.
type Verifier struct {
	objects Objects
	store   MarkStore
	wake    chan struct{}

	mu      sync.Mutex
	byKey   map[string]*hashing
	count   map[ids.Team]int // of byKey
	waiting map[ids.Team][]*hashing
	turns   []ids.Team // the teams that have some waiting
}

// NewVerifier makes a verifier. It hashes nothing before Run is called.
func NewVerifier(objects Objects, store MarkStore) *Verifier {
	return &Verifier{
		objects: objects, store: store, wake: make(chan struct{}, hashWorkers),
		byKey: map[string]*hashing{}, count: map[ids.Team]int{}, waiting: map[ids.Team][]*hashing{},
	}
}

// hashing compares the content of an object with its hash.
type hashing struct {
	Recorded
	mark   string // of the bytes that are read
	hash   hash.Hash
	offset int64

	ended   chan struct{} // closed after changed and err are written
	changed bool
	err     error
}

// over reports whether the hashing has ended.
func (h *hashing) over() bool {
	select {
	case <-h.ended:
		return true
	default:
		return false
	}
}

// Verification is what is known of a list of outputs.
type Verification struct {
	Changed []bool // of each output, whether it is missing or has other bytes
	Pending int    // how many objects are still being hashed

	Ended <-chan struct{} // closed when one of the pending objects was hashed; nil without any
}

// Begin looks at outputs, and starts hashing those that have another mark. It does not
// wait for the hashes.
func (v *Verifier) Begin(ctx context.Context, list []Output) (Verification, error) {
	return v.verify(ctx, list, 0)
}

// Changed reports for each output whether it is missing or has other bytes than were
// recorded. It is fault.KindUnavailable if hashing takes longer than a request should.
func (v *Verifier) Changed(ctx context.Context, list []Output) ([]bool, error) {
	got, err := v.verify(ctx, list, verifyPatience)
	if err == nil && got.Pending > 0 {
		err = verifying(got.Pending)
	}
	return got.Changed, err
}

func verifying(objects int) error {
	e := fault.Unavailable("the outputs were copied or restored, and the server is verifying their content (%d files left): try again in a moment", objects)
	e.RetryAfter = verifyPatience
	return e.WithCode("outputs_verifying")
}

// gone reports whether an output that was read from the database some time ago is deleted,
// missing or has other bytes by now.
func (v *Verifier) gone(ctx context.Context, o Output) (bool, error) {
	for key := range o.Stored() {
		_, err := v.store.RecordedObject(ctx, key)
		if fault.Is(err, fault.KindNotFound) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	changed, err := v.Changed(ctx, []Output{o})
	return err == nil && changed[0], err
}

func (v *Verifier) verify(ctx context.Context, list []Output, patience time.Duration) (got Verification, err error) {
	got.Changed = make([]bool, len(list))
	begun := make([][]*hashing, len(list))
	g, looking := errgroup.WithContext(ctx)
	g.SetLimit(verifyAtOnce)
	for i, o := range list {
		g.Go(func() error {
			return panics.Catch(func() (err error) {
				got.Changed[i], begun[i], err = v.look(looking, o)
				return err
			})
		})
	}
	if err := g.Wait(); err != nil {
		return got, err
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var failed []error
	for i := range list {
		for _, h := range begun[i] {
			select {
			case <-h.ended:
			case <-waiting.Done():
			}
			if !h.over() {
				got.Pending, got.Ended = got.Pending+1, h.ended
			} else if h.err != nil {
				v.forget(h) // so that the next caller tries again
				failed = append(failed, h.err)
			} else if h.changed {
				got.Changed[i] = true
			}
		}
	}
	return got, errors.Join(append(failed, ctx.Err())...)
}

// look compares what is stored of an output with what is recorded. It starts to hash what
// cannot be told from that.
func (v *Verifier) look(ctx context.Context, o Output) (changed bool, begun []*hashing, err error) {
	for key, want := range o.Stored() {
		kept, err := v.objects.StatOutput(ctx, key)
		if err == nil && kept == want {
			continue
		}
		var h *hashing
		if err == nil {
			h, err = v.doubt(ctx, key, kept)
		}
		if fault.Is(err, fault.KindNotFound) || errors.Is(err, errRejected) {
			return true, nil, nil
		}
		if err != nil {
			return false, nil, err
		}
		if h != nil {
			begun = append(begun, h)
		}
	}
	return false, begun, nil
}

// errRejected is that an object has other bytes than were recorded.
var errRejected = errors.New("the object has other bytes than were recorded")

// doubt decides about an object that is not as the caller knew it. It is nil where the
// object was verified meanwhile.
func (v *Verifier) doubt(ctx context.Context, key string, kept Stored) (*hashing, error) {
	known, err := v.store.RecordedObject(ctx, key)
	switch {
	case err != nil:
		return nil, err
	case known.Size != kept.Size || known.RejectedMark == kept.Mark:
		return nil, errRejected
	case known.Mark == kept.Mark:
		return nil, nil //nolint:nilnil // nothing has to be hashed
	}
	return v.begin(known, kept.Mark), nil
}

// begin has an object hashed, unless it is being hashed already or somebody is still to
// hear that it failed.
func (v *Verifier) begin(known Recorded, mark string) *hashing {
	v.mu.Lock()
	defer v.mu.Unlock()
	if h := v.byKey[known.Key]; h != nil {
		return h
	}
	h := &hashing{Recorded: known, mark: mark, hash: sha256.New(), ended: make(chan struct{})}
	if v.count[known.Team] >= maxHashings {
		return h // a later call begins it
	}
	v.byKey[h.Key] = h
	v.count[h.Team]++
	v.enqueue(h, len(v.waiting[h.Team]))
	select {
	case v.wake <- struct{}{}:
	default:
	}
	return h
}

// enqueue puts a hashing at a place among those of its team.
func (v *Verifier) enqueue(h *hashing, at int) {
	if len(v.waiting[h.Team]) == 0 {
		v.turns = append(v.turns, h.Team)
	}
	v.waiting[h.Team] = slices.Insert(v.waiting[h.Team], at, h)
}

func (v *Verifier) forget(h *hashing) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.byKey[h.Key] != h {
		return
	}
	delete(v.byKey, h.Key)
	if v.count[h.Team]--; v.count[h.Team] == 0 {
		delete(v.count, h.Team)
	}
}

// Run hashes objects until ctx ends.
func (v *Verifier) Run(ctx context.Context) error {
	var workers sync.WaitGroup
	for range hashWorkers {
		workers.Go(func() {
			for ctx.Err() == nil {
				if h := v.take(); h != nil {
					v.advance(ctx, h)
					continue
				}
				select {
				case <-v.wake:
				case <-ctx.Done():
				}
			}
		})
	}
	workers.Wait()
	return nil
}

// take is the next object to go on with, of the team whose turn it is.
func (v *Verifier) take() *hashing {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.turns) == 0 {
		return nil
	}
	team := v.turns[0]
	v.turns = v.turns[1:]
	h := v.waiting[team][0]
	if v.waiting[team] = v.waiting[team][1:]; len(v.waiting[team]) > 0 {
		v.turns = append(v.turns, team)
	} else {
		delete(v.waiting, team)
	}
	return h
}

// advance hashes the next slice of an object. With the last one the hashing ends.
func (v *Verifier) advance(ctx context.Context, h *hashing) {
	h.err = panics.Catch(func() error { return v.read(ctx, h) })
	switch {
	case fault.Is(h.err, fault.KindNotFound): // deleted while it was hashed
		h.err, h.changed = nil, true
		v.forget(h)
	case h.err != nil:
		time.AfterFunc(failureKept, func() { v.forget(h) })
	case h.offset < h.Size:
		v.mu.Lock()
		defer v.mu.Unlock()
		v.enqueue(h, 0)
		return
	default:
		v.forget(h) // the verdict is recorded
	}
	close(h.ended)
}

// read hashes a slice, and after the last one records the verdict.
func (v *Verifier) read(ctx context.Context, h *hashing) error {
	ctx, cancel := context.WithTimeout(ctx, sliceTime)
	defer cancel()
	if h.offset == 0 { // somebody else may have finished it while it waited
		known, err := v.store.RecordedObject(ctx, h.Key)
		if err != nil {
			return err
		}
		if known.Mark == h.mark || known.RejectedMark == h.mark {
			h.offset, h.changed = h.Size, known.Mark != h.mark
			return nil
		}
	}
	if length := min(hashSlice, h.Size-h.offset); length > 0 {
		r, err := v.objects.Open(ctx, h.Key, h.offset, length)
		if err != nil {
			return err
		}
		n, err := io.CopyN(h.hash, r, length)
		h.offset += n
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
	}
	if h.offset < h.Size {
		return nil
	}
	kept, err := v.objects.StatOutput(ctx, h.Key)
	if err != nil {
		return err
	}
	if kept.Mark != h.mark { // it was replaced meanwhile
		return verifying(1)
	}
	if h.changed = hex.EncodeToString(h.hash.Sum(nil)) != h.SHA256; h.changed {
		return v.store.RejectMark(ctx, h.Key, h.SHA256, h.mark)
	}
	return v.store.RenewMark(ctx, h.Key, h.SHA256, h.mark)
}
