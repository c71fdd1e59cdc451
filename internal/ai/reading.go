package ai

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/doi"
	"github.com/millrace/millrace/internal/domain/fault"
)

// Progress is how far a reading is, in words for people.
type Progress struct {
	Stage   string
	Percent int
	Message string
}

// The stages of a reading.
var (
	lookingUp = Progress{"looking_up", 10, "Looking up the paper"}
	fetching  = Progress{"fetching", 25, "Fetching an open copy"}
	reading   = Progress{"reading", 40, "Reading the paper"}
	thinking  = Progress{"analysing", 60, "Analyzing the paper with the model"}
)

// Reading is a paper that is read once for everybody who asked.
type Reading struct {
	ID      string
	Attempt int // fences off who had it before
	DOI     doi.DOI
	Title   string
	Text    *Text // of an upload
	Payer   Payer
}

// ReadingQueue hands out readings. A write of somebody who has lost the reading is
// fault.KindNotFound and changes nothing.
type ReadingQueue interface {
	// ClaimReading takes the oldest that waits or was abandoned, of a payer who
	// has not as many under way as the crowd allows. Without one it is
	// fault.KindNotFound.
	ClaimReading(ctx context.Context, worker string, c Crowd, now, until time.Time) (Reading, error)
	RenewReading(ctx context.Context, r Reading, until time.Time) error
	AdvanceReading(ctx context.Context, r Reading, p Progress) error
	// EndReading keeps a result until it is stale, or the failure; one of them
	// is nil.
	EndReading(ctx context.Context, r Reading, result *Result, f *Failure, stale time.Time) error
	// ReturnReading puts it back for somebody else.
	ReturnReading(ctx context.Context, r Reading) error
	// RecoverReadings puts back all that a server left behind when it was
	// killed; only for who is alone.
	RecoverReadings(ctx context.Context) error
}

// Crowd is how many readings of one payer, and of the visitors of one address,
// are under way at once.
type Crowd struct{ PerOwner, PerAddress int }

// Patience is how long we wait for what.
type Patience struct {
	Reading time.Duration // all of one paper
	Model   time.Duration // the model's part of it
	Lease   time.Duration // until others may take a reading from a server that is silent
	Idle    time.Duration // between looks for work that other servers accepted
}

func (p Patience) orDefault() Patience {
	for _, d := range []struct {
		at        *time.Duration
		otherwise time.Duration
	}{{&p.Reading, 8 * time.Minute}, {&p.Model, 5 * time.Minute}, {&p.Lease, 30 * time.Second}, {&p.Idle, 5 * time.Second}} {
		if *d.at == 0 {
			*d.at = d.otherwise
		}
	}
	return p
}

const (
	maxReadings = 4 // papers read at once by one server
	perOwner    = 2 // of them for one payer, so that one is left for others
	perAddress  = 3 // of them for the visitors of one address
	mostTries   = 3 // of a reading whose servers die
	freshFull   = 30 * 24 * time.Hour
	freshLesser = time.Hour
)

// Run reads what is asked for until ctx ends; what is unfinished then is put
// back, and nobody waits for it here any more. It is called once.
func (s *Service) Run(ctx context.Context) error {
	defer close(s.closed)
	if s.Alone {
		if err := s.Queue.RecoverReadings(ctx); err != nil && ctx.Err() == nil { // being told to stop is no failure
			return err
		}
	}
	var busy sync.WaitGroup
	defer busy.Wait()
	free := make(chan struct{}, maxReadings)
	for {
		select {
		case <-ctx.Done():
			return nil
		case free <- struct{}{}:
		}
		now := s.Now()
		r, err := s.Queue.ClaimReading(ctx, s.Worker, Crowd{PerOwner: perOwner, PerAddress: perAddress}, now, now.Add(s.Patience.Lease))
		if err == nil {
			busy.Go(func() {
				s.carry(ctx, r)
				<-free
				s.wake() // the next of the same payer may have its turn
			})
			continue
		}
		<-free
		if !fault.Is(err, fault.KindNotFound) && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "cannot claim a reading; trying again", slog.Any("error", err))
		}
		s.idle(ctx)
	}
}

func (s *Service) idle(ctx context.Context) {
	t := time.NewTimer(s.Patience.Idle)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-s.work:
	case <-t.C:
	}
}

