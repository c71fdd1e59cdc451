package store

import (
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/mails"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// sessionOf signs somebody in.
func sessionOf(t *testing.T, db *DB, user ids.User) builtin.Session {
	t.Helper()
	id := ids.NewSession()
	s := builtin.Session{ID: id, User: user, SecretHash: "secret of " + string(id), CreatedAt: august, LastSeenAt: august, ExpiresAt: august.Add(time.Hour)}
	must(t, db.InsertSession(t.Context(), s))
	return s
}

func TestALinkWorksOnceAndForOnePurpose(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		a := builtin.NewAccount{
			Account: builtin.Account{User: identity.User{ID: ids.NewUser(), Email: "ada@example.org"}, PasswordHash: "hash"}, WaitVerified: true,
			Team: identity.Team{ID: ids.NewTeam(), Plan: "free"}, CreatedAt: august,
			OneTimeToken: &builtin.OneTimeToken{Hash: "first", Purpose: builtin.ForVerifying, ExpiresAt: august.Add(time.Hour)},
			Mail:         mails.Message{ID: "mail", To: "ada@example.org"},
		}
		a.OneTimeToken.User = a.ID
		must(t, db.SignUp(ctx, a))
		must(t, db.InsertOneTimeToken(ctx, builtin.OneTimeToken{Hash: "second", User: a.ID, Purpose: builtin.ForVerifying, ExpiresAt: august.Add(time.Hour)}, nil, august))
		must(t, db.InsertOneTimeToken(ctx, builtin.OneTimeToken{Hash: "reset", User: a.ID, Purpose: builtin.ForResetting, ExpiresAt: august.Add(time.Hour)}, nil, august))
		refused(t, "one that was replaced", db.VerifyEmail(ctx, "first", august), fault.KindNotFound, "")
		refused(t, "one for something else", db.VerifyEmail(ctx, "reset", august), fault.KindNotFound, "")
		refused(t, "one that ran out", db.VerifyEmail(ctx, "second", august.Add(time.Hour)), fault.KindNotFound, "")
		if b, err := db.Balance(ctx, a.Team.ID, august); err != nil || b.Credits.Left() != 0 {
			t.Errorf("%s before the address is confirmed, %v", b.Credits.Left(), err)
		}
		if done, errs := atOnce(6, func(int) error { return db.VerifyEmail(ctx, "second", august) }); done != 1 {
			t.Errorf("%d used it: %v", done, errs)
		}
		got, err := db.Account(ctx, a.Email)
		if err != nil || !got.EmailVerified {
			t.Errorf("%+v, %v", got, err)
		}
		if b, err := db.Balance(ctx, a.Team.ID, august); err != nil || b.Credits.Left() == 0 {
			t.Errorf("%s after that, %v", b.Credits.Left(), err)
		}
		check(t, db, a.Team.ID)
	})
}

// Who resets a password has everybody else who is signed in put out; who changes it
// stays.
func TestANewPasswordPutsOthersOut(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada, bob := signedUp(t, db, "ada@example.org"), signedUp(t, db, "bob@example.org")
		here, there, his := sessionOf(t, db, ada.ID), sessionOf(t, db, ada.ID), sessionOf(t, db, bob.ID)
		must(t, db.InsertAPIToken(ctx, apiToken(ada, "t"), 3))
		in := func(s builtin.Session) bool {
			_, err := db.PresenceBySecret(ctx, s.SecretHash, august)
			return err == nil
		}
		for _, p := range []builtin.Purpose{builtin.ForVerifying, builtin.ForSecondFactor, builtin.ForResetting} {
			must(t, db.InsertOneTimeToken(ctx, builtin.OneTimeToken{Hash: string(p), User: ada.ID, Purpose: p, ExpiresAt: august.Add(time.Hour)}, nil, august))
		}
		must(t, db.ChangePassword(ctx, ada.ID, "changed", here.ID))
		if !in(here) || in(there) || !in(his) {
			t.Errorf("here %v, there %v, another's %v", in(here), in(there), in(his))
		}
		for p, want := range map[builtin.Purpose]bool{builtin.ForVerifying: true, builtin.ForSecondFactor: false, builtin.ForResetting: false} {
			if _, err := db.OneTimeToken(ctx, string(p), p, august); (err == nil) != want {
				t.Errorf("the link for %s: %v", p, err)
			}
		}
		must(t, db.InsertOneTimeToken(ctx, builtin.OneTimeToken{Hash: "r", User: ada.ID, Purpose: builtin.ForResetting, ExpiresAt: august.Add(time.Hour)}, nil, august))
		must(t, db.ResetPassword(ctx, "r", "reset", august))
		refused(t, "again", db.ResetPassword(ctx, "r", "again", august), fault.KindNotFound, "")
		if got, err := db.Account(ctx, ada.Email); err != nil || got.PasswordHash != "reset" || in(here) || !in(his) {
			t.Errorf("%+v, %v; here %v, another's %v", got, err, in(here), in(his))
		}
		refused(t, "their token", second(db.PresenceByAccess(ctx, "hash of t", august)), fault.KindNotFound, "")
		refused(t, "of nobody", db.SetPassword(ctx, "nobody@example.org", "x"), fault.KindNotFound, "")
		again := sessionOf(t, db, ada.ID)
		must(t, db.SetPassword(ctx, ada.Email, "by the operator"))
		if in(again) {
			t.Error("the operator's password leaves sessions")
		}
	})
}

