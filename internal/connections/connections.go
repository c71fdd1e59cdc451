// Package connections keeps how a team reaches its data elsewhere: S3-compatible
// stores, HTTPS hosts and Git hosts, with the credentials for them. How those are
// sealed is the store's business, and how the other side is spoken to is
// package remote's.
package connections

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Type is what is at the other end.
type Type string

// The types.
const (
	S3    Type = "s3"
	HTTPS Type = "https"
	Git   Type = "git"
)

// Settings are the parts of a connection that are no secret.
type Settings struct {
	Endpoint string `json:"endpoint,omitempty"` // s3: https://host[:port]
	Region   string `json:"region,omitempty"`
	Bucket   string `json:"bucket,omitempty"`
	Prefix   string `json:"prefix,omitempty"` // s3: empty, or ending in a slash
	Host     string `json:"host,omitempty"`   // https and git: host[:port]
	Header   string `json:"header,omitempty"` // https: which header carries the token
	Username string `json:"username,omitempty"`
	HostKey  string `json:"hostKey,omitempty"` // git over ssh: the key that the host had when it was first tested
}

// Credentials are the parts that nobody reads again.
type Credentials struct {
	AccessKey string `json:"accessKey,omitempty"`
	SecretKey string `json:"secretKey,omitempty"`
	Token     string `json:"token,omitempty"`
	Password  string `json:"password,omitempty"`
	SSHKey    string `json:"sshKey,omitempty"`
}

// Connection is one of a team's, without its credentials.
type Connection struct {
	ID   ids.Connection
	Team ids.Team
	Name string
	Type Type
	Settings
	Hint        string // the last characters of a long secret
	CreatedBy   ids.User
	CreatorName string
	CreatedAt   time.Time
	Test        Test
}

// Test is how the last try went.
type Test struct {
	OK      bool
	Message string
	At      time.Time
}

// Listing is a page of what is below a prefix of a bucket.
type Listing struct {
	Folders []string // prefixes that end in a slash
	Objects []Object
	Next    string // where the next page begins; empty: there is none
}

// Object is one object of a bucket.
type Object struct {
	URL        string // s3://bucket/key
	Name       string // the last part of its key
	Size       int64
	ETag       string
	ModifiedAt time.Time
}

// Store is what this room asks of the database.
type Store interface {
	// Connections are those of a team, newest first.
	Connections(ctx context.Context, team ids.Team) ([]Connection, error)
	// AddConnection keeps one with its credentials. Beyond most it is
	// fault.KindConflict.
	AddConnection(ctx context.Context, c Connection, secret Credentials, most int) (Connection, error)
	// OpenConnection is one of a team's with its credentials.
	OpenConnection(ctx context.Context, team ids.Team, id ids.Connection) (Connection, Credentials, error)
	// SetTested notes how a test went, and the host's key if it was learnt.
	SetTested(ctx context.Context, c Connection) error
	// DeleteConnection forgets one. While something names it, it is
	// fault.KindConflict.
	DeleteConnection(ctx context.Context, team ids.Team, id ids.Connection) error
}

// Remote speaks to the other side. What it says in a foreseen fault may be shown:
// it never has a credential in it.
type Remote interface {
	// Test looks whether the other side lets us in. It returns the host's key
	// where there is one.
	Test(ctx context.Context, c Connection, secret Credentials) (hostKey string, err error)
	// List gives a page of a bucket, from a cursor that a page before it gave.
	List(ctx context.Context, c Connection, secret Credentials, prefix, cursor string) (Listing, error)
}

// Service answers for a team's connections.
type Service struct {
	store  Store
	remote Remote
	rules  Rules
	now    func() time.Time
}

// Rules say what may be connected to.
type Rules struct {
	// PlainHTTP allows endpoints without TLS, where private networks are allowed.
	PlainHTTP bool
}

// NewService makes the room.
func NewService(store Store, remote Remote, rules Rules, now func() time.Time) *Service {
	return &Service{store, remote, rules, now}
}

const (
	// MaxConnections is how many a team may have.
	MaxConnections = 50
	// patience is how long the other side may take to answer.
	patience = 10 * time.Second
)

// Connections lists the team's, without their credentials.
func (s *Service) Connections(ctx context.Context, caller access.Caller) ([]Connection, error) {
	if err := caller.Must(access.SeeConnections); err != nil {
		return nil, err
	}
	return s.store.Connections(ctx, caller.Team)
}

