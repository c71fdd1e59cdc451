package httpapi

import (
	"strings"
	"sync"

	"github.com/millrace/millrace/docs"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/httpapi/help"
	"github.com/millrace/millrace/internal/httpapi/pages"
)

// openHelp reads the documentation when somebody first asks for it.
var openHelp = sync.OnceValues(func() (*help.Book, error) { return help.Open(docs.Files) })

// help shows a page of the documentation, or what a search finds in it.
func (a *API) help(x *exchange) (answer, error) {
	book, err := openHelp()
	if err != nil {
		return answer{}, err
	}
	query := strings.TrimSpace(x.r.URL.Query().Get("q"))
	if query != "" {
		if len(query) > 200 || !printable(query) {
			return answer{}, fault.Invalid("search for at most 200 letters")
		}
		view := pages.Help{Title: "Search", Query: query}
		for _, h := range book.Search(query) {
			view.Hits = append(view.Hits, pages.HelpHit{Path: h.Path, Title: h.Title, Excerpt: h.Excerpt})
		}
		return x.draw("help", view)
	}
	page, found := book.Page(x.r.PathValue("page"))
	if !found {
		return nowhere(x)
	}
	return x.draw("help", pages.Help{Title: page.Title, HTML: page.HTML})
}
