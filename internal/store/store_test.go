package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/limits"
	"github.com/millrace/millrace/internal/domain/mails"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

var noon = time.Date(2026, 8, 22, 12, 0, 0, 123456000, time.UTC)

// person signs somebody up with a team and a session of their own.
func person(t *testing.T, db *store.DB, email string) builtin.NewAccount {
	t.Helper()
	a := builtin.NewAccount{
		Account:   builtin.Account{User: identity.User{ID: ids.NewUser(), Email: email, Name: email}, PasswordHash: "hash"},
		Team:      identity.Team{ID: ids.NewTeam(), Name: email + "'s team", Plan: "free"},
		CreatedAt: noon,
	}
	a.Session = &builtin.Session{
		ID: ids.NewSession(), User: a.ID, SecretHash: "secret of " + email, Origin: "http://a",
		CreatedAt: noon, LastSeenAt: noon, ExpiresAt: noon.Add(time.Hour),
	}
	if err := db.SignUp(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAPresenceHasItsTeamsInTheOrderTheyWereJoined(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada := person(t, db, "ada@example.org")
		second := identity.Team{ID: ids.NewTeam(), Name: "second", Plan: "pro"}
		if err := db.InsertTeam(ctx, builtin.NewTeam{Team: second, Owner: ada.ID, CreatedAt: noon.Add(time.Second)}); err != nil {
			t.Fatal(err)
		}
		p, err := db.PresenceBySession(ctx, ada.Session.ID, noon)
		if err != nil {
			t.Fatal(err)
		}
		want := []identity.Membership{
			{Team: ada.Team, Role: access.Owner, JoinedAt: noon},
			{Team: second, Role: access.Owner, JoinedAt: noon.Add(time.Second)},
		}
		if diff := cmp.Diff(want, p.Memberships); diff != "" {
			t.Error(diff)
		}
		bySecret, err := db.PresenceBySecret(ctx, ada.Session.SecretHash, noon)
		if err != nil || cmp.Diff(p, bySecret) != "" {
			t.Error(err, cmp.Diff(p, bySecret))
		}
		if _, err := db.PresenceBySession(ctx, ada.Session.ID, noon.Add(time.Hour)); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("an expired session gives %v", err)
		}
		if err := db.SuspendPerson(ctx, ada.ID, noon); err != nil {
			t.Fatal(err)
		}
		if _, err := db.PresenceBySession(ctx, ada.Session.ID, noon); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("a disabled person's session gives %v", err)
		}
	})
}

func TestASecondAccountOfOneAddressIsRefusedWhole(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		person(t, db, "ada@example.org")
		teams, err := db.Teams(ctx)
		if err != nil {
			t.Fatal(err)
		}
		again := builtin.NewAccount{
			Account: builtin.Account{User: identity.User{ID: ids.NewUser(), Email: "ada@example.org"}},
			Team:    identity.Team{ID: ids.NewTeam()}, CreatedAt: noon,
		}
		if err := db.SignUp(ctx, again); !fault.Is(err, fault.KindConflict) {
			t.Errorf("got %v", err)
		}
		after, err := db.Teams(ctx)
		if err != nil || len(after) != len(teams) {
			t.Errorf("%d teams became %d (%v)", len(teams), len(after), err)
		}
	})
}

func TestTheLastOwnerStays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada, bob := person(t, db, "ada@example.org"), person(t, db, "bob@example.org")
		join(t, db, ada, bob, access.Admin)
		anything := func(access.Role) error { return nil }
		if _, err := db.ChangeRole(ctx, ada.Team.ID, bob.ID, access.Owner, anything); err != nil {
			t.Fatal(err)
		}
		// Both step down at once: one must stay.
		var errs [2]error
		var wg sync.WaitGroup
		for i, who := range []ids.User{ada.ID, bob.ID} {
			wg.Go(func() { _, errs[i] = db.ChangeRole(ctx, ada.Team.ID, who, access.Member, anything) })
		}
		wg.Wait()
		if (errs[0] == nil) == (errs[1] == nil) || !fault.Is(errors.Join(errs[:]...), fault.KindConflict) {
			t.Fatalf("stepping down together gives %v and %v", errs[0], errs[1])
		}
		for _, who := range []ids.User{ada.ID, bob.ID} {
			_ = db.RemoveMember(ctx, ada.Team.ID, who, anything)
		}
		members, err := db.Members(ctx, ada.Team.ID)
		if err != nil || len(members) != 1 || members[0].Role != access.Owner {
			t.Errorf("%+v, %v remain; want one owner", members, err)
		}
	})
}