// New is what somebody wants to connect to.
type New struct {
	Name string
	Type Type
	Settings
	Credentials
}

// Create keeps a connection and says how its first test went. One that failed is
// kept too: the other side may be down, or not ready yet.
func (s *Service) Create(ctx context.Context, caller access.Caller, in New) (Connection, error) {
	if err := caller.Must(access.ManageConnections); err != nil {
		return Connection{}, err
	}
	in.Settings = in.normal(in.Type)
	if wrong := s.rules.problems(in); len(wrong) > 0 {
		return Connection{}, fault.Problems(wrong, "%s %s", wrong[0].Path, wrong[0].Message)
	}
	c := Connection{
		ID: ids.NewConnection(), Team: caller.Team, Name: in.Name, Type: in.Type, Settings: in.Settings, Hint: hint(in.Credentials),
		CreatedBy: caller.User, CreatorName: caller.Name, CreatedAt: s.now(),
	}
	if err := s.try(ctx, &c, in.Credentials); err != nil {
		return Connection{}, err
	}
	return s.store.AddConnection(ctx, c, in.Credentials, MaxConnections)
}

// Known is nil where a caller may use such a connection.
func (s *Service) Known(ctx context.Context, caller access.Caller, id ids.Connection) error {
	if err := caller.Must(access.UseConnections); err != nil {
		return err
	}
	_, _, err := s.store.OpenConnection(ctx, caller.Team, id)
	return err
}

// Test tries a connection again.
func (s *Service) Test(ctx context.Context, caller access.Caller, id ids.Connection) (Test, error) {
	if err := caller.Must(access.UseConnections); err != nil {
		return Test{}, err
	}
	c, secret, err := s.store.OpenConnection(ctx, caller.Team, id)
	if err != nil {
		return Test{}, err
	}
	if err := s.try(ctx, &c, secret); err != nil {
		return Test{}, err
	}
	return c.Test, s.store.SetTested(ctx, c)
}

// try asks the other side, outside of any transaction.
func (s *Service) try(ctx context.Context, c *Connection, secret Credentials) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	key, err := s.remote.Test(limited, *c, secret)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.Test = Test{OK: err == nil, Message: "it works", At: s.now()}
	if err == nil && c.HostKey == "" {
		c.HostKey = key
	}
	if err != nil {
		c.Test.Message = said(err)
	}
	return nil
}

// said is what of a failure may be shown.
func said(err error) string {
	if known, ok := errors.AsType[*fault.Error](err); ok {
		return known.Message
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "it did not answer within 10 seconds"
	}
	return "it cannot be reached"
}

// Delete forgets a connection and its credentials.
func (s *Service) Delete(ctx context.Context, caller access.Caller, id ids.Connection) error {
	if err := caller.Must(access.ManageConnections); err != nil {
		return err
	}
	return s.store.DeleteConnection(ctx, caller.Team, id)
}

// Objects lists what is below a prefix of a bucket; without one, what the
// connection reaches.
func (s *Service) Objects(ctx context.Context, caller access.Caller, id ids.Connection, prefix, cursor string) (Listing, error) {
	if err := caller.Must(access.UseConnections); err != nil {
		return Listing{}, err
	}
	c, secret, err := s.store.OpenConnection(ctx, caller.Team, id)
	if err != nil {
		return Listing{}, err
	}
	if c.Type != S3 {
		return Listing{}, fault.Invalid("only the objects of an S3 connection can be listed")
	}
	if prefix == "" {
		prefix = c.Prefix
	}
	if err := c.Holds(prefix); err != nil {
		return Listing{}, err
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	list, err := s.remote.List(limited, c, secret, prefix, cursor)
	if err != nil && ctx.Err() == nil {
		err = fault.Invalid("%s: %s", c.Name, said(err)).WithCode("connection_failed").WithCause(err)
	}
	return list, err
}

// SSHKey reports whether the connection signs in with a key over SSH.
func (c Connection) SSHKey(secret Credentials) bool { return c.Type == Git && secret.SSHKey != "" }

// Holds is nil where a key or a prefix lies below the connection's own.
func (c Connection) Holds(key string) error {
	if strings.HasPrefix(key, c.Prefix) {
		return nil
	}
	return fault.Forbidden("the connection %s reaches only what is below %s", c.Name, c.Prefix).WithCode("outside_prefix")
}
