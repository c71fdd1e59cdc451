package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// apiToken is a token of somebody in their own team, for 90 days.
func apiToken(a builtin.NewAccount, name string) builtin.APIToken {
	return builtin.APIToken{
		ID: "id of " + name, Hash: "hash of " + name, User: a.ID, Team: a.Team, Role: access.Member, Scopes: access.ScopeSet{access.ScopeRead}, Name: name, Hint: "xyz",
		CreatedAt: august, ExpiresAt: august.AddDate(0, 0, 90),
	}
}

func TestAPersonHasSoManyTokensAndNoMore(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada, bob := signedUp(t, db, "ada@example.org"), signedUp(t, db, "bob@example.org")
		if done, errs := atOnce(8, func(i int) error { return db.InsertAPIToken(ctx, apiToken(ada, fmt.Sprint("t", i)), 3) }); done != 3 {
			t.Errorf("%d were made: %v", done, errs)
		}
		refused(t, "one more", db.InsertAPIToken(ctx, apiToken(ada, "more"), 3), fault.KindConflict, "too_many_tokens")
		must(t, db.InsertAPIToken(ctx, apiToken(bob, "his"), 1)) // others have their own
		late := apiToken(ada, "late")
		late.CreatedAt = august.AddDate(0, 0, 90) // those that ran out do not count
		late.ExpiresAt = late.CreatedAt.Add(time.Hour)
		must(t, db.InsertAPIToken(ctx, late, 1))
		list, err := db.APITokens(ctx, ada.ID, late.CreatedAt)
		if err != nil || len(list) != 1 || list[0].Name != "late" {
			t.Errorf("%+v, %v", list, err)
		}
		refused(t, "another's", db.DeleteAPIToken(ctx, bob.ID, late.ID), fault.KindNotFound, "")
		must(t, db.DeleteAPIToken(ctx, ada.ID, late.ID))
		refused(t, "twice", db.DeleteAPIToken(ctx, ada.ID, late.ID), fault.KindNotFound, "")
	})
}

// A token is its person in one team, with no more than it was made for, as long as
// they are there.
func TestWhoATokenIs(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada, bob := signedUp(t, db, "ada@example.org"), signedUp(t, db, "bob@example.org")
		must(t, db.inTx(ctx, func(tx *DB) error { return tx.insertMember(ctx, bob.Team.ID, ada.ID, access.Admin, august) }))
		token := apiToken(ada, "t")
		token.Team = bob.Team
		must(t, db.InsertAPIToken(ctx, token, 3))
		p, err := db.PresenceByAccess(ctx, token.Hash, august)
		if err != nil || p.User.ID != ada.ID || p.Grant != token.ID || p.Most != access.Member || p.Scopes.String() != "read" || len(p.Memberships) != 1 || p.Memberships[0].Team.ID != bob.Team.ID || p.Memberships[0].Role != access.Admin {
			t.Errorf("%+v, %v", p, err)
		}
		if same, err := db.PresenceByGrant(ctx, token.ID, august); err != nil || same.User.ID != ada.ID || len(same.Memberships) != 1 || same.Scopes.String() != "read" {
			t.Errorf("%+v, %v", same, err)
		}
		must(t, db.TouchAPIToken(ctx, token.ID, "192.0.2.1", august.Add(time.Minute)))
		if list, err := db.APITokens(ctx, ada.ID, august); err != nil || len(list) != 1 || list[0].LastUsedFrom != "192.0.2.1" || !list[0].LastUsedAt.Equal(august.Add(time.Minute)) {
			t.Errorf("%+v, %v", list, err)
		}
		must(t, db.RemoveMember(ctx, bob.Team.ID, ada.ID, func(access.Role) error { return nil }))
		if p, err := db.PresenceByAccess(ctx, token.Hash, august); err != nil || len(p.Memberships) != 0 {
			t.Errorf("of one who was removed: %+v, %v", p, err)
		}
		for what, err := range map[string]error{
			"when it ran out":  second(db.PresenceByAccess(ctx, token.Hash, token.ExpiresAt)),
			"by its grant":     second(db.PresenceByGrant(ctx, token.ID, token.ExpiresAt)),
			"by its id":        second(db.PresenceByAccess(ctx, token.ID, august)),
			"of nobody":        second(db.PresenceByGrant(ctx, "", august)),
			"of another table": second(db.PresenceBySession(ctx, ids.Session(token.ID), august)),
		} {
			refused(t, what, err, fault.KindNotFound, "")
		}
		must(t, db.EndGrant(ctx, token.Hash, "")) // signed out by the token itself
		refused(t, "signed out", second(db.PresenceByAccess(ctx, token.Hash, august)), fault.KindNotFound, "")
	})
}

