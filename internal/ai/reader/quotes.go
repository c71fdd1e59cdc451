package reader

import "strings"

// Quoted finds the page that says something word for word. It overlooks what
// typesetting does to words: line breaks, hyphens at their ends, ligatures and
// curly quotation marks.
func Quoted(pages []Page, quote string) (page int, ok bool) {
	for _, p := range pages {
		if strings.Contains(p.Text, quote) {
			return p.Number, quote != ""
		}
	}
	return 0, false
}
