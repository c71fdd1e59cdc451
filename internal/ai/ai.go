// Package ai turns papers into workflows and lets people chat with the hosted
// model: who may ask how often, what is read once for everybody, and what an
// answer must hold before it is believed. Where papers and models come from is
// the adapters' business.
package ai

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/millrace/millrace/internal/ai/reader"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/doi"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Status is how far an analysis is.
type Status string

// The statuses; the last two are terminal.
const (
	Queued     Status = "queued"
	Processing Status = "processing"
	Completed  Status = "completed"
	Failed     Status = "failed"
)

// Terminal reports whether nothing more will happen.
func (s Status) Terminal() bool { return s == Completed || s == Failed }

// Owner is whom an analysis belongs to, and who pays for it with their quota: a
// team, or a visitor without an account.
type Owner struct {
	Team    ids.Team
	User    ids.User
	Visitor string // empty for a team
	Address string // where a visitor comes from
}

// OwnerOf is the team of a caller.
func OwnerOf(c access.Caller) Owner { return Owner{Team: c.Team, User: c.User} }

// Key names the owner among all of them.
func (o Owner) Key() string {
	if o.Visitor != "" {
		return "visitor " + o.Visitor
	}
	return string(o.Team)
}

// Payer is who a reading is charged to, and whose turn it takes.
type Payer struct {
	Owner   string
	Address string // of a visitor, else empty
}

// CountedAs are the names under which a payer's PDFs are counted.
func (p Payer) CountedAs() []string {
	if p.Address == "" {
		return []string{p.Owner}
	}
	return []string{p.Owner, "address " + p.Address}
}

// Payer is the owner, as readings know them.
func (o Owner) Payer() Payer { return Payer{Owner: o.Key(), Address: o.Address} }

// Failure is why an analysis failed, as it was first told.
type Failure struct {
	Kind    fault.Kind
	Code    string
	Message string
}

// Err is the failure as a caller gets it.
func (f Failure) Err() *fault.Error {
	return &fault.Error{Kind: f.Kind, Code: f.Code, Message: f.Message}
}

// Analysis is what an owner has asked for: one paper, and what is known of it.
type Analysis struct {
	ID        ids.Analysis
	Owner     string
	DOI       doi.DOI
	Title     string
	Status    Status
	Progress  Progress
	Failure   *Failure
	Result    *Result // nil in lists, and until it is completed
	CreatedAt time.Time
}

// Result is what was found out about a paper.
type Result struct {
	Summary     string             `json:"summary"`
	Methodology reader.Methodology `json:"methodology"`
	Suggestion  *reader.Suggestion `json:"workflowSuggestion"`
	Notes       []string           `json:"notes"`
	Paper       Paper              `json:"paper"`
}

// Paper is what is known about a paper beside its text. What is unknown is
// empty, or nil where empty would say something.
type Paper struct {
	DOI           doi.DOI     `json:"doi"`
	Title         string      `json:"title"`
	Authors       []Author    `json:"authors"`
	Abstract      string      `json:"abstract"`
	Journal       string      `json:"journal"`
	Publisher     string      `json:"publisher"`
	Year          int         `json:"year"`
	Type          string      `json:"type"`
	URL           string      `json:"url"`
	OpenAccess    *OpenAccess `json:"openAccess"`
	CitationCount *int        `json:"citationCount"`
	IsRetracted   *bool       `json:"isRetracted"`
	Source        string      `json:"source"` // where this comes from
	PageCount     int         `json:"pageCount"`
}

// Author is one of those who wrote it.
type Author struct {
	Name        string `json:"name"`
	ORCID       string `json:"orcid"`
	Affiliation string `json:"affiliation"`
}

// OpenAccess is how openly a paper may be read.
type OpenAccess struct {
	IsOA    bool   `json:"isOa"`
	Status  string `json:"status"`
	License string `json:"license"`
	PDFURL  string `json:"pdfUrl"`
}

// Text is what a PDF says, page by page.
type Text struct {
	Pages []reader.Page `json:"pages"`
	Of    int           `json:"of"` // pages of the whole PDF, of which the first were read
}

// Store keeps analyses.
type Store interface {
	// Attach finds a reading of the subject that is under way or fresh, and
	// makes the owner's analysis of it. Without one it is fault.KindNotFound.
	Attach(ctx context.Context, a Asked, now time.Time) (Analysis, error)
	// Ask attaches the owner, or begins a reading at their expense, within the
	// limits. Of any number that ask at once, one begins it.
	Ask(ctx context.Context, a Asked, l Limits, now time.Time) (Analysis, error)
	Analysis(ctx context.Context, owner string, id ids.Analysis) (Analysis, error)
	// AnalysisOf is the owner's newest analysis of a paper; one that failed only
	// when there is no other.
	AnalysisOf(ctx context.Context, owner string, name doi.DOI) (Analysis, error)
	// Analyses lists lean rows before the cursor, newest first.
	Analyses(ctx context.Context, owner string, before ids.Analysis, limit int) ([]Analysis, error)
}