func TestSomebodySeesAndEndsTheirOwnSessions(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada, bob := signedUp(t, db, "ada@example.org"), signedUp(t, db, "bob@example.org")
		one, two := sessionOf(t, db, ada.ID), sessionOf(t, db, ada.ID)
		must(t, db.TouchSession(ctx, one.ID, august.Add(time.Minute)))
		must(t, db.ActivateTeam(ctx, one.ID, ada.Team.ID))
		list, err := db.Sessions(ctx, ada.ID, august)
		if err != nil || len(list) != 2 || list[0].ID != two.ID || !list[1].LastSeenAt.Equal(august.Add(time.Minute)) {
			t.Errorf("%+v, %v", list, err)
		}
		if p, err := db.PresenceBySession(ctx, one.ID, august); err != nil || p.Active != ada.Team.ID {
			t.Errorf("%+v, %v", p, err)
		}
		refused(t, "another's", db.DeleteSession(ctx, bob.ID, one.ID), fault.KindNotFound, "")
		must(t, db.DeleteSession(ctx, ada.ID, one.ID))
		refused(t, "twice", db.DeleteSession(ctx, ada.ID, one.ID), fault.KindNotFound, "")
		if list, err := db.Sessions(ctx, ada.ID, august.Add(time.Hour)); err != nil || len(list) != 0 {
			t.Errorf("those that ran out are listed: %+v, %v", list, err)
		}
		must(t, db.ResumePerson(ctx, ada.ID)) // as often as one likes
		refused(t, "nobody", db.ResumePerson(ctx, "nobody"), fault.KindNotFound, "")
		refused(t, "nobody", db.SuspendPerson(ctx, "nobody", august), fault.KindNotFound, "")
	})
}

