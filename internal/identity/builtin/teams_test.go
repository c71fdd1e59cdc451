package builtin_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store/storetest"
)

// invited has somebody asked into a team, and gives the token of the link.
func (b *bench) invited(by identity.Presence, email string, role access.Role) (identity.MadeInvitation, error) {
	b.t.Helper()
	return b.Invitations.InviteTo(b.t.Context(), by, by.Memberships[0].Team.ID, identity.NewInvitation{Email: email, Role: role, Link: func(token string) string { return token }})
}

// joined is somebody as a member of another's team, as they come from then on.
func (b *bench) joined(to identity.Presence, in builtin.SignedIn, role access.Role) identity.Presence {
	b.t.Helper()
	made, err := b.invited(to, in.User.Email, role)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.Invitations.Accept(b.t.Context(), b.presence(in), made.Link); err != nil {
		b.t.Fatal(err)
	}
	return b.presence(in)
}

func TestOwnersWhoLeaveAtOnceLeaveOneBehind(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		ada := b.presence(b.signUp("ada"))
		team := ada.Memberships[0].Team.ID
		owners := []identity.Presence{ada, b.joined(ada, b.signUp("bea"), access.Owner), b.joined(ada, b.signUp("cleo"), access.Owner)}
		var wg sync.WaitGroup
		for _, p := range owners {
			wg.Go(func() {
				if err := b.Teams.Leave(ctx, p, team); err != nil && !fault.Is(err, fault.KindConflict) {
					t.Errorf("%s: %v", p.User.Name, err)
				}
			})
		}
		wg.Wait()
		var left []identity.Presence
		for _, p := range owners {
			if again, err := b.Present(ctx, p.By()); err != nil {
				t.Error(err)
			} else if _, err := again.In(team); err == nil {
				left = append(left, again)
			}
		}
		if len(left) != 1 {
			t.Fatalf("%d owners are left", len(left))
		}
		last := left[0]
		_, err := b.Teams.ChangeRole(ctx, last, team, last.User.ID, access.Member)
		storetest.Refused(t, "the last owner becomes a member", err, fault.KindConflict)
		storetest.Refused(t, "the last owner is removed", b.Teams.RemoveMember(ctx, last, team, last.User.ID), fault.KindConflict)
		storetest.Refused(t, "the last owner leaves", b.Teams.Leave(ctx, last, team), fault.KindConflict)
	})
}

func TestWhoeverIsRemovedIsGoneWithTheNextRequest(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		ada, bob := b.presence(b.signUp("ada")), b.signUp("bob")
		team := ada.Memberships[0].Team.ID
		p := b.joined(ada, bob, access.Member)
		if _, err := b.Teams.Activate(ctx, p, team); err != nil {
			t.Fatal(err)
		}
		_, secret, err := b.APITokens.CreateAPIToken(ctx, p, p.Memberships[slices.IndexFunc(p.Memberships, func(m identity.Membership) bool { return m.Team.ID == team })], builtin.NewAPIToken{Name: "script", Days: 1})
		if err != nil {
			t.Fatal(err)
		}
		if members, pending, err := b.Members(ctx, p, team); err != nil || len(members) != 2 || pending != nil {
			t.Errorf("a member sees %d members and %v, %v", len(members), pending, err)
		}
		if err := b.Teams.RemoveMember(ctx, ada, team, bob.User.ID); err != nil {
			t.Fatal(err)
		}
		storetest.Refused(t, "removed for the second time", b.Teams.RemoveMember(ctx, ada, team, bob.User.ID), fault.KindNotFound)
		_, err = b.Teams.ChangeRole(ctx, ada, team, bob.User.ID, access.Admin)
		storetest.Refused(t, "a role for who has left", err, fault.KindNotFound)
		if role, err := b.RoleOf(ctx, p.By(), team); err == nil {
			t.Errorf("they are still %s", role)
		}
		if now := b.presence(bob); len(now.Memberships) != 1 {
			t.Errorf("they are in %d teams", len(now.Memberships))
		} else if m, err := now.Place(""); err != nil || m.Team.ID == team {
			t.Errorf("their choice is %+v, %v", m, err)
		}
		if now, err := b.Identify(ctx, identity.Credential{Bearer: secret}); err == nil {
			if _, err := now.In(team); err == nil {
				t.Error("their token works there")
			}
		}
	})
}

func TestATeamsNameIsOneLine(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		p := b.presence(b.signUp("ada"))
		team := p.Memberships[0].Team.ID
		for name, want := range map[string]string{
			"Red": "Red", "  Red ": "Red", "漢字 é": "漢字 é", strings.Repeat("é", 200): strings.Repeat("é", 200),
			"": "", " \t": "", "a\nb": "", "a\x00b": "", strings.Repeat("é", 201): "", "a\xff": "", "a\u2028b": "", "a\u2029b": "",
		} {
			m, err := b.Teams.Rename(ctx, p, team, name)
			if want == "" {
				storetest.Refused(t, name, err, fault.KindInvalid)
				_, err = b.Teams.Create(ctx, p, name, nil)
				storetest.Refused(t, "a new one, "+name, err, fault.KindInvalid)
			} else if err != nil || m.Team.Name != want {
				t.Errorf("%.20q: %.20q, %v", name, m.Team.Name, err)
			}
		}
		for range 10 { // what is refused does not count
			if _, err := b.Teams.Create(ctx, p, "More", nil); err != nil {
				t.Fatal(err)
			}
		}
		_, err := b.Teams.Create(ctx, p, "More", nil)
		storetest.Refused(t, "the eleventh within a day", err, fault.KindLimited)
		b.clock.Pass(24 * time.Hour)
		if _, err := b.Teams.Create(ctx, p, "More", nil); err != nil {
			t.Errorf("the day after: %v", err)
		}
	})
}

