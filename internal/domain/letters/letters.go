// Package letters is what a mail is before anybody sends it.
package letters

import "github.com/millrace/millrace/internal/domain/ids"

// Letter is one plain-text mail to one person.
type Letter struct {
	ID      string
	To      string
	Subject string
	Text    string
	Team    ids.Team `json:",omitempty"` // of which it tells; with the team it is forgotten
}
