package system

import (
	"strings"
	"sync"

	"github.com/millrace/millrace/docs"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/help"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/httpapi/pages"
)

// openHelp reads the documentation when somebody first asks for it.
var openHelp = sync.OnceValues(func() (*help.Book, error) { return help.Open(docs.Files) })

// Help shows a page of the documentation, or what a search finds in it.
func (a *API) Help(x *kernel.Exchange) (kernel.Answer, error) {
	book, err := openHelp()
	if err != nil {
		return kernel.Answer{}, err
	}
	query := strings.TrimSpace(x.Request.URL.Query().Get("q"))
	if query != "" {
		if len(query) > 200 || !kernel.Printable(query) {
			return kernel.Answer{}, fault.Invalid("search for at most 200 letters")
		}
		view := pages.Help{Title: "Search", Query: query}
		for _, h := range book.Search(query) {
			view.Hits = append(view.Hits, pages.HelpHit{Path: h.Path, Title: h.Title, Excerpt: h.Excerpt})
		}
		return x.DrawPage("help", view)
	}
	page, found := book.Page(x.Request.PathValue("page"))
	if !found {
		return kernel.NotFound(x)
	}
	return x.DrawPage("help", pages.Help{Title: page.Title, HTML: page.HTML})
}
