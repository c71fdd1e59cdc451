package ai

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
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
		select {
		case s.work <- struct{}{}:
		default: // told already
		}
	}
	return a, err
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
	text, err := s.PDFs.PDFText(ctx, u.Path)
	if err != nil {
		return Analysis{}, err
	}
	a.Text = &text
	return s.begun(s.Store.Ask(ctx, a, s.Limits, s.Now()))
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

// Follow tells of an analysis whenever it has moved, until it is over, or ctx
// or the server ends. It returns the analysis as it was last seen.
func (s *Service) Follow(ctx context.Context, o Owner, id ids.Analysis, tell func(Analysis) error) (Analysis, error) {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	var last Analysis
	for {
		moved := s.news.next() // taken before the look, so that nothing falls in between
		a, err := s.Store.Analysis(ctx, o.Key(), id)
		if err != nil {
			if ctx.Err() != nil && last.ID != "" {
				return last, nil
			}
			return last, err
		}
		if last.ID == "" || a.Status != last.Status || a.Progress != last.Progress {
			if err := tell(a); err != nil {
				return a, err
			}
		}
		if last = a; a.Status.Terminal() {
			return a, nil
		}
		select {
		case <-ctx.Done():
			return a, nil
		case <-s.closed:
			return a, nil
		case <-moved:
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
