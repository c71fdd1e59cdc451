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
	Path    string   `json:",omitempty"` // a page of the app that it leads to
	Team    ids.Team `json:",omitempty"` // that it is about; with the team it is deleted
	Void    bool     `json:",omitempty"` // to nobody: it is deleted like a mail that was sent
}

// The most that is shown of what others wrote, in characters.
const (
	nameRunes     = 40
	sentenceRunes = 300
)

// QuotedName is a name that somebody wrote, as it may stand in a mail to somebody
// else: short, in quotes, in one line, and without anything that a mail
// program would make a link of.
func QuotedName(name string) string {
	words := withoutLinks(name, "'’-,&()", nameRunes)
	if words == "" {
		return "Someone"
	}
	return "“" + words + "”"
}

// Sentence is a sentence with names that somebody wrote, as it may stand in a mail to
// somebody else: in one line, and without anything that a mail program would make a link of.
func Sentence(text string) string {
	return withoutLinks(text, "'’-,&();%\"", sentenceRunes)
}

// maxLines is how many lines of what others wrote a mail shows.
const maxLines = 11

// Lines are the first lines of a text that somebody wrote, each as a Sentence. All but the
// first are indented.
func Lines(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = Sentence(line); line != "" && len(lines) < maxLines {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n  ")
}

// withoutLinks keeps letters, digits and some marks of a text in one line.
func withoutLinks(text, marks string, most int) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) || strings.ContainsRune(marks, r):
			b.WriteRune(r)
		case r == '.':
			b.WriteString(". ") // "Dr. A. B. Smith" reads well; an address does not
		default:
			b.WriteRune(' ')
		}
	}
	words := []rune(strings.Join(strings.Fields(b.String()), " "))
	if len(words) > most {
		words = append(words[:most-1], '…')
	}
	return string(words)
}