// join brings a person into another's team through an invitation.
func join(t *testing.T, db *store.DB, host, guest builtin.NewAccount, role access.Role) {
	t.Helper()
	inv := invitation(host, guest.Email)
	inv.Role = role
	if err := db.InsertInvitation(t.Context(), inv); err != nil {
		t.Fatal(err)
	}
	if err := db.AcceptInvitation(t.Context(), inv.Invitation, guest.ID, "", noon); err != nil {
		t.Fatal(err)
	}
}

func invitation(host builtin.NewAccount, email string) builtin.SentInvitation {
	id := ids.NewInvitation()
	return builtin.SentInvitation{
		Invitation: identity.Invitation{
			ID: id, Team: host.Team, Email: email, Role: access.Member, InvitedBy: host.ID,
			InvitedByName: host.Name, CreatedAt: noon, ExpiresAt: noon.Add(time.Hour),
		},
		TokenHash: string(id), SentAt: noon,
		Mail: &mails.Message{ID: string(id), To: email, Subject: "come", Text: "a secret link"},
	}
}

func TestAnInvitationIsOpenOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada, bob := person(t, db, "ada@example.org"), person(t, db, "bob@example.org")
		inv := invitation(ada, bob.Email)
		if err := db.InsertInvitation(ctx, inv); err != nil {
			t.Fatal(err)
		}
		if err := db.InsertInvitation(ctx, invitation(ada, bob.Email)); !fault.Is(err, fault.KindConflict) {
			t.Errorf("a second one gives %v", err)
		}
		later := invitation(ada, bob.Email)
		later.CreatedAt, later.ExpiresAt = noon.Add(2*time.Hour), noon.Add(3*time.Hour)
		if err := db.InsertInvitation(ctx, later); err != nil {
			t.Errorf("after it ran out: %v", err)
		}
		if err := db.AcceptInvitation(ctx, inv.Invitation, bob.ID, "", noon); !fault.Is(err, fault.KindConflict) {
			t.Errorf("the expired one is accepted: %v", err)
		}
		got, err := db.Invitation(ctx, ada.Team.ID, inv.ID)
		if err != nil || got.EndedAs != identity.Expired {
			t.Errorf("it reads %+v, %v", got, err)
		}
		if _, err := db.Invitation(ctx, bob.Team.ID, later.ID); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("another team finds it: %v", err)
		}
		if err := db.RevokeInvitation(ctx, ada.Team.ID, later.ID, noon); err != nil {
			t.Fatal(err)
		}
		if err := db.AcceptInvitation(ctx, later.Invitation, bob.ID, "", noon); !fault.Is(err, fault.KindConflict) {
			t.Errorf("a revoked one is accepted: %v", err)
		}
	})
}

func TestAWindowIsExactForParallelCallers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		w := limits.Window{Most: 10, Per: time.Minute}
		results := parallel(t, 40, func(i int) (limits.Result, error) {
			return db.TakeHit(ctx, "b", w, noon.Add(time.Duration(i)*time.Millisecond))
		})
		var allowed int
		for _, s := range results {
			if s.Allowed {
				allowed++
			}
		}
		if allowed != 10 {
			t.Errorf("%d of 40 were allowed, want 10", allowed)
		}
		s, err := db.TakeHit(ctx, "b", w, noon.Add(59*time.Second))
		if err != nil || s.Allowed || s.Reset <= 0 || s.Reset > 2*time.Second {
			t.Errorf("before the minute is over: %+v, %v", s, err)
		}
		s, err = db.TakeHit(ctx, "b", w, noon.Add(61*time.Second))
		if err != nil || !s.Allowed {
			t.Errorf("after it: %+v, %v", s, err)
		}
	})
}

