package builtin_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/store/storetest"
)

func asItIs(token string) string { return token }

// verified is somebody of ada's team in a role, who has confirmed their address.
func verified(p identity.Presence, role access.Role) identity.Presence {
	p.User.EmailVerified = true
	p.Memberships = slices.Clone(p.Memberships)
	p.Memberships[0].Role = role
	return p
}

// Whoever sends an invitation again is given a link of it. One for an owner is an
// owner's to send, and to take back: an admin could else open an account of that
// address, and be an owner.
func TestOnlyOwnersSendTheInvitationsOfOwners(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx, ada := t.Context(), b.presence(b.signUp("ada"))
		team := ada.Memberships[0].Team.ID
		for i, tt := range []struct {
			by, role access.Role
			kind     fault.Kind
		}{
			{access.Admin, access.Owner, fault.KindForbidden},
			{access.Member, access.Viewer, fault.KindForbidden},
			{access.Viewer, access.Viewer, fault.KindForbidden},
			{access.Admin, access.Admin, ""},
			{access.Owner, access.Owner, ""},
		} {
			made, err := b.invited(ada, string(rune('a'+i))+"@example.org", tt.role)
			if err != nil {
				t.Fatal(err)
			}
			name := "one of " + string(tt.role) + " by " + string(tt.by)
			again, err := b.Invitations.Resend(ctx, verified(ada, tt.by), team, made.ID, visit, asItIs)
			storetest.Refused(t, name+", sent again", err, tt.kind)
			if tt.kind != "" && again.Link != "" {
				t.Errorf("%s: a link is given", name)
			}
			if _, err := b.Invitations.Find(ctx, made.Link); (err == nil) != (tt.kind != "") {
				t.Errorf("%s: of the link before, %v", name, err)
			}
			storetest.Refused(t, name+", revoked", b.Invitations.Revoke(ctx, verified(ada, tt.by), team, made.ID), tt.kind)
		}
	})
}

// An invitation that is sent again has another link, which lives anew; who reads the mail
// has the address, who was given the link to copy may have not.
func TestAnInvitationThatIsSentAgainLivesAnew(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx, ada, bob := t.Context(), b.presence(b.signUp("ada")), b.presence(b.signUp("bob"))
		team, owner := ada.Memberships[0].Team.ID, verified(ada, access.Owner)
		made, err := b.invited(ada, "bob@example.org", access.Member)
		if err != nil {
			t.Fatal(err)
		}
		life := made.ExpiresAt.Sub(b.clock.Now())
		b.clock.Pass(life - time.Second)
		var links []string
		again, err := b.Invitations.Resend(ctx, owner, team, made.ID, visit, func(token string) string { links = append(links, token); return token })
		if err != nil || again.ID != made.ID || again.Role != access.Member || again.Link == made.Link || !again.Mailed || b.hurried.Load() != 1 || len(links) != 2 {
			t.Fatalf("%+v, %v, links %q", again, err, links)
		}
		b.clock.Pass(life - time.Second)
		_, err = b.Invitations.Accept(ctx, bob, made.Link)
		storetest.Refused(t, "by the link before", err, fault.KindNotFound)
		for _, link := range links {
			found, err := b.Invitations.Find(ctx, link)
			if err != nil || found.Proves == (link == again.Link) || found.Status(b.clock.Now()) != identity.Pending {
				t.Errorf("%+v, %v", found, err)
			}
		}
		if m, err := b.Invitations.Accept(ctx, bob, again.Link); err != nil || m.Team.ID != team || m.Role != access.Member {
			t.Fatalf("%+v, %v", m, err)
		}
		_, err = b.Invitations.Resend(ctx, owner, team, made.ID, visit, asItIs)
		wantCode(t, "one that was accepted", err, "accepted")

		late, err := b.invited(ada, "late@example.org", access.Viewer)
		if err != nil {
			t.Fatal(err)
		}
		b.clock.Pass(life)
		if again, err := b.Invitations.Resend(ctx, owner, team, late.ID, visit, asItIs); err != nil || again.Status(b.clock.Now()) != identity.Pending {
			t.Errorf("one that has expired: %+v, %v", again, err)
		}
		if err := b.Invitations.Revoke(ctx, owner, team, late.ID); err != nil {
			t.Fatal(err)
		}
		_, err = b.Invitations.Resend(ctx, owner, team, late.ID, visit, asItIs)
		wantCode(t, "one that was revoked", err, "revoked")
		_, err = b.Invitations.Resend(ctx, owner, team, ids.NewInvitation(), visit, asItIs)
		storetest.Refused(t, "one that there isn't", err, fault.KindNotFound)
		_, err = b.Invitations.Resend(ctx, verified(bob, access.Owner), bob.Memberships[0].Team.ID, late.ID, visit, asItIs)
		storetest.Refused(t, "another team's", err, fault.KindNotFound)
	})
}

// An invitation is sent a few times, and then not for a while.
func TestAnInvitationIsSentAFewTimes(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx, ada := t.Context(), b.presence(b.signUp("ada"))
		team, owner := ada.Memberships[0].Team.ID, verified(ada, access.Owner)
		made, err := b.invited(ada, "bob@example.org", access.Member)
		if err != nil {
			t.Fatal(err)
		}
		link, sent := made.Link, 0
		for ; sent < 100 && err == nil; sent++ {
			var again identity.MadeInvitation
			if again, err = b.Invitations.Resend(ctx, owner, team, made.ID, visit, asItIs); err == nil {
				link = again.Link
			}
		}
		if !fault.Is(err, fault.KindLimited) || !strings.Contains(err.Error(), "wait") || sent < 2 || sent > 20 {
			t.Fatalf("after %d times: %v", sent, err)
		}
		if _, err := b.Invitations.Find(ctx, link); err != nil {
			t.Errorf("the last link that was sent: %v", err)
		}
		b.clock.Pass(48 * time.Hour)
		if _, err := b.Invitations.Resend(ctx, owner, team, made.ID, visit, asItIs); err != nil {
			t.Errorf("two days later: %v", err)
		}
	})
}