func TestWhoMayInviteWhomAndAsWhat(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		ada := b.presence(b.signUp("ada"))
		team := ada.Memberships[0].Team.ID
		as := func(role access.Role) identity.Presence {
			p := ada
			p.Memberships = slices.Clone(ada.Memberships)
			p.Memberships[0].Role = role
			return p
		}
		for name, tt := range map[string]struct {
			by    access.Role
			email string
			role  access.Role
			kind  fault.Kind // empty: it is made
		}{
			"an owner, by an owner":   {access.Owner, "a@example.org", access.Owner, ""},
			"an admin, by an admin":   {access.Admin, "b@example.org", access.Admin, ""},
			"a viewer":                {access.Admin, "c@example.org", access.Viewer, ""},
			"an owner, by an admin":   {access.Admin, "d@example.org", access.Owner, fault.KindForbidden},
			"by a member":             {access.Member, "d@example.org", access.Member, fault.KindForbidden},
			"by a viewer":             {access.Viewer, "d@example.org", access.Viewer, fault.KindForbidden},
			"a role that there isn't": {access.Owner, "d@example.org", "king", fault.KindInvalid},
			"no role":                 {access.Owner, "d@example.org", "", fault.KindInvalid},
			"no address":              {access.Owner, "nobody", access.Member, fault.KindInvalid},
			"two addresses":           {access.Owner, "d@example.org,e@example.org", access.Member, fault.KindInvalid},
			"an address of two lines": {access.Owner, "d@example.org\nBcc: e@example.org", access.Member, fault.KindInvalid},
			"who is there":            {access.Owner, "ada@example.org", access.Member, fault.KindConflict},
			"who is there, in caps":   {access.Owner, "ADA@example.org", access.Member, fault.KindConflict},
		} {
			made, err := b.invited(as(tt.by), tt.email, tt.role)
			if tt.kind != "" {
				storetest.Refused(t, name, err, tt.kind)
			} else if err != nil || made.Role != tt.role || made.Mailed || made.Link == "" {
				t.Errorf("%s: %+v, %v", name, made, err)
			}
		}
		_, err := b.invited(ada, "A@example.org", access.Member)
		storetest.Refused(t, "the same address again", err, fault.KindConflict)
		if _, pending, err := b.Members(ctx, ada, team); err != nil || len(pending) != 3 {
			t.Errorf("%d are asked, %v", len(pending), err)
		}
		if n := b.hurried.Load(); n != 0 {
			t.Errorf("%d mails of somebody who has not confirmed their address", n)
		}
	})
}

func TestAnInvitationIsForOneAddressAndOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		ada, bobs, eves := b.presence(b.signUp("ada")), b.signUp("bob"), b.signUp("eve")
		team, bob, eve := ada.Memberships[0].Team.ID, b.presence(bobs), b.presence(eves)
		made, err := b.invited(ada, "BOB@example.org", access.Admin)
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Invitations.Accept(ctx, eve, made.Link)
		wantCode(t, "another person", err, "email_mismatch")
		for _, token := range []string{"", "nonsense", "\x00", made.Link + "x", strings.ToUpper(made.Link), string(made.ID)} {
			_, err := b.Invitations.Accept(ctx, bob, token)
			storetest.Refused(t, "the link "+token, err, fault.KindNotFound)
		}
		if n := atOnce(t, fault.KindConflict, func() error { _, err := b.Invitations.Accept(ctx, bob, made.Link); return err }); n != 1 {
			t.Errorf("it was accepted %d times", n)
		}
		_, err = b.Invitations.Accept(ctx, bob, made.Link)
		wantCode(t, "once more", err, "accepted")
		storetest.Refused(t, "revoking it afterwards", b.Invitations.Revoke(ctx, ada, team, made.ID), fault.KindConflict)
		if m, err := b.presence(bobs).In(team); err != nil || m.Role != access.Admin {
			t.Errorf("%+v, %v", m, err)
		}

		late, err := b.invited(ada, "eve@example.org", access.Member)
		if err != nil {
			t.Fatal(err)
		}
		b.clock.Pass(late.ExpiresAt.Sub(b.clock.Now()))
		_, err = b.Invitations.Accept(ctx, eve, late.Link)
		wantCode(t, "at the end of its time", err, "expired")
		again, err := b.invited(ada, "eve@example.org", access.Viewer)
		if err != nil {
			t.Fatalf("another one after it: %v", err)
		}
		storetest.Refused(t, "revoked from another team", b.Invitations.Revoke(ctx, eve, eve.Memberships[0].Team.ID, again.ID), fault.KindNotFound)
		storetest.Refused(t, "one that there isn't", b.Invitations.Revoke(ctx, ada, team, ids.NewInvitation()), fault.KindNotFound)
		if err := b.Invitations.Revoke(ctx, ada, team, again.ID); err != nil {
			t.Error(err)
		}
		_, err = b.Invitations.Accept(ctx, eve, again.Link)
		wantCode(t, "revoked", err, "revoked")
		found, err := b.Invitations.Find(ctx, again.Link)
		if err != nil || found.Status(b.clock.Now()) != identity.Revoked || found.Proves {
			t.Errorf("%+v, %v", found, err)
		}
		_, err = b.Invitations.Resend(ctx, ada, team, again.ID, visit, func(token string) string { return token })
		wantCode(t, "mailed by somebody who has not confirmed their address", err, "email_unverified")
	})
}