// parallel runs n calls at once and fails the test on the first error.
func parallel[T any](t *testing.T, n int, call func(i int) (T, error)) []T {
	t.Helper()
	results := make([]T, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			var err error
			if results[i], err = call(i); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	return results
}

func TestLettersAreSealedAndClaimedOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada := person(t, db, "ada@example.org")
		for i := range 20 {
			if err := db.InsertInvitation(ctx, invitation(ada, fmt.Sprintf("p%d@example.org", i))); err != nil {
				t.Fatal(err)
			}
		}
		claims := parallel(t, 8, func(int) ([]mails.Message, error) { return db.ClaimMails(ctx, 5, noon, time.Minute) })
		seen := map[string]bool{}
		for _, batch := range claims {
			for _, l := range batch {
				if seen[l.ID] || l.Text != "a secret link" {
					t.Errorf("%+v is claimed twice or broken", l)
				}
				seen[l.ID] = true
			}
		}
		if len(seen) != 20 {
			t.Errorf("%d mails were claimed, want 20", len(seen))
		}
		again, err := db.ClaimMails(ctx, 50, noon.Add(2*time.Minute), time.Minute)
		if err != nil || len(again) != 20 {
			t.Errorf("after the lease %d come again (%v), want 20", len(again), err)
		}
		if err := db.MailSent(ctx, again[0].ID); err != nil {
			t.Fatal(err)
		}
		again, err = db.ClaimMails(ctx, 50, noon.Add(4*time.Minute), time.Minute)
		if err != nil || len(again) != 19 {
			t.Errorf("a sent one comes again: %d, %v", len(again), err)
		}
	})
}

func TestAnAnswerIsKeptWithItsEffectOrNotAtAll(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada := person(t, db, "ada@example.org")
		r := &access.IdempotencyRecord{IdempotencyKey: access.IdempotencyKey{Scope: "ada", Key: "k", Fingerprint: "body"}, Status: 201, Answer: []byte("the token mri_1")}
		results := parallel(t, 10, func(int) (bool, error) {
			_, err := insert(t, db, ada, r)
			if fault.Is(err, fault.KindConflict) {
				return false, nil
			}
			return true, err
		})
		var won int
		for _, ok := range results {
			if ok {
				won++
			}
		}
		rows, err := db.Workflows(ctx, ada.Team.ID, "", 100)
		if err != nil || won != 1 || len(rows) != 1 {
			t.Errorf("%d of 10 won and %d workflows are there (%v), want 1 and 1", won, len(rows), err)
		}
		got, err := db.Answer(ctx, r.IdempotencyKey, noon)
		if diff := cmp.Diff(*r, got); err != nil || diff != "" {
			t.Error(err, diff)
		}
		if _, err := db.Answer(ctx, r.IdempotencyKey, noon.Add(25*time.Hour)); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("a day later: %v", err)
		}
	})
}

func TestAWrongSecretKeyIsRefused(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		storetest.Open(t, url)
		_, err := store.Open(t.Context(), store.Options{URL: url, SecretKey: "another key, just as long"})
		if err == nil {
			t.Fatal("a database opens with a key that is not its own")
		}
	})
}

func TestDeletingWhatHasExpiredKeepsWhatLives(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada := person(t, db, "ada@example.org")
		if _, err := db.DeleteExpired(ctx, noon); err != nil {
			t.Fatal(err)
		}
		if _, err := db.PresenceBySession(ctx, ada.Session.ID, noon); err != nil {
			t.Errorf("a live session was swept away: %v", err)
		}
		if _, err := db.DeleteExpired(ctx, noon.Add(2*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if _, err := db.PresenceBySession(ctx, ada.Session.ID, noon); !fault.Is(err, fault.KindNotFound) {
			t.Errorf("an ended session was kept: %v", err)
		}
	})
}

func TestACallerWhoLeftWritesNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ada := person(t, db, "ada@example.org")
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := db.RenameTeam(gone, ada.Team.ID, "renamed"); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		teams, err := db.Teams(t.Context())
		if err != nil || teams[0].Name == "renamed" {
			t.Errorf("%+v, %v", teams, err)
		}
	})
}