// carry reads one paper and writes down how it ended.
func (s *Service) carry(ctx context.Context, r Reading) {
	within, cancel := context.WithTimeoutCause(ctx, s.Patience.Reading, errTooLong)
	defer cancel()
	stop := s.keep(within, r, cancel)
	res, lesser, err := s.guarded(within, r)
	stop()
	// However we were stopped, this must be written down.
	end, done := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer done()
	switch {
	case err != nil && ctx.Err() != nil:
		err = s.Queue.ReturnReading(end, r)
	case err != nil:
		f := s.failure(ctx, r, within, err)
		err = s.Queue.EndReading(end, r, nil, &f, s.Now())
	default:
		fresh := freshFull
		if lesser {
			fresh = freshLesser
		}
		err = s.Queue.EndReading(end, r, &res, nil, s.Now().Add(fresh))
	}
	s.news.tell()
	if err != nil && !fault.Is(err, fault.KindNotFound) { // not found: another server has it by now
		s.Log.ErrorContext(ctx, "cannot write down how a reading ended", slog.String("reading", r.ID), slog.Any("error", err))
	}
}

var errTooLong = errors.New("the reading took too long")

// failure is what the askers are told.
func (s *Service) failure(ctx context.Context, r Reading, within context.Context, err error) Failure {
	if e, foreseen := errors.AsType[*fault.Error](err); foreseen {
		code := e.Code
		if code == "" {
			code = string(e.Kind)
		}
		return Failure{e.Kind, code, e.Message}
	}
	if errors.Is(context.Cause(within), errTooLong) {
		return Failure{fault.KindUnavailable, "analysis_timeout", "reading this paper took too long; try again later"}
	}
	s.Log.ErrorContext(ctx, "a reading failed", slog.String("reading", r.ID), slog.Any("error", err))
	return Failure{fault.KindInternal, string(fault.KindInternal), "something went wrong on our side while reading this paper; try again"}
}

// keep renews the lease until it is stopped, and gives up the reading when it
// has been lost.
func (s *Service) keep(ctx context.Context, r Reading, lost func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		tick := time.NewTicker(s.Patience.Lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := s.Queue.RenewReading(ctx, r, s.Now().Add(s.Patience.Lease)); fault.Is(err, fault.KindNotFound) {
				lost()
			}
		}
	})
	return func() {
		cancel()
		renewing.Wait()
	}
}

// guarded turns a panic over a strange paper into a failure of that paper.
func (s *Service) guarded(ctx context.Context, r Reading) (res Result, lesser bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	if r.Attempt > mostTries {
		return res, false, fault.Unavailable("the analysis was interrupted %d times; try again", mostTries).WithCode("interrupted")
	}
	return s.read(ctx, r)
}

// read is the work itself. A lesser result is worth having, but not for long.
func (s *Service) read(ctx context.Context, r Reading) (Result, bool, error) {
	found := Found{Paper: Paper{DOI: r.DOI, Title: r.Title, Source: "upload"}}
	if r.Text == nil {
		var err error
		if found, r.Text, err = s.find(ctx, r); err != nil {
			return Result{}, false, err
		}
	}
	if err := s.advance(ctx, r, reading); err != nil {
		return Result{}, false, err
	}
	found.Paper.PageCount = r.Text.Of
	if n := len(r.Text.Pages); n < r.Text.Of {
		found.Notes = append(found.Notes, fmt.Sprintf("Only the first %d of %d pages were read.", n, r.Text.Of))
	}
	return s.understand(ctx, r, found)
}

func (s *Service) find(ctx context.Context, r Reading) (Found, *Text, error) {
	if err := s.advance(ctx, r, lookingUp); err != nil {
		return Found{}, nil, err
	}
	found, err := s.Library.Find(ctx, r.DOI)
	if err != nil {
		return Found{}, nil, err
	}
	if err := s.advance(ctx, r, fetching); err != nil {
		return Found{}, nil, err
	}
	var text Text
	err = s.counted(ctx, r.Payer, func() error {
		text, err = s.Library.Text(ctx, r.Payer, found.Copies)
		if err != nil && ctx.Err() != nil && !errors.Is(context.Cause(ctx), errTooLong) {
			return ctx.Err() // we were stopped, and the payer is not to blame
		}
		return err
	})
	return found, &text, err
}

func (s *Service) advance(ctx context.Context, r Reading, p Progress) error {
	if err := s.Queue.AdvanceReading(ctx, r, p); err != nil {
		return err
	}
	s.news.tell()
	return nil
}
