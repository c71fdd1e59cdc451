package ai

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
)

// Analyze begins the analysis of a paper, or joins one: what is read already
// costs nothing, and what is being read is read once.
func (s *Service) Analyze(ctx context.Context, o Owner, text string) (Analysis, error) {
	name, err := parse(text)
	if err != nil {
		return Analysis{}, err
	}
	a := Asked{Owner: o, Subject: "doi " + string(name), Reader: s.reader(), DOI: name}
	return s.begun(s.Store.Ask(ctx, a, s.Limits, s.Now()))
}

func (s *Service) begun(a Analysis, err error) (Analysis, error) {
	if err == nil && a.Status == Queued {
		s.wake()
	}
	return a, err
}

// wake has somebody look for work.
func (s *Service) wake() {
	select {
	case s.work <- struct{}{}:
	default: // told already
	}
}

// builtIn names the analyser that needs no model. Its number changes when its
// answers do, so that old ones are not taken from the cache.
const builtIn = "built-in 1"

func (s *Service) reader() string {
	if s.Model == nil {
		return builtIn
	}
	return "model " + s.Model.Name()
}

// Upload is a PDF that somebody brought.
type Upload struct {
	Path   string
	SHA256 string
	DOI    string // only names the paper
	Title  string
}

const longestTitle = 1000 // characters

// Upload analyses a PDF for its owner alone. Its text is taken out at once, so
// that the file need not be kept and what is wrong with it is told at once.
func (s *Service) Upload(ctx context.Context, o Owner, u Upload) (Analysis, error) {
	a := Asked{Owner: o, Subject: "pdf " + o.Key() + " " + u.SHA256, Reader: s.reader(), Title: clean(u.Title, longestTitle)}
	if u.DOI != "" {
		var err error
		if a.DOI, err = parse(u.DOI); err != nil {
			return Analysis{}, err
		}
	}
	if known, err := s.Store.Attach(ctx, a, s.Now()); !fault.Is(err, fault.KindNotFound) {
		return known, err
	}
	// Who has no quota left need not make us read; Ask looks again.
	c, err := s.Use.Charged(ctx, o, DayOf(s.Now()))
	if err != nil {
		return Analysis{}, err
	}
	if err := s.Limits.Refused(o, c, s.Now()); err != nil {
		return Analysis{}, err
	}
	err = s.counted(ctx, o.Payer(), func() error {
		text, err := s.PDFs.PDFText(ctx, o.Payer(), u.Path)
		a.Text = &text
		return err
	})
	if err != nil {
		return Analysis{}, err
	}
	return s.begun(s.Store.Ask(ctx, a, s.Limits, s.Now()))
}

// counted reads a PDF, which counts as failed until it has been read, or is not
// to blame.
func (s *Service) counted(ctx context.Context, p Payer, read func() error) error {
	now := s.Now()
	if err := s.Failed.TakePDF(ctx, p, s.Limits, now); err != nil {
		return err
	}
	err := read()
	if errors.Is(err, ErrUnreadable) {
		return err
	}
	// However this was stopped, it must be taken back.
	end, done := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer done()
	return errors.Join(err, s.Failed.ReturnPDF(end, p, DayOf(now)))
}

// PDFHead is how many bytes a PDF takes at most to say that it is one.
const PDFHead = 1024

// MustBePDF is nil when a file that begins like this is a PDF.
func MustBePDF(head []byte) error {
	if !bytes.Contains(head[:min(len(head), PDFHead)], []byte("%PDF-")) {
		return fault.Unsupported("this is not a PDF")
	}
	return nil
}

// poll is how often we look for what other servers did.
const poll = time.Second

// Follow looks at an analysis until it is over, or ctx or the server ends: as
// soon as it has moved, and every second. It returns the analysis as it was
// last seen, or why look did not want to go on.
func (s *Service) Follow(ctx context.Context, a Analysis, look func(a Analysis, moved bool) error) (Analysis, error) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for moved := true; ; {
		if err := look(a, moved); err != nil || a.Status.Terminal() {
			return a, err
		}
		news := s.news.next() // taken before the look, so that nothing falls in between
		now, err := s.Store.Analysis(ctx, a.Owner, a.ID)
		if err != nil {
			if ctx.Err() != nil {
				err = nil
			}
			return a, err
		}
		moved = now.Status != a.Status || now.Progress != a.Progress
		if a = now; moved {
			continue
		}
		select {
		case <-ctx.Done():
			return a, nil
		case <-s.closed:
			return a, nil
		case <-news:
		case <-tick.C:
		}
	}
}

// pulse wakes everybody who waits for news. It carries none itself.
type pulse struct {
	mu   sync.Mutex
	beat chan struct{}
}

func (p *pulse) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.beat == nil {
		p.beat = make(chan struct{})
	}
	return p.beat
}

func (p *pulse) tell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.beat != nil {
		close(p.beat)
		p.beat = nil
	}
}
