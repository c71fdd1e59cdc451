// Package letters is what a mail is before anybody sends it.
package letters

// Letter is one plain-text mail to one person.
type Letter struct {
	ID      string
	To      string
	Subject string
	Text    string
}