func TestATokenIsRotated(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada, bob := signedUp(t, db, "ada@example.org"), signedUp(t, db, "bob@example.org")
		old := apiToken(ada, "old")
		must(t, db.InsertAPIToken(ctx, old, 2))
		now := august.AddDate(0, 0, 30)
		next := builtin.APIToken{ID: "next", Hash: "hash of next", User: ada.ID, Hint: "new", CreatedAt: now}
		got, err := db.RotateAPIToken(ctx, old.ID, next, now.Add(time.Hour), 2)
		if err != nil || got.Name != "old" || got.Role != old.Role || got.Scopes.String() != "read" || got.Team.ID != ada.Team.ID || !got.ExpiresAt.Equal(now.AddDate(0, 0, 90)) {
			t.Errorf("%+v, %v", got, err)
		}
		for hash, until := range map[string]time.Time{old.Hash: now.Add(time.Hour), next.Hash: now.AddDate(0, 0, 90)} {
			if err := second(db.PresenceByAccess(ctx, hash, until.Add(-time.Microsecond))); err != nil {
				t.Errorf("%s before its end: %v", hash, err)
			}
			refused(t, hash+" at its end", second(db.PresenceByAccess(ctx, hash, until)), fault.KindNotFound, "")
		}
		third := next
		third.ID, third.Hash = "third", "hash of third"
		_, err = db.RotateAPIToken(ctx, "next", third, now.Add(time.Hour), 2)
		refused(t, "while the first is still there", err, fault.KindConflict, "too_many_tokens")
		if err := second(db.PresenceByAccess(ctx, next.Hash, now.Add(2*time.Hour))); err != nil {
			t.Errorf("what could not be rotated ends early: %v", err)
		}
		theirs := third
		theirs.User = bob.ID
		_, err = db.RotateAPIToken(ctx, "next", theirs, now, 2)
		refused(t, "another's", err, fault.KindNotFound, "")
		third.CreatedAt = now.Add(2 * time.Hour)
		_, err = db.RotateAPIToken(ctx, old.ID, third, now, 2)
		refused(t, "one that ran out", err, fault.KindNotFound, "")
		if _, err := db.RotateAPIToken(ctx, "next", third, third.CreatedAt, 2); err != nil { // at once
			t.Error(err)
		}
		refused(t, "ended at once", second(db.PresenceByAccess(ctx, next.Hash, third.CreatedAt)), fault.KindNotFound, "")
	})
}

// Whoever lost the answer to a rotation rotates the same token again.
func TestATokenThatIsRotatedTwiceKeepsItsLife(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ada := signedUp(t, db, "ada@example.org")
		old := apiToken(ada, "old")
		must(t, db.InsertAPIToken(t.Context(), old, 9))
		now := august.AddDate(0, 0, 30)
		for i := range 3 {
			id := string(rune('a' + i))
			next := builtin.APIToken{ID: id, Hash: "hash of " + id, User: ada.ID, CreatedAt: now.Add(time.Duration(i) * time.Minute)}
			got, err := db.RotateAPIToken(t.Context(), old.ID, next, next.CreatedAt.Add(time.Hour), 9)
			if err != nil || !got.ExpiresAt.Equal(next.CreatedAt.AddDate(0, 0, 90)) {
				t.Errorf("%d: until %s, %v", i, got.ExpiresAt, err)
			}
		}
		refused(t, "the old one after the first overlap", second(db.PresenceByAccess(t.Context(), old.Hash, now.Add(time.Hour))), fault.KindNotFound, "")
	})
}

func TestAServiceAccountEndsWithItsTokens(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada, bob := signedUp(t, db, "ada@example.org"), signedUp(t, db, "bob@example.org")
		robot := func(name string) builtin.ServiceAccount {
			return builtin.ServiceAccount{ID: ids.NewUser(), Team: ada.Team.ID, Name: name, Role: access.Member, MadeBy: "Ada", CreatedAt: august}
		}
		if done, errs := atOnce(6, func(i int) error { return db.InsertServiceAccount(ctx, robot(fmt.Sprint(i)), 2) }); done != 2 {
			t.Errorf("%d were made: %v", done, errs)
		}
		refused(t, "one more", db.InsertServiceAccount(ctx, robot("more"), 2), fault.KindConflict, "too_many_service_accounts")
		nowhere := robot("nowhere")
		nowhere.Team = "team_nobody"
		refused(t, "in no team", db.InsertServiceAccount(ctx, nowhere, 2), fault.KindForbidden, "not_a_member")
		list, err := db.ServiceAccounts(ctx, ada.Team.ID, august)
		if err != nil || len(list) != 2 || list[0].MadeBy != "Ada" || list[0].Role != access.Member || len(list[0].Tokens) != 0 {
			t.Fatalf("%+v, %v", list, err)
		}
		one := list[0]
		token := apiToken(ada, "robot's")
		token.User = one.ID
		must(t, db.InsertAPIToken(ctx, token, 5))
		if list, err = db.ServiceAccounts(ctx, ada.Team.ID, august); err != nil || len(list[0].Tokens) != 1 || len(list[1].Tokens) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
		if p, err := db.PresenceByAccess(ctx, token.Hash, august); err != nil || p.User.Email != "" || len(p.Memberships) != 1 {
			t.Errorf("%+v, %v", p, err)
		}
		anything := func(access.Role) error { return nil }
		refused(t, "as a member", db.RemoveMember(ctx, ada.Team.ID, one.ID, anything), fault.KindNotFound, "")
		_, err = db.ChangeRole(ctx, ada.Team.ID, one.ID, access.Owner, anything)
		refused(t, "another role", err, fault.KindNotFound, "")
		refused(t, "by another team", db.DeleteServiceAccount(ctx, bob.Team.ID, one.ID, august), fault.KindNotFound, "")
		refused(t, "a person", db.DeleteServiceAccount(ctx, ada.Team.ID, ada.ID, august), fault.KindNotFound, "")
		must(t, db.DeleteServiceAccount(ctx, ada.Team.ID, one.ID, august))
		refused(t, "twice", db.DeleteServiceAccount(ctx, ada.Team.ID, one.ID, august), fault.KindNotFound, "")
		refused(t, "its token", second(db.PresenceByAccess(ctx, token.Hash, august)), fault.KindNotFound, "")
		must(t, db.InsertServiceAccount(ctx, robot("in its place"), 2))
	})
}
