package transfer

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Large files come in stretches, several at once: one connection is rarely as fast
// as the line.
const (
	stretchSize = 16 << 20
	fetching    = 4
	marksSuffix = ".marks"
)

// errNoRanges is a store that gives a file only as a whole.
var errNoRanges = errors.New("the storage doesn't support ranges")

// stretches is a file on its way. Beside the bytes there is a mark for each stretch that
// is whole, so that the next try, or program, fetches the others.
type stretches struct {
	*Folder
	file  File
	part  *os.File
	marks *os.File
	shown *Meter

	mu  sync.Mutex
	url string
}

// fillRanges brings the part to the whole file and checks it.
func (d *Folder) fillRanges(name string, f File) error {
	part, err := d.root.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer part.Close()
	marks, err := d.root.OpenFile(name+marksSuffix, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer marks.Close()
	s := &stretches{Folder: d, file: f, part: part, marks: marks, url: f.URL}
	missing, have, err := s.missing()
	if err != nil {
		return err
	}
	s.shown = &Meter{meter: newMeter(d.Console, f.Path, have, f.Size)}
	defer s.shown.meter.bar.Close()
	if err := s.fetch(missing); err != nil {
		return err
	}
	sum, err := sumOf(d.Ctx, part, f.Size)
	if err != nil {
		return err
	}
	_ = d.root.Remove(name + marksSuffix)
	if sum != f.Sum {
		_ = d.root.Remove(name) // going on from it would never help
		return damaged(sum, f.Sum)
	}
	return errors.Join(part.Sync(), part.Close())
}

// missing are the numbers of the stretches that have not come. What an earlier program
// left without marks is the beginning of the file.
func (s *stretches) missing() (numbers []int64, have int64, err error) {
	marks, err := io.ReadAll(s.marks)
	if err != nil {
		return nil, 0, err
	}
	info, err := s.part.Stat()
	if err != nil {
		return nil, 0, err
	}
	for n := int64(0); n*stretchSize < s.file.Size; n++ {
		end := min(s.file.Size, (n+1)*stretchSize)
		whole := info.Size() >= end
		if len(marks) > 0 {
			whole = whole && n < int64(len(marks)) && marks[n] == 1
		}
		if whole {
			have += end - n*stretchSize
			_, err = s.marks.WriteAt([]byte{1}, n)
		} else {
			numbers = append(numbers, n)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	return numbers, have, s.part.Truncate(min(info.Size(), s.file.Size))
}

// fetch brings the first alone, which tells whether there are ranges, and then the
// others.
func (s *stretches) fetch(numbers []int64) error {
	if len(numbers) == 0 {
		return nil
	}
	if err := s.stretch(s.Folder, numbers[0]); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(s.Ctx)
	group.SetLimit(fetching)
	within := *s.Folder
	within.Ctx = ctx
	for _, n := range numbers[1:] {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return s.stretch(&within, n) })
	}
	return group.Wait()
}

// stretch brings one, trying again what may work.
func (s *stretches) stretch(d *Folder, number int64) error {
	for try := 1; ; try++ {
		s.mu.Lock()
		url := s.url
		s.mu.Unlock()
		err := s.once(d, url, number)
		if err == nil || errors.Is(err, errNoRanges) || try >= maxTries || d.Ctx.Err() != nil {
			return err
		}
		if errors.Is(err, errRefused) {
			if err := s.renew(url, err); err != nil {
				return err
			}
			continue
		}
		if err := d.Sleep(d.Ctx, time.Duration(try)*time.Second); err != nil {
			return err
		}
	}
}

// renew replaces an address that has expired.
func (s *stretches) renew(old string, refused error) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.url != old {
		return nil
	}
	if s.file.Renew == nil {
		return refused
	}
	s.url, err = s.file.Renew()
	return err
}

func (s *stretches) once(d *Folder, url string, number int64) (err error) {
	from := number * stretchSize
	length := min(stretchSize, s.file.Size-from)
	r, err := http.NewRequestWithContext(d.Ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, from+length-1))
	resp, err := d.HTTP.Do(r)
	if err != nil {
		return unsigned(err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusOK:
		return errNoRanges
	case resp.StatusCode >= http.StatusInternalServerError:
		return refusal(resp)
	case resp.StatusCode != http.StatusPartialContent:
		return fmt.Errorf("%w: %w", errRefused, refusal(resp))
	case resp.Header.Get("Content-Range") != fmt.Sprintf("bytes %d-%d/%d", from, from+length-1, s.file.Size):
		return fmt.Errorf("the storage has another file with this name")
	}
	seen := &counted{to: s.shown}
	n, err := io.Copy(io.NewOffsetWriter(s.part, from), io.TeeReader(io.LimitReader(resp.Body, length), seen))
	if err == nil && n < length {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		_, err = s.marks.WriteAt([]byte{1}, number)
	}
	if err != nil {
		seen.takeBack()
	}
	return err
}
