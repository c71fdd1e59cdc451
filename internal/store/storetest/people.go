package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store"
)

// Clock is a time that stands still until the test turns it.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock starts at a noon.
func NewClock() *Clock { return &Clock{now: time.Date(2026, 8, 22, 12, 0, 0, 0, time.UTC)} }

// Now is the time, a microsecond later at each look: no two things happen at
// once.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Microsecond)
	return c.now
}

// Pass turns it.
func (c *Clock) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Owner signs somebody up: they own a fresh team of the free plan.
func Owner(t testing.TB, db *store.DB, name string) access.Caller {
	t.Helper()
	a := builtin.NewAccount{
		Account:   builtin.Account{User: identity.User{ID: ids.NewUser(), Email: name + "@example.org", EmailVerified: true, Name: name}},
		Team:      identity.Team{ID: ids.NewTeam(), Name: name + "'s team", Plan: "free"},
		CreatedAt: NewClock().Now(),
	}
	if err := db.SignUp(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return access.Caller{User: a.ID, Name: name, Team: a.Team.ID, Role: access.Owner}
}

// Join signs somebody up and brings them into another's team.
func Join(t testing.TB, db *store.DB, host access.Caller, name string, role access.Role) access.Caller {
	t.Helper()
	who := Owner(t, db, name)
	JoinAfter(t, db, host, who, role, func() {})
	who.Team, who.Role = host.Team, role
	return who
}

// JoinAfter invites somebody into another's team, and has them accept after something.
func JoinAfter(t testing.TB, db *store.DB, host, who access.Caller, role access.Role, do func()) {
	t.Helper()
	now := NewClock().Now()
	inv := identity.Invitation{
		ID: ids.NewInvitation(), Team: identity.Team{ID: host.Team}, Email: who.Name + "@example.org", Role: role,
		InvitedBy: host.User, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
	}
	if err := db.InsertInvitation(t.Context(), builtin.SentInvitation{Invitation: inv, TokenHash: string(inv.ID), SentAt: now}); err != nil {
		t.Fatal(err)
	}
	do()
	if err := db.AcceptInvitation(t.Context(), inv, who.User, "", now); err != nil {
		t.Fatal(err)
	}
}

// Refused fails the test unless an error is of this kind; without one it must
// be nil.
func Refused(t testing.TB, what string, err error, kind fault.Kind) {
	t.Helper()
	if kind == "" && err != nil || kind != "" && !fault.Is(err, kind) {
		t.Errorf("%s: %v, want kind %q", what, err, kind)
	}
}
