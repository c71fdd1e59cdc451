package builtin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store/storetest"
)

// robot makes a service account, and is who made it.
func (b *bench) robot(p identity.Presence, role access.Role) (access.Caller, builtin.ServiceAccount) {
	b.t.Helper()
	owner := p.Caller(p.Memberships[0])
	a, err := b.Programs.CreateServiceAccount(b.t.Context(), owner, "robot", role)
	if err != nil {
		b.t.Fatal(err)
	}
	return owner, a
}

// Whoever rotates a token holds the new one. A token that may only administer must not
// so become one that may do everything.
func TestWhoRotatesATokenGetsNoMoreThanTheyHave(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx, p := t.Context(), b.presence(b.signUp("ada"))
		owner, robot := b.robot(p, access.Admin)
		team := p.Memberships[0].Team
		for i, tt := range []struct {
			of, by access.ScopeSet
			kind   fault.Kind
		}{
			{nil, nil, ""},
			{access.ScopeSet{access.ScopeRun}, nil, ""},
			{nil, access.ScopeSet{access.ScopeAdmin}, fault.KindForbidden},
			{access.ScopeSet{access.ScopeRun}, access.ScopeSet{access.ScopeAdmin}, fault.KindForbidden},
			{access.ScopeSet{access.ScopeRead, access.ScopeRun}, access.ScopeSet{access.ScopeRead, access.ScopeAdmin}, fault.KindForbidden},
			{access.ScopeSet{access.ScopeAdmin}, access.ScopeSet{access.ScopeAdmin}, ""},
			{access.ScopeSet{access.ScopeRead}, access.ScopeSet{access.ScopeRead, access.ScopeAdmin}, ""},
			{nil, access.ScopeSet{access.ScopeRead}, fault.KindForbidden}, // may not administer at all
		} {
			made, secret, err := b.Programs.CreateServiceToken(ctx, owner, team, robot.ID, builtin.NewAPIToken{Name: fmt.Sprint(i), Days: 1, Scopes: tt.of})
			if err != nil {
				t.Fatal(err)
			}
			by := owner
			by.Scopes = tt.by
			fresh, another, err := b.Programs.RotateServiceToken(ctx, by, robot.ID, made.ID, 0)
			name := fmt.Sprintf("a token of %q by one of %q", tt.of, tt.by)
			storetest.Refused(t, name, err, tt.kind)
			lives := map[string]bool{secret: tt.kind != "", another: tt.kind == ""}
			for text, want := range lives {
				if _, err := b.Identify(ctx, identity.Credential{Bearer: text}); (err == nil) != want && text != "" {
					t.Errorf("%s: one of the two lives %t, %v", name, !want, err)
				}
			}
			if tt.kind == "" && (fresh.Scopes.String() != tt.of.String() || fresh.Role != access.Admin || fresh.Name != made.Name) {
				t.Errorf("%s gave %+v", name, fresh)
			}
		}
	})
}

// A token that is rotated works on for the overlap, and not a moment longer.
func TestTheOldTokenWorksForItsOverlap(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx, p := t.Context(), b.presence(b.signUp("ada"))
		owner, robot := b.robot(p, access.Member)
		made, old, err := b.Programs.CreateServiceToken(ctx, owner, p.Memberships[0].Team, robot.ID, builtin.NewAPIToken{Name: "n", Days: 2})
		if err != nil || made.Role != access.Member || !strings.HasSuffix(old, made.Hint) {
			t.Fatalf("%+v, %v", made, err)
		}
		_, fresh, err := b.Programs.RotateServiceToken(ctx, owner, robot.ID, made.ID, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		works := func(secret string) bool {
			_, err := b.Identify(ctx, identity.Credential{Bearer: secret})
			if err != nil {
				storetest.Refused(t, "a token", err, fault.KindUnauthenticated)
			}
			return err == nil
		}
		if !works(old) || !works(fresh) {
			t.Error("one does not work in the overlap")
		}
		b.clock.Pass(time.Hour)
		if works(old) || !works(fresh) {
			t.Error("after the overlap the old one works, or the new one does not")
		}
		_, _, err = b.Programs.RotateServiceToken(ctx, owner, robot.ID, made.ID, time.Hour)
		storetest.Refused(t, "one that has ended, rotated", err, fault.KindNotFound)
		b.clock.Pass(47*time.Hour - time.Second)
		if !works(fresh) {
			t.Error("the new one has not as many days")
		}
		b.clock.Pass(time.Second)
		if works(fresh) {
			t.Error("the new one outlives its days")
		}
	})
}

