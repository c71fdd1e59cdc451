// Package mails is what a mail is before anybody sends it.
package mails

import (
	"strings"
	"unicode"

	"github.com/millrace/millrace/internal/domain/ids"
)

// Message is one plain-text mail to one person. Its subject is ours: nothing
// that a person wrote stands in it.
type Message struct {
	ID      string
	To      string
	Subject string
	Text    string
	Team    ids.Team `json:",omitempty"` // that it is about; with the team it is deleted
	Void    bool     `json:",omitempty"` // to nobody: it is deleted like a mail that was sent
}

const shownRunes = 40

// QuotedName is a name that somebody wrote, as it may stand in a mail to somebody
// else: short, in quotes, in one line, and without anything that a mail
// program would make a link of.
func QuotedName(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) || strings.ContainsRune("'’-,&()", r):
			b.WriteRune(r)
		case r == '.':
			b.WriteString(". ") // "Dr. A. B. Smith" reads well; an address does not
		default:
			b.WriteRune(' ')
		}
	}
	words := []rune(strings.Join(strings.Fields(b.String()), " "))
	if len(words) > shownRunes {
		words = append(words[:shownRunes-1], '…')
	}
	if len(words) == 0 {
		return "Someone"
	}
	return "“" + string(words) + "”"
}