// UseStore counts.
type UseStore interface {
	// Charged counts the readings of a day that were charged to the owner, to
	// their address, and to all visitors; failed ones do not count.
	Charged(ctx context.Context, o Owner, day time.Time) (Charged, error)
	// AIDays sums up what a team used since from; empty days are left out.
	AIDays(ctx context.Context, team ids.Team, from time.Time) ([]Day, error)
}

// PDFStore counts PDFs that could not be read, by day. One is counted before it
// is read, so that whoever's PDF takes a server down has been counted.
type PDFStore interface {
	// TakePDF counts one for the payer, unless that is too many.
	TakePDF(ctx context.Context, p Payer, l Limits, now time.Time) error
	// ReturnPDF takes back what TakePDF counted on that day.
	ReturnPDF(ctx context.Context, p Payer, day time.Time) error
}

// Asked is one request for an analysis.
type Asked struct {
	Owner   Owner
	Subject string // what is to be read: whoever asks for the same shares it
	Reader  string // who would read it
	DOI     doi.DOI
	Title   string
	Text    *Text // of an upload; nil: to be fetched
}

// Library knows papers by their DOI.
type Library interface {
	// Find looks a paper up. An unknown one is fault.KindNotFound.
	Find(ctx context.Context, name doi.DOI) (Found, error)
	// Text brings the first copy that can be had and read. When there is none,
	// because of one that could not be read, it is ErrUnreadable, too.
	Text(ctx context.Context, p Payer, copies []string) (Text, error)
}

// Found is a paper that was looked up, and where open copies may be.
type Found struct {
	Paper  Paper
	Copies []string
	Notes  []string // what could not be found out
	Lesser bool     // a service that did not answer may have known more
}

// ErrUnreadable is a PDF that took our work and could not be read, or was not
// waited for.
var ErrUnreadable = errors.New("the PDF was not read")

// PDFs reads files. What is no PDF is fault.KindUnsupported; one that cannot
// be read says why, and is ErrUnreadable, too.
type PDFs interface {
	PDFText(ctx context.Context, p Payer, path string) (Text, error)
}

// Model reads papers better than we do ourselves.
type Model interface {
	Name() string
	Read(ctx context.Context, p Paper, pages []reader.Page) (reader.Reading, error)
}

// Options are what the room is made of.
type Options struct {
	Store    Store
	Queue    ReadingQueue
	Use      UseStore
	Failed   PDFStore
	Library  Library
	PDFs     PDFs
	Model    Model // nil: the built-in analyser reads
	Limits   Limits
	Patience Patience
	Worker   string // who we are, among several servers
	Alone    bool   // nobody else works on this database
	Log      *slog.Logger
	Now      func() time.Time
}

// Service is the room.
type Service struct {
	Options
	news   pulse
	work   chan struct{}
	closed chan struct{} // when Run has ended
}

// NewService makes the room. Its work is done by Run.
func NewService(o Options) *Service {
	o.Patience = o.Patience.orDefault()
	return &Service{Options: o, work: make(chan struct{}, 1), closed: make(chan struct{})}
}

// Analysis is one of the caller's team.
func (s *Service) Analysis(ctx context.Context, caller access.Caller, id ids.Analysis) (Analysis, error) {
	if err := caller.Must(access.Read); err != nil {
		return Analysis{}, err
	}
	return s.Store.Analysis(ctx, OwnerOf(caller).Key(), id)
}

// AnalysisOf is the newest of the caller's team of one paper.
func (s *Service) AnalysisOf(ctx context.Context, caller access.Caller, text string) (Analysis, error) {
	if err := caller.Must(access.Read); err != nil {
		return Analysis{}, err
	}
	name, err := parse(text)
	if err != nil {
		return Analysis{}, err
	}
	return s.Store.AnalysisOf(ctx, OwnerOf(caller).Key(), name)
}

// Analyses lists those of the caller's team, newest first.
func (s *Service) Analyses(ctx context.Context, caller access.Caller, before ids.Analysis, limit int) (list []Analysis, more bool, err error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, false, err
	}
	list, err = s.Store.Analyses(ctx, OwnerOf(caller).Key(), before, limit+1)
	if len(list) > limit {
		return list[:limit], true, err
	}
	return list, false, err
}

func parse(text string) (doi.DOI, error) {
	name, ok := doi.Parse(text)
	if !ok {
		d := fault.Detail{Path: "doi", Message: "is not a DOI such as 10.1093/bioinformatics/bty560"}
		return "", fault.Problems([]fault.Detail{d}, "doi %s", d.Message)
	}
	return name, nil
}
