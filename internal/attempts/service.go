package attempts

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"regexp"
	"strconv"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
)

// Service answers shims.
type Service struct {
	store   Reports
	objects Objects
	key     []byte
	changed func(id string)
	now     func() time.Time
}

// NewService makes one. The key is the same on all servers; changed is called when
// something is known of an attempt that was not.
func NewService(store Reports, objects Objects, key []byte, changed func(id string), now func() time.Time) *Service {
	return &Service{store, objects, key, changed, now}
}

// Ticket is what a shim comes with. It is worth nothing once a session has begun.
func Ticket(key []byte, id, fence string) string {
	h := hmac.New(sha256.New, key)
	_, _ = io.WriteString(h, "ticket\x00"+id+"\x00"+fence)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// prefix is that of all objects of attempts.
const prefix = "attempts/"

// ObjectPrefix is where what belongs to an attempt lies until it is released, and
// ObjectKey one of its objects.
func ObjectPrefix(id string) string           { return prefix + id + "/" }
func ObjectKey(id, fence, name string) string { return ObjectPrefix(id) + fence + "/" + name }

// StagedKey is where an input lies that no object holds as it is.
func StagedKey(id, fence string, number int) string {
	return ObjectKey(id, fence, "in-"+strconv.Itoa(number))
}

// minSession is the length of a session that nobody guesses.
const minSession = 40

// Begin exchanges a ticket for a session.
func (s *Service) Begin(ctx context.Context, id string, b Begin) (json.RawMessage, error) {
	switch {
	case !hmac.Equal([]byte(b.Ticket), []byte(Ticket(s.key, id, b.Fence))):
		return nil, fault.Unauthenticated("this ticket is for another attempt")
	case len(b.Session) < minSession || len(b.Session) > 200:
		return nil, fault.Invalid("a session has %d to 200 characters", minSession)
	case b.Version != Version:
		return nil, fault.Stale("the shim is of another release than the server: it speaks version %d, and the server version %d", b.Version, Version)
	}
	o, err := s.store.BeginAttempt(ctx, id, b.Fence, hashed(b.Session), s.now())
	if err == nil {
		s.changed(id)
	}
	return o.Task, err
}

func hashed(session string) string {
	sum := sha256.Sum256([]byte(session))
	return hex.EncodeToString(sum[:])
}

// Check is nil where a session may say something of an attempt.
func (s *Service) Check(ctx context.Context, id, session string) error {
	return s.store.CheckSession(ctx, id, hashed(session))
}

// Report takes in what a shim says.
func (s *Service) Report(ctx context.Context, id, session string, r Report) (Answer, error) {
	switch {
	case len(r.State) > MaxState, len(r.Exit) > MaxExit, r.Log != nil && (len(r.Log.Text) > MaxLog || len(r.Log.Marks) > MaxLog):
		return Answer{}, fault.TooLarge("a report may hold %d KB of log, %d KB of state and %d MB of what came out", MaxLog>>10, MaxState>>10, MaxExit>>20)
	case r.Log != nil && r.Log.Offset < 0:
		return Answer{}, fault.Invalid("a log begins at 0")
	}
	a, err := s.store.ReportAttempt(ctx, id, hashed(session), r, s.now())
	if err == nil && (r.Running || r.Log != nil || r.Exit != nil) {
		s.changed(id)
	}
	return a, err
}

// OpenInput reads one of the objects that an attempt was given.
func (s *Service) OpenInput(ctx context.Context, id, session string, n int) (r io.ReadCloser, size int64, err error) {
	_, o, err := s.store.OrderOf(ctx, id, hashed(session))
	if err != nil {
		return nil, 0, err
	}
	if n < 0 || n >= len(o.Objects) {
		return nil, 0, fault.NotFound("the attempt has no input %d", n)
	}
	if size, err = s.objects.Size(ctx, o.Objects[n]); err != nil {
		return nil, 0, err
	}
	r, err = s.objects.Open(ctx, o.Objects[n], 0, -1)
	return r, size, err
}

// outputName is a number, or that of a folder's manifest.
var outputName = regexp.MustCompile(`^[0-9]{1,6}(\.manifest)?$`)

// TakeOutput keeps a file that a command has made until its driver collects it. What
// was sent before, whole, is not taken again.
func (s *Service) TakeOutput(ctx context.Context, id, session, name string, r io.Reader, size int64) error {
	fence, _, err := s.store.OrderOf(ctx, id, hashed(session))
	switch {
	case err != nil:
		return err
	case !outputName.MatchString(name):
		return fault.NotFound("an attempt has no output %q", name)
	case size < 0:
		return fault.Invalid("the length of an output must be known")
	}
	key := ObjectKey(id, fence, name)
	if before, err := s.objects.Size(ctx, key); err == nil && before == size {
		return nil
	}
	err = s.objects.Upload(ctx, key, r, size)
	if fault.Is(err, fault.KindConflict) {
		if before, sizeErr := s.objects.Size(ctx, key); sizeErr == nil && before == size {
			return nil
		}
	}
	return err
}
