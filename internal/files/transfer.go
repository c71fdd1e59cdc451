package files

import (
	"bytes"
	"context"
	"errors"
	"io"
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

// keep makes the bytes a file, unless they came too late: their team is gone.
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
	rest := &watched{Reader: body}
	b, err := s.bytes.Objects.Put(ctx, r.Key, r.ContentType, io.MultiReader(bytes.NewReader(head), rest), r.Size)
	if rest.broke != nil {
		return b, fault.Invalid("the upload was interrupted; send it again").WithCause(rest.broke)
	}
	return b, err
}

// watched tells a sender that hung up from a store that failed.
type watched struct {
	io.Reader
	broke error
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.broke = err
	}
	return n, err
}

// Settle looks after uploads that went past us, straight to the object store:
// it tells nobody that a PUT has ended.
func (s *Service) Settle(ctx context.Context, team ids.Team) error {
	open, err := s.stores.Uploads.Reservations(ctx, team)
	if err != nil {
		return err
	}
	for _, r := range open {
		if err := s.settleOne(ctx, r); err != nil && !fault.Is(err, fault.KindNotFound) && !fault.Is(err, fault.KindUnsupported) {
			return err
		}
	}
	return nil
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
	return s.stores.Uploads.Keep(ctx, r.Key, blob, s.now())
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

// Content opens bytes whose address was checked.
func (s *Service) Content(ctx context.Context, key string) (Content, error) {
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
