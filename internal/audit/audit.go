// Package audit is the record of who did what in a team: append-only, each entry
// carrying the hash of the one before. What is done by a request or an operator's
// command travels in its context as a Pending entry, and the store writes it in the
// transaction that does it, so that neither is there without the other.
package audit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Installation is the chain of what concerns no team.
const Installation = "installation"

// Actor is who did something.
type Actor struct {
	Type string // user, guest, operator, or system
	ID   string
	Name string
}

// Entry is one thing that somebody did.
type Entry struct {
	Chain     string // a team, or the installation
	Seq       int64
	At        time.Time
	Actor     Actor
	Action    string
	Target    string // what it was done to; may be empty
	Via       string // session, or the token or app that the actor used
	Address   string
	RequestID string
	Prev      string // the hash of the entry before; empty: there was none
	Hash      string

	// TargetName is what the target was called when it was done; empty: it had no name,
	// or the entry is older than names in the log.
	TargetName string
	// TargetExists reports whether the team has the target still, as far as it has a name.
	TargetExists bool
}

// Sum is the hash of an entry: of all it says and of the one before.
func (e Entry) Sum() string {
	said := []any{
		e.Chain, e.Seq, e.At.UnixMicro(), e.Actor.Type, e.Actor.ID, e.Actor.Name, e.Action, e.Target, e.Via, e.Address, e.RequestID, e.Prev,
	}
	if e.TargetName != "" { // which older entries lack
		said = append(said, e.TargetName)
	}
	text, err := json.Marshal(said)
	if err != nil {
		panic(err) // text and numbers only
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Pending is the entry of what a request or a command is about to do. Whoever learns more of it
// on the way adds that.
type Pending struct {
	Entry
	Allowance Allowance // of the actor, that this takes from
	Written   bool      // the transaction that did it is committed
}

// Allowance is how many changes an account may make a day, as a bucket that holds a day's
// changes and fills evenly: an account may make them all at once, and one more each time that
// a day's share has passed. 0 is any number.
type Allowance int

const day = 24 * time.Hour

// Share is the part of a day that a change takes.
func (a Allowance) Share() time.Duration { return day / time.Duration(a) }

// Latest is how far ahead the changes of an account may reach, for one more to be made now.
func (a Allowance) Latest(now time.Time) time.Time { return now.Add(day - a.Share()) }

// Exceeded is the refusal of a change of an account whose changes reach until a time.
func (a Allowance) Exceeded(until, now time.Time) error {
	return fault.Limited(until.Sub(a.Latest(now)), "you have made %d changes within a day, the most that an account may make (--changes-per-day); wait and try again", int(a))
}

type key struct{}

// With is a context in which the next change that is stored writes this entry.
func With(ctx context.Context, p *Pending) context.Context { return context.WithValue(ctx, key{}, p) }

// Without is a context for what is stored on the way and is no entry:
// counted attempts, codes that are used up.
func Without(ctx context.Context) context.Context {
	if From(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, key{}, (*Pending)(nil))
}

// From is the entry that is still to be written; nil where there is none.
func From(ctx context.Context) *Pending {
	p, _ := ctx.Value(key{}).(*Pending)
	if p == nil || p.Written {
		return nil
	}
	return p
}

// On names what something was done to, where that is known only when it is made.
func On[T ~string](ctx context.Context, target T) {
	if p := From(ctx); p != nil {
		p.Target = string(target)
	}
}

// Filter is what is looked for; what is empty is anything.
type Filter struct {
	Actor  string // an id
	Action string // one, or all that begin with what ends in a dot
	Since  time.Time
	Until  time.Time
	Before int64 // a sequence number; 0: from the newest
}

// Store is what this room asks of the database.
type Store interface {
	// AuditEntries are a chain's, newest first.
	AuditEntries(ctx context.Context, chain string, f Filter, limit int) ([]Entry, error)
	// TargetNames are what those of the targets are called that a team has and
	// that have a name.
	TargetNames(ctx context.Context, team ids.Team, targets []string) (map[string]string, error)
	// WritePending writes the pending entry of the context by itself, for what changes
	// nothing.
	WritePending(ctx context.Context) error
}

// Service answers what was done in a team.
type Service struct{ store Store }

// NewService makes the room.
func NewService(store Store) *Service { return &Service{store} }

// Entries lists what was done in the caller's team, newest first, and whether
// there is more.
func (s *Service) Entries(ctx context.Context, caller access.Caller, f Filter, limit int) (list []Entry, more bool, err error) {
	if err := caller.Must(access.ReadAudit); err != nil {
		return nil, false, err
	}
	list, more, err = s.page(ctx, ChainOf(caller.Team), f, limit)
	if err != nil {
		return nil, false, err
	}
	targets := make([]string, len(list))
	for i, e := range list {
		targets[i] = e.Target
	}
	names, err := s.store.TargetNames(ctx, caller.Team, targets)
	for i := range list {
		var now string
		now, list[i].TargetExists = names[list[i].Target]
		list[i].TargetName = cmp.Or(list[i].TargetName, now)
	}
	return list, more, err
}

// OfInstallation lists what was done in the installation and concerns no team, newest first, and
// whether there is more. Whether the caller may see it is asked before.
func (s *Service) OfInstallation(ctx context.Context, f Filter, limit int) ([]Entry, bool, error) {
	return s.page(ctx, Installation, f, limit)
}

func (s *Service) page(ctx context.Context, chain string, f Filter, limit int) (list []Entry, more bool, err error) {
	list, err = s.store.AuditEntries(ctx, chain, f, limit+1)
	if len(list) > limit {
		return list[:limit], true, err
	}
	return list, false, err
}

// Note writes the pending entry of the context, which changes nothing: an export.
func (s *Service) Note(ctx context.Context) error { return s.store.WritePending(ctx) }

// ChainOf is a team's chain.
func ChainOf(team ids.Team) string { return string(team) }
