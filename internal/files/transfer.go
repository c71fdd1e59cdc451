package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// TransferLife is how long an upload that began in time may go on.
const TransferLife = 6 * time.Hour

// Transfer is what a signed address of ours allows.
type Transfer struct {
	Key         string
	ContentType string
	Size        int64  // of an upload
	Part        int    // of an upload in parts; 0: it is whole
	Disposition string // of a download
}

// Receive takes the bytes of an upload whose address was checked, where we
// serve uploads ourselves. They become a file when they are whole and are no
// program; until then nobody sees them.
func (s *Service) Receive(ctx context.Context, key string, body io.Reader) error {
	if err := s.hasRoom(ctx); err != nil {
		return err
	}
	now := s.now()
	r, err := s.stores.Uploads.Begin(ctx, key, now, now.Add(TransferLife))
	if err != nil {
		return err
	}
	blob, err := s.take(ctx, r, body)
	// What became of the bytes is noted although the sender has left.
	ctx = context.WithoutCancel(ctx)
	switch {
	case err == nil:
		return s.keep(ctx, key, blob)
	case fault.Is(err, fault.KindUnsupported):
		return errors.Join(err, s.stores.Uploads.Drop(ctx, key))
	default:
		return errors.Join(err, s.stores.Uploads.Abandon(ctx, key))
	}
}

// keep makes the bytes a file, unless they came too late: their team is gone, or who
// sent them may not upload any more.
func (s *Service) keep(ctx context.Context, key string, b Blob) error {
	err := s.stores.Uploads.Keep(ctx, key, b, s.now())
	if fault.Is(err, fault.KindNotFound) {
		return errors.Join(err, s.bytes.Objects.Delete(ctx, key))
	}
	return err
}

func (s *Service) take(ctx context.Context, r Reservation, body io.Reader) (Blob, error) {
	head := make([]byte, min(sniffed, r.Size))
	if _, err := io.ReadFull(body, head); err != nil {
		return Blob{}, fault.Invalid("the body ended before its announced length").WithCause(err)
	}
	if program(head) {
		return Blob{}, errProgram
	}
	rest := &watched{Reader: body, hasRoom: func() error { return s.hasRoom(ctx) }}
	b, err := s.bytes.Objects.Put(ctx, r.Key, r.ContentType, io.MultiReader(bytes.NewReader(head), rest), r.Size)
	if rest.full != nil {
		return b, rest.full
	}
	if rest.broke != nil {
		return b, fault.Invalid("the upload was interrupted; send it again").WithCause(rest.broke)
	}
	return b, err
}

// roomEvery is how many bytes of an upload come between two looks at whether there is
// room for more.
const roomEvery = 4 << 20

// watched tells a sender that hung up from a store that failed, and ends when there is
// no room for more.
type watched struct {
	io.Reader
	hasRoom   func() error
	unchecked int // bytes since hasRoom was asked
	full      error
	broke     error
}

func (w *watched) Read(p []byte) (int, error) {
	if w.unchecked >= roomEvery {
		if w.full = w.hasRoom(); w.full != nil {
			return 0, w.full
		}
		w.unchecked = 0
	}
	n, err := w.Reader.Read(p)
	w.unchecked += n
	if err != nil && !errors.Is(err, io.EOF) {
		w.broke = err
	}
	return n, err
}

// An upload that goes past us, straight to the object store, is settled when somebody
// asks for it, or by upkeep: the store tells nobody that a PUT has ended.
const (
	// What a list of files waits for is bounded. Upkeep settles the rest.
	newestOpen     = 1000 // uploads, of which the object store is asked which have arrived
	settledForList = 48
	largestForList = 64 << 20 // bytes of one: the store may go on with a copy that a list gave up
	listPatience   = 5 * time.Second
)

func uploadsOf(team ids.Team) string { return "teams/" + string(team) + "/uploads/" }

// SettleKeys settles those of the keys that are uploads of the team which have arrived.
func (s *Service) SettleKeys(ctx context.Context, team ids.Team, keys []string) error {
	open, err := s.stores.Uploads.ReservationsOf(ctx, keys)
	if err != nil {
		return err
	}
	open = slices.DeleteFunc(open, func(r Reservation) bool { return r.Team != team })
	return s.settleAll(ctx, open).Why
}

// settleForList settles those of the keys that are uploads of a team which have arrived, or
// the newest ones if there are no keys. The list is good without them, so that an object
// store that fails or is slow does not fail it.
func (s *Service) settleForList(ctx context.Context, team ids.Team, keys []string) error {
	if len(keys) > 0 {
		patient, cancel := context.WithTimeout(ctx, listPatience)
		defer cancel()
		_ = s.SettleKeys(patient, team, keys)
		return ctx.Err()
	}
	open, err := s.stores.Uploads.NewestReservations(ctx, team, newestOpen)
	if err != nil || len(open) == 0 {
		return err
	}
	patient, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	// Keys go by their time, so that this page begins with the oldest of these uploads.
	before := uploadsOf(team) + open[len(open)-1].ID
	staged, err := s.bytes.Presigner.Staged(patient, uploadsOf(team), before, newestOpen)
	if err != nil {
		return ctx.Err()
	}
	open = slices.DeleteFunc(open, func(r Reservation) bool { return r.Size > largestForList || !slices.Contains(staged, r.Key) })
	s.settleAll(patient, open[:min(len(open), settledForList)])
	return ctx.Err()
}

// settleAll settles uploads, several at once. One that has not arrived, or is refused, is
// no failure.
func (s *Service) settleAll(ctx context.Context, open []Reservation) Cleaned {
	return severalAtOnce(open, func(r Reservation) error {
		err := s.settleOne(ctx, r)
		if fault.Is(err, fault.KindNotFound) || fault.Is(err, fault.KindUnsupported) {
			err = nil
		}
		return err
	})
}

// settleOne keeps an upload that has arrived and is what it was announced as.
func (s *Service) settleOne(ctx context.Context, r Reservation) error {
	blob, err := s.bytes.Presigner.Arrived(ctx, r.Key)
	if err != nil {
		return err
	}
	isProgram, err := s.sniff(ctx, r.Key)
	if err != nil {
		return err
	}
	if isProgram || blob.Size != r.Size {
		return errors.Join(s.bytes.Objects.Delete(ctx, r.Key), s.stores.Uploads.Drop(ctx, r.Key), errProgram)
	}
	return s.keep(ctx, r.Key, blob)
}

func (s *Service) sniff(ctx context.Context, key string) (isProgram bool, err error) {
	f, err := s.bytes.Objects.Open(ctx, key, 0, sniffed)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, sniffed))
	return program(head), err
}

// Content is a file's bytes, where we serve downloads ourselves. The caller
// closes it.
type Content struct {
	io.ReadSeekCloser
	Mark       string
	ModifiedAt time.Time
}

// Content opens bytes whose address was checked. An address may live longer than the
// file.
func (s *Service) Content(ctx context.Context, key string) (Content, error) {
	gone, err := s.stores.List.ToBeDeleted(ctx, key)
	if err == nil && gone {
		err = fault.NotFound("the file was deleted")
	}
	if err != nil {
		return Content{}, err
	}
	b, err := s.bytes.Objects.Stat(ctx, key)
	if err != nil {
		return Content{}, err
	}
	f, err := s.bytes.Objects.Open(ctx, key, 0, -1)
	if err != nil {
		return Content{}, err
	}
	seekable, ok := f.(io.ReadSeekCloser)
	if !ok {
		return Content{}, errors.Join(errors.New("the object store gives no files"), f.Close())
	}
	return Content{seekable, b.Mark, b.ModifiedAt}, nil
}