// A service account ends with all that it had, and only its own team ends it.
func TestAServiceAccountEndsWithItsTokens(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx, p := t.Context(), b.presence(b.signUp("ada"))
		owner, robot := b.robot(p, access.Member)
		team := p.Memberships[0].Team
		var secrets []string
		for i := range 3 {
			_, secret, err := b.Programs.CreateServiceToken(ctx, owner, team, robot.ID, builtin.NewAPIToken{Name: fmt.Sprint(i), Days: 1})
			if err != nil {
				t.Fatal(err)
			}
			secrets = append(secrets, secret)
		}
		one, err := b.Programs.ServiceAccount(ctx, owner, robot.ID)
		if err != nil || len(one.Tokens) != 3 || one.Tokens[0].Name != "2" || one.MadeBy != "ada" {
			t.Fatalf("%+v, %v", one, err)
		}
		if err := b.Programs.RevokeServiceToken(ctx, owner, robot.ID, one.Tokens[0].ID); err != nil {
			t.Fatal(err)
		}
		storetest.Refused(t, "revoked twice", b.Programs.RevokeServiceToken(ctx, owner, robot.ID, one.Tokens[0].ID), fault.KindNotFound)
		if found, err := b.Identify(ctx, identity.Credential{Bearer: secrets[0]}); err != nil || found.User.ID != robot.ID || len(found.Memberships) != 1 || found.Memberships[0].Role != access.Member {
			t.Errorf("%+v, %v", found, err)
		}
		own, _, err := b.APITokens.CreateAPIToken(ctx, p, p.Memberships[0], builtin.NewAPIToken{Name: "mine", Days: 1})
		if err != nil {
			t.Fatal(err)
		}
		storetest.Refused(t, "a person's token as the program's", b.Programs.RevokeServiceToken(ctx, owner, robot.ID, own.ID), fault.KindNotFound)
		_, _, err = b.Programs.RotateServiceToken(ctx, owner, robot.ID, own.ID, 0)
		storetest.Refused(t, "a person's token, rotated as the program's", err, fault.KindNotFound)
		if err := b.Programs.DeleteServiceAccount(ctx, owner, robot.ID); err != nil {
			t.Fatal(err)
		}
		for i, secret := range secrets {
			_, err := b.Identify(ctx, identity.Credential{Bearer: secret})
			storetest.Refused(t, fmt.Sprintf("token %d of a program that is gone", i), err, fault.KindUnauthenticated)
		}
		storetest.Refused(t, "deleted twice", b.Programs.DeleteServiceAccount(ctx, owner, robot.ID), fault.KindNotFound)
		_, _, err = b.Programs.CreateServiceToken(ctx, owner, team, robot.ID, builtin.NewAPIToken{Name: "late", Days: 1})
		storetest.Refused(t, "a token of a program that is gone", err, fault.KindNotFound)
	})
}

// A person is no service account: nobody makes a token of theirs by this way.
func TestAPersonIsNoServiceAccount(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx, p := t.Context(), b.presence(b.signUp("ada"))
		owner := p.Caller(p.Memberships[0])
		_, _, err := b.Programs.CreateServiceToken(ctx, owner, p.Memberships[0].Team, p.User.ID, builtin.NewAPIToken{Name: "n", Days: 1})
		storetest.Refused(t, "a token of a person", err, fault.KindNotFound)
		storetest.Refused(t, "a person, deleted", b.Programs.DeleteServiceAccount(ctx, owner, p.User.ID), fault.KindNotFound)
		if _, err := b.Identify(ctx, identity.Credential{Cookie: b.again("ada").Secret}); err != nil {
			t.Error(err)
		}
	})
}

// again signs in.
func (b *bench) again(name string) builtin.SignedIn {
	b.t.Helper()
	in, err := b.Accounts.SignIn(b.t.Context(), name+"@example.org", password, "", visit)
	if err != nil {
		b.t.Fatal(err)
	}
	return in
}
