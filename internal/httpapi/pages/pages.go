// Package pages draws what a browser shows when people sign in, allow a
// program, follow a link from a mail, or run into an error. Every page works
// without scripts; the only one shows the operators' notice.
package pages

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"time"
)

//go:embed html/*.html
var files embed.FS

// Static are the files that pages ask for under /pages/.
//
//go:embed static
var Static embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"day":   func(t time.Time) string { return t.UTC().Format("2 January 2006") },
	"field": func(name string, f Form) Field { return Field{Name: name, Form: f} },
}).ParseFS(files, "html/*.html"))

// Draw is the page of this name, filled with its view.
func Draw(name string, view any) ([]byte, error) {
	var out bytes.Buffer
	if err := pages.ExecuteTemplate(&out, name+".html", view); err != nil {
		return nil, fmt.Errorf("draw the page %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// Form is what every form may have to say: what went wrong, in all and field
// by field, and where it leads.
type Form struct {
	Next    string
	Problem string
	Wrong   map[string]string // by field
}

// Field is one line of a form.
type Field struct {
	Form
	Name string
}

// Message is what is wrong with the field.
func (f Field) Message() string { return f.Wrong[f.Name] }

// Person is who is signed in, and where they are.
type Person struct{ Name, Email, Here string }

// SignIn asks for an email address and a password.
type SignIn struct {
	Form
	Email       string
	MaySign     bool     // up
	Providers   []string // providers to sign in at instead
	NoPasswords bool     // at a provider alone
}

// SecondFactor asks for the code of an authenticator app.
type SecondFactor struct {
	Form
	OneTimeToken string
}

// SignUp asks for what an account needs.
type SignUp struct {
	Form
	Name, Email string
	Invited     bool
	Team        string   // that the invitation is for
	ByPassword  bool     // a new account may have one
	Providers   []string // through which new people may come in
	Closed      string   // why nobody can sign up, where both of these are missing
	First       string   // the token of the link for the first account
}

// SignOut asks whether to leave.
type SignOut struct {
	Form
	Person *Person // nil: signed out
}

// Reset asks for the address to send a link to.
type Reset struct {
	Form
	Email  string
	Sent   bool
	NoMail bool // this server sends none
}

// NewPassword asks for another password.
type NewPassword struct {
	Form
	Done bool
}

// Verify confirms an email address.
type Verify struct {
	Done bool
}

// Invitation shows what a link from a mail is for.
type Invitation struct {
	Form
	Team, InvitedBy, Email, Role string
	Until                        time.Time
	Status                       string
	Person                       *Person // nil: nobody is signed in
	MaySign                      bool    // up
	NoPasswords                  bool    // at a provider alone
	Providers                    []string
	Here                         string // this page
}

// Mine reports whether who is signed in is who was invited.
func (i Invitation) Mine() bool { return i.Person != nil && i.Person.Email == i.Email }

// Consent asks whether a program may act for a person.
type Consent struct {
	Person Person
	Client string
	Where  string // the answer goes
	Local  bool   // to a program on this machine
	Itself bool   // it registered itself, and nobody knows who it is
	Action string

	Narrow           bool // it asks for reading, and maybe for these
	MayRun, MayWrite bool
}

// Device asks for a code, or whether the device that shows it may come in.
type Device struct {
	Form
	Person Person
	Code   string
	Client string
	Stage  string // ask, confirm, allowed, denied
}

// Error says what went wrong.
type Error struct {
	Title     string
	Message   string
	RequestID string
	SignIn    string // where that would help
}

// Help is a page of the documentation, or what a search found in it.
type Help struct {
	Title string
	Query string
	HTML  template.HTML
	Hits  []HelpHit
}

// HelpHit is a place in the documentation.
type HelpHit struct{ Path, Title, Excerpt string }

// Clients lists what people install to use the server from another machine.
type Clients struct {
	Project            string // whose packages these are; empty: all
	Packages, Programs []Client
}

// Client is a file that people install.
type Client struct{ Name, Link, Project, Platform, Size, SHA256, Install string }
