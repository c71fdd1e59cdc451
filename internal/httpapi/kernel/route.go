package kernel

import "github.com/millrace/millrace/internal/domain/access"

// Handler answers a request that was admitted.
type Handler func(x *Exchange) (Answer, error)

// Route is one line of the API.
type Route struct {
	Pattern string
	Who     Audience
	May     access.Action // what a member's role must allow
	OfTeam  bool          // for a Person: {id} in its path is the team whose role that is
	Basic   bool          // takes a token as the password of the user @token, too
	Guests  bool          // takes the token of a share link, too
	Body    int64         // the largest JSON body it takes; 0: it reads none
	Once    bool          // honours Idempotency-Key
	Limit   *AddressLimit
	FailsAs FailureFormat
	Page    bool // fails on a page where a browser asks
	Slow    bool // may take longer than an ordinary answer: it streams, moves bytes or asks others
	Handle  Handler

	ResourceMetadata string // where clients learn who gives tokens for it (RFC 9728); empty: nowhere
}

// Audience is who a route is for.
type Audience int

// The audiences.
const (
	Anybody      Audience = iota // no credential is looked at
	OptionalAuth                 // signed in or not, team or no team; a bad token is still 401
	Visitor                      // signed in or not; who is, is placed in a team
	Person                       // signed in, team or no team
	Self                         // signed in by a session of their own, not through a program
	Member                       // signed in and placed in a team
	Operator                     // looks after the installation, and is signed in as Self is, by cookie
)

// FailureFormat is the language in which a route fails.
type FailureFormat int

// The formats of failures.
const (
	Envelope FailureFormat = iota
	ChatFailure
	OAuthFailure
)

// How large bodies may be.
const (
	SmallBody = 1 << 20 // bytes of an ordinary body
	GraphBody = 8 << 20 // of one with a definition
	ChatBody  = 20 << 20

	FolderBody = 32 << 20 // of one that names the files of a folder
)
