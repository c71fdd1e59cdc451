package papers

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/domain/doi"
	"github.com/millrace/millrace/internal/domain/fault"
)

// told is what the services say about one paper.
type told struct {
	crossref  crossrefWork
	openAlex  openAlexWork
	unpaywall unpaywallWork
	errs      [3]error // in this order
}

// Find asks all services at once.
func (l *Library) Find(ctx context.Context, name doi.DOI) (ai.Found, error) {
	t := l.ask(ctx, name)
	if err := ctx.Err(); err != nil {
		return ai.Found{}, err
	}
	if err := t.exists(); err != nil {
		return ai.Found{}, err
	}
	found := ai.Found{Paper: t.paper(name), Copies: t.copies()}
	for i, service := range []string{"Crossref", "OpenAlex", "Unpaywall"} {
		if !answered(t.errs[i]) {
			l.Log.WarnContext(ctx, "a service that knows papers is in trouble", slog.String("service", service), slog.Any("error", t.errs[i]))
			found.Notes = append(found.Notes, service+" did not answer; what it knows about this paper is missing.")
			found.Lesser = true
		}
	}
	return found, t.open(found)
}

func (l *Library) ask(ctx context.Context, name doi.DOI) *told {
	t := &told{}
	var crossref struct{ Message *crossrefWork }
	var wg sync.WaitGroup
	wg.Go(func() {
		t.errs[0] = l.record(ctx, at(l.CrossrefURL, "/works/", name, l.Contact, "mailto"), &crossref)
		if t.errs[0] == nil && crossref.Message == nil {
			t.errs[0] = errors.New("answered without a work")
		}
	})
	wg.Go(func() {
		t.errs[1] = l.record(ctx, at(l.OpenAlexURL, "/works/doi:", name, l.Contact, "mailto"), &t.openAlex)
		if t.errs[1] == nil && t.openAlex.ID == "" && t.openAlex.DOI == "" {
			t.errs[1] = errors.New("answered without a work")
		}
	})
	wg.Go(func() {
		contact := cmp.Or(l.Contact, "millrace@localhost") // it answers nobody without one
		t.errs[2] = l.record(ctx, at(strings.TrimSuffix(strings.TrimRight(l.UnpaywallURL, "/"), "/v2"), "/v2/", name, contact, "email"), &t.unpaywall)
		if t.errs[2] == nil && t.unpaywall.DOI == "" {
			t.errs[2] = errors.New("answered without a work")
		}
	})
	wg.Wait()
	if t.errs[0] == nil {
		t.crossref = *crossref.Message
	}
	if t.errs[1] != nil { // half an answer is none
		t.openAlex = openAlexWork{}
	}
	if t.errs[2] != nil {
		t.unpaywall = unpaywallWork{}
	}
	return t
}

// answered reports whether a service said anything, be it that it knows
// nothing.
func answered(err error) bool { return err == nil || errors.Is(err, errUnknown) }

// exists is nil when somebody knows the paper. It is unknown when two say so
// and nobody says otherwise; with fewer we cannot tell.
func (t *told) exists() error {
	denied := 0
	for _, err := range t.errs {
		if err == nil {
			return nil
		}
		if errors.Is(err, errUnknown) {
			denied++
		}
	}
	if denied >= 2 {
		return fault.NotFound("no paper has this DOI: check that it is complete")
	}
	return fault.Unavailable("this DOI can't be looked up now: Crossref and OpenAlex do not respond; try again later, or upload the PDF").
		WithCode("lookup_unavailable").WithCause(errors.Join(t.errs[:]...))
}

// open is nil when a copy may be had.
func (t *told) open(f ai.Found) error {
	if len(f.Copies) > 0 {
		return nil
	}
	if !answered(t.errs[1]) && !answered(t.errs[2]) {
		return fault.Unavailable("Unpaywall and OpenAlex do not respond, so we can't check for an open copy of this paper; try again later, or upload the PDF").
			WithCode("lookup_unavailable")
	}
	return closed("this paper has no open copy that we may fetch")
}

func closed(why string) *fault.Error {
	return fault.Conflict("%s: upload its PDF instead", why).WithCode("closed_access")
}

// paper takes each particular from the first who knows it.
func (t *told) paper(name doi.DOI) ai.Paper {
	c, o, u := &t.crossref, &t.openAlex, &t.unpaywall
	p := ai.Paper{
		DOI: name, Title: plain(cmp.Or(first(c.Title), o.Title, o.DisplayName, u.Title)),
		Abstract: cmp.Or(plain(c.Abstract), plain(o.abstract())), Journal: plain(cmp.Or(first(c.ContainerTitle), o.PrimaryLocation.Source.DisplayName, u.JournalName)),
		Publisher: plain(cmp.Or(c.Publisher, o.PrimaryLocation.Source.HostOrganizationName, u.Publisher)),
		Year:      cmp.Or(c.year(), o.PublicationYear, u.Year), Type: cmp.Or(c.Type, o.Type, u.Genre),
		URL: cmp.Or(webOnly(c.URL), "https://doi.org/"+string(name)), Authors: t.authors(),
	}
	if t.errs[0] == nil {
		p.CitationCount = c.Citations
	}
	if t.errs[1] == nil && o.CitedByCount != nil {
		p.CitationCount = o.CitedByCount
	}
	if t.errs[0] == nil || t.errs[1] == nil {
		retracted := c.retracted() || o.IsRetracted
		p.IsRetracted = &retracted
	}
	p.OpenAccess = t.openAccess()
	var sources []string
	for i, s := range []string{"crossref", "openalex", "unpaywall"} {
		if t.errs[i] == nil {
			sources = append(sources, s)
		}
	}
	p.Source = strings.Join(sources, ", ")
	return p
}

func (t *told) authors() []ai.Author {
	for _, list := range [][]ai.Author{t.crossref.authors(), t.openAlex.authors(), t.unpaywall.authors()} {
		if len(list) > 0 {
			return list
		}
	}
	return []ai.Author{}
}

func (t *told) openAccess() *ai.OpenAccess {
	o, u := &t.openAlex, &t.unpaywall
	var pdf string
	if c := t.copies(); len(c) > 0 {
		pdf = c[0]
	}
	switch {
	case t.errs[2] == nil:
		return &ai.OpenAccess{IsOA: u.IsOA, Status: u.OAStatus, License: u.BestOALocation.License, PDFURL: pdf}
	case t.errs[1] == nil:
		return &ai.OpenAccess{IsOA: o.OpenAccess.IsOA, Status: o.OpenAccess.OAStatus, License: o.BestOALocation.License, PDFURL: pdf}
	}
	return nil
}

const mostCopies = 4

// copies are where open PDFs may be, the likeliest first.
func (t *told) copies() []string {
	var list []string
	add := func(addresses ...string) {
		for _, a := range addresses {
			if a = webOnly(a); a != "" && !slices.Contains(list, a) && len(list) < mostCopies {
				list = append(list, a)
			}
		}
	}
	add(t.unpaywall.BestOALocation.URLForPDF)
	for _, at := range t.unpaywall.OALocations {
		add(at.URLForPDF)
	}
	add(t.openAlex.BestOALocation.PDFURL)
	for _, at := range t.openAlex.Locations {
		if at.IsOA {
			add(at.PDFURL)
		}
	}
	add(t.crossref.openPDFs()...)
	return list
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// webOnly is an address that a browser could follow, or nothing.
func webOnly(address string) string {
	if strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://") {
		return address
	}
	return ""
}