func TestACodeOfASecondFactorWorksOnce(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		ada := signedUp(t, db, "ada@example.org")
		refused(t, "there is none", second(db.SecondFactor(ctx, ada.ID)), fault.KindNotFound, "")
		must(t, db.PutSecondFactor(ctx, builtin.SecondFactor{User: ada.ID, Secret: []byte("thrown away")}))
		must(t, db.PutSecondFactor(ctx, builtin.SecondFactor{User: ada.ID, Secret: []byte("secret")}))
		if done, errs := atOnce(4, func(int) error { return db.EnableSecondFactor(ctx, ada.ID, 7, []string{"r1", "r2"}) }); done != 1 {
			t.Errorf("%d turned it on: %v", done, errs)
		}
		refused(t, "replacing one that is on", db.PutSecondFactor(ctx, builtin.SecondFactor{User: ada.ID, Secret: []byte("other")}), fault.KindConflict, "already_enabled")
		if f, err := db.SecondFactor(ctx, ada.ID); err != nil || !f.Enabled || string(f.Secret) != "secret" {
			t.Errorf("%+v, %v", f, err)
		}
		uses := func(use func() (bool, error)) (n int) {
			t.Helper()
			won := make(chan bool, 4)
			_, errs := atOnce(4, func(int) error {
				ok, err := use()
				won <- ok
				return err
			})
			for _, err := range errs {
				must(t, err)
			}
			for range 4 {
				if <-won {
					n++
				}
			}
			return n
		}
		for step, want := range map[int64]int{6: 0, 7: 0} { // that it was turned on with, and one before
			if n := uses(func() (bool, error) { return db.UseStep(ctx, ada.ID, step) }); n != want {
				t.Errorf("step %d was used %d times", step, n)
			}
		}
		if n := uses(func() (bool, error) { return db.UseStep(ctx, ada.ID, 8) }); n != 1 {
			t.Errorf("the next step was used %d times", n)
		}
		if n := uses(func() (bool, error) { return db.UseRecoveryCode(ctx, ada.ID, "r1") }); n != 1 {
			t.Errorf("a recovery code was used %d times", n)
		}
		if ok, err := db.UseRecoveryCode(ctx, "user_other", "r2"); err != nil || ok {
			t.Errorf("by another: %v, %v", ok, err)
		}
		must(t, db.DeleteSecondFactor(ctx, ada.ID))
		if ok, err := db.UseRecoveryCode(ctx, ada.ID, "r2"); err != nil || ok {
			t.Errorf("after it was turned off: %v, %v", ok, err)
		}
		// Between the password and the code there is a token, which gives one session.
		must(t, db.InsertOneTimeToken(ctx, builtin.OneTimeToken{Hash: "step", User: ada.ID, Purpose: builtin.ForSecondFactor, ExpiresAt: august.Add(time.Minute)}, nil, august))
		done, errs := atOnce(4, func(int) error {
			id := ids.NewSession()
			return db.Complete(ctx, "step", builtin.Session{ID: id, User: ada.ID, SecretHash: string(id), CreatedAt: august, LastSeenAt: august, ExpiresAt: august.Add(time.Hour)})
		})
		if list, err := db.Sessions(ctx, ada.ID, august); done != 1 || err != nil || len(list) != 1 {
			t.Errorf("%d sessions, %d said so: %v, %v", len(list), done, errs, err)
		}
	})
}

// Whoever proves at another provider that the address is theirs gets the account,
// and whoever made it without proving that keeps nothing.
func TestAnAddressThatWasNeverProvedIsTakenByItsOwner(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		thief := builtin.NewAccount{
			Account: builtin.Account{User: identity.User{ID: ids.NewUser(), Email: "ada@example.org", Name: "x"}, PasswordHash: "known to the thief"},
			Team:    identity.Team{ID: ids.NewTeam(), Plan: "free"}, CreatedAt: august,
		}
		must(t, db.SignUp(ctx, thief))
		s := sessionOf(t, db, thief.ID)
		must(t, db.InsertAPIToken(ctx, apiToken(thief, "t"), 3))
		must(t, db.PutSecondFactor(ctx, builtin.SecondFactor{User: thief.ID, Secret: []byte("thief's")}))
		must(t, db.EnableSecondFactor(ctx, thief.ID, 1, []string{"r"}))
		robot := builtin.ServiceAccount{ID: ids.NewUser(), Team: thief.Team.ID, Name: "robot", Role: access.Admin, MadeBy: "x", CreatedAt: august}
		must(t, db.InsertServiceAccount(ctx, robot, 3))
		robots := apiToken(thief, "robot's")
		robots.User = robot.ID
		must(t, db.InsertAPIToken(ctx, robots, 3))
		who := builtin.ExternalIdentity{Issuer: "https://id.example.org", Subject: "ada", Email: "ada@example.org", EmailVerified: true}
		refused(t, "before", second(db.AccountByExternalIdentity(ctx, who)), fault.KindNotFound, "")
		done, errs := atOnce(4, func(int) error {
			a, err := db.LinkExternalIdentity(ctx, who, august)
			if err == nil && (!a.EmailVerified || a.PasswordHash != "") {
				t.Errorf("%+v is what it was before", a)
			}
			return err
		})
		if done != 1 {
			t.Errorf("%d linked: %v", done, errs)
		}
		got, err := db.AccountByExternalIdentity(ctx, who)
		if err != nil || got.ID != thief.ID || !got.EmailVerified || got.PasswordHash != "" {
			t.Errorf("%+v, %v", got, err)
		}
		refused(t, "the session", second(db.PresenceBySession(ctx, s.ID, august)), fault.KindNotFound, "")
		refused(t, "the token", second(db.PresenceByAccess(ctx, "hash of t", august)), fault.KindNotFound, "")
		refused(t, "the token of a service account", second(db.PresenceByAccess(ctx, robots.Hash, august)), fault.KindNotFound, "")
		refused(t, "the second factor", second(db.SecondFactor(ctx, thief.ID)), fault.KindNotFound, "")
		// One who has proved it keeps all they have.
		bob := signedUp(t, db, "bob@example.org")
		kept := sessionOf(t, db, bob.ID)
		if a, err := db.LinkExternalIdentity(ctx, builtin.ExternalIdentity{Issuer: who.Issuer, Subject: "bob", Email: "bob@example.org"}, august); err != nil || a.PasswordHash != "hash" {
			t.Errorf("%+v, %v", a, err)
		}
		if _, err := db.PresenceBySession(ctx, kept.ID, august); err != nil {
			t.Error(err)
		}
		refused(t, "nobody has the address", second(db.LinkExternalIdentity(ctx, builtin.ExternalIdentity{Issuer: who.Issuer, Subject: "eve", Email: "eve@example.org"}, august)), fault.KindNotFound, "")
	})
}

