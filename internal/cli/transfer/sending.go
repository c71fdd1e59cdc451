package transfer

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/client"
)

const (
	// sending is how many parts are on their way at once, and unanswered how many have
	// been sent or are: the server takes its time to write one down for good.
	sending    = 4
	unanswered = 6
	// fastLine is how many bytes a second one part after the other must make: then
	// several at once make no more, and the server hashes what comes in its order.
	fastLine = 64 << 20
	// signedAtOnce is how many addresses are asked for together.
	signedAtOnce = 16
)

// sender sends the parts of one file.
type sender struct {
	Large
	id      string
	missing []int         // the numbers of the parts that have not arrived
	wire    chan struct{} // held by whoever sends bytes
	widen   func()        // lets several send at once
	shown   *Meter

	mu     sync.Mutex
	signed map[int]api.SignedPart
}

// sendMissing sends the parts that have not arrived, several at once.
func (u Large) sendMissing(f content, state api.LargeUploadState) error {
	arrived, there := map[int]bool{}, int64(0)
	for _, p := range state.Parts {
		arrived[p.Number] = true
		there += p.Size
	}
	shown := &Meter{meter: newMeter(u.Console, f.Name, there, state.Size)}
	defer shown.Close()
	group, ctx := errgroup.WithContext(u.Ctx)
	group.SetLimit(unanswered)
	s := &sender{Large: u.within(ctx), id: state.UploadID, wire: make(chan struct{}, sending), shown: shown, signed: map[int]api.SignedPart{}}
	for range sending - 1 {
		s.wire <- struct{}{}
	}
	s.widen = sync.OnceFunc(func() {
		for range sending - 1 {
			<-s.wire
		}
	})
	for number := 1; number <= state.PartCount; number++ {
		if !arrived[number] {
			s.missing = append(s.missing, number)
		}
	}
	for _, number := range s.missing {
		release, err := s.takeWire() // here, so that parts begin in their order: the server hashes them in it
		if err != nil {
			break
		}
		offset := int64(number-1) * state.PartSize
		part := io.NewSectionReader(f, offset, min(state.PartSize, state.Size-offset))
		group.Go(func() error { return s.sendPart(number, part, release) })
	}
	return group.Wait()
}

// sendPart sends a part until it has arrived, first with the wire that was taken for it.
func (s *sender) sendPart(number int, part *io.SectionReader, release func()) error {
	for try := 1; ; try++ {
		again, err := s.partOnce(number, part, try == 1, release)
		release()
		if err == nil {
			return nil
		}
		if !again || try >= maxTries || s.Ctx.Err() != nil {
			return err
		}
		if err := s.Sleep(s.Ctx, time.Duration(try)*time.Second); err != nil {
			return err
		}
		if release, err = s.takeWire(); err != nil {
			return err
		}
	}
}

// address is where a part may be sent. At its first try one that was asked for with
// others will do.
func (s *sender) address(number int, first bool) (api.SignedPart, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to, known := s.signed[number]; known && first {
		return to, nil
	}
	numbers := []int{number}
	if at, there := slices.BinarySearch(s.missing, number); there && first {
		numbers = s.missing[at:min(at+signedAtOnce, len(s.missing))]
	}
	r, err := s.API.SignPartsWithResponse(s.Ctx, s.id, nil, api.PartNumbers{Numbers: numbers})
	if err != nil {
		return api.SignedPart{}, err
	}
	for _, to := range r.JSON200.Data {
		s.signed[to.Number] = to
	}
	to, given := s.signed[number]
	if !given {
		return to, errors.New("the server sent no upload address for a part")
	}
	return to, nil
}

func (s *sender) partOnce(number int, part *io.SectionReader, first bool, sentAll func()) (again bool, err error) {
	to, err := s.address(number, first)
	if err != nil {
		e, refused := errors.AsType[*client.Error](err)
		return !refused || e.Status >= http.StatusInternalServerError, err
	}
	slow := time.AfterFunc(time.Second*time.Duration(part.Size())/fastLine, s.widen)
	defer slow.Stop()
	sent := &counted{to: s.shown}
	body := &source{in: &ending{io.TeeReader(io.NewSectionReader(part, 0, part.Size()), sent), func() { slow.Stop(); sentAll() }}}
	r, err := http.NewRequestWithContext(s.Ctx, to.Method, to.URL, body)
	if err != nil {
		return false, err
	}
	r.ContentLength = part.Size()
	if r.URL.Query().Has("X-Amz-Signature") {
		sum, err := md5Of(part)
		if err != nil {
			return false, err
		}
		r.Header.Set("Content-MD5", sum)
	}
	resp, err := s.HTTP.Do(r)
	body.end()
	if err != nil {
		sent.takeBack()
		return true, unsigned(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode < http.StatusMultipleChoices {
		return false, nil
	}
	sent.takeBack()
	// An earlier try of this part may still hold it, and an address that was asked for
	// long before it was used may have expired.
	expired := first && resp.StatusCode == http.StatusForbidden
	return expired || resp.StatusCode >= http.StatusInternalServerError || resp.StatusCode == http.StatusConflict, refusal(resp)
}

// takeWire waits for a turn to send, and returns what ends it.
func (s *sender) takeWire() (release func(), err error) {
	select {
	case s.wire <- struct{}{}:
		return sync.OnceFunc(func() { <-s.wire }), nil
	case <-s.Ctx.Done():
		return nil, context.Cause(s.Ctx)
	}
}

// ending says when all of it was read.
type ending struct {
	io.Reader
	ended func()
}

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	if err != nil {
		e.ended()
	}
	return n, err
}