// Rows of people who are kept elsewhere follow what that says.
func TestAMirrorFollowsWhatItShows(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		u := identity.User{ID: "user_1", Email: "ada@example.org", EmailVerified: true, Name: "Ada"}
		in := func(team ids.Team, role access.Role) identity.Membership {
			return identity.Membership{Team: identity.Team{ID: team, Name: "name of " + string(team), Plan: "free"}, Role: role, JoinedAt: august}
		}
		must(t, db.MirrorPerson(ctx, u, []identity.Membership{in("team_1", access.Owner), in("team_2", access.Viewer)}, august))
		must(t, db.MirrorPerson(ctx, u, []identity.Membership{in("team_2", access.Admin)}, august))
		if plans, err := db.OpenTeams(ctx, []ids.Team{"team_1", "team_2", "team_3"}); err != nil || len(plans) != 2 || plans["team_1"] != "free" {
			t.Errorf("%+v, %v", plans, err)
		}
		if plans, err := db.OpenTeams(ctx, nil); err != nil || len(plans) != 0 {
			t.Errorf("%+v, %v", plans, err)
		}
		if m, err := db.Members(ctx, "team_1"); err != nil || len(m) != 0 {
			t.Errorf("%+v, %v", m, err)
		}
		if m, err := db.Members(ctx, "team_2"); err != nil || len(m) != 1 || m[0].Role != access.Admin || m[0].Email != u.Email {
			t.Errorf("%+v, %v", m, err)
		}
		// The address goes to somebody else, and then to nobody.
		must(t, db.MirrorPerson(ctx, identity.User{ID: "user_2", Email: u.Email, Name: "Eve"}, nil, august))
		if a, err := db.Account(ctx, u.Email); err != nil || a.ID != "user_2" || a.EmailVerified {
			t.Errorf("%+v, %v", a, err)
		}
		must(t, db.MirrorPerson(ctx, identity.User{ID: "user_2", Name: "Eve"}, nil, august))
		refused(t, "an address that nobody has", second(db.Account(ctx, u.Email)), fault.KindNotFound, "")
	})
}

// Several servers rotate the key that signs, and make one.
func TestASigningKeyIsAddedOnce(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		add := func(name string, from, after time.Time) error {
			_, private, err := ed25519.GenerateKey(nil)
			must(t, err)
			return db.AddSigningKey(ctx, builtin.SigningKey{ID: name, Private: private, ActiveFrom: from, RetiresAt: from.Add(48 * time.Hour)}, after)
		}
		if done, errs := atOnce(5, func(i int) error { return add(string(rune('a'+i)), august, august.Add(-time.Hour)) }); done != 5 {
			t.Error(errs)
		}
		keys, err := db.SigningKeys(ctx, august)
		if err != nil || len(keys) != 1 || !keys[0].ActiveFrom.Equal(august) {
			t.Fatalf("%+v, %v", keys, err)
		}
		must(t, add("next", august.Add(24*time.Hour), august))
		if keys, err = db.SigningKeys(ctx, august); err != nil || len(keys) != 2 {
			t.Errorf("%d keys, %v", len(keys), err)
		}
		if keys, err = db.SigningKeys(ctx, august.Add(48*time.Hour)); err != nil || len(keys) != 1 || keys[0].ID != "next" {
			t.Errorf("%+v, %v", keys, err)
		}
	})
}
