package builtin_test

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store/storetest"
)

func TestAnAddressIsOneAddress(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 64) + "@" + strings.Repeat("b.", 93) + "org" // 254 bytes
	for text, want := range map[string]string{
		"ada@example.org": "ada@example.org", " Ada@Example.ORG ": "ada@example.org", "a+b@example.org": "a+b@example.org", long: long,
		"": "", "ada": "", "@example.org": "", "ada@": "", "Ada <ada@example.org>": "", "<ada@example.org>": "", "a@example.org,b@example.org": "", "a@example.org b@example.org": "",
		"ada@example.org\nBcc: eve@example.org": "", "ada\x00@example.org": "", "a" + long: "", "a b@example.org": "", "ada@exa mple.org": "",
	} {
		if got, ok := builtin.Email(text); got != want || ok != (want != "") {
			t.Errorf("%.40q: %q, %v", text, got, ok)
		}
	}
	for password, fine := range map[string]bool{
		strings.Repeat("x", 9): false, strings.Repeat("x", 10): true, strings.Repeat("é", 9): false, strings.Repeat("é", 10): true,
		strings.Repeat("x", 1024): true, strings.Repeat("x", 1025): false, strings.Repeat("é", 513): false, "": false,
	} {
		if err := builtin.CheckPassword(password); (err == nil) != fine {
			t.Errorf("a password of %d bytes: %v", len(password), err)
		}
	}
}

func TestAnotherPasswordEndsWhatTheOldOneOpened(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		here := b.signUp("ada")
		p := b.presence(here)
		elsewhere, err := b.Accounts.SignIn(ctx, "ada@example.org", password, "", visit)
		if err != nil {
			t.Fatal(err)
		}
		_, secret, err := b.APITokens.CreateAPIToken(ctx, p, p.Memberships[0], builtin.NewAPIToken{Name: "script", Days: 1})
		if err != nil {
			t.Fatal(err)
		}
		wantCode(t, "by who does not know it", b.Recovery.ChangePassword(ctx, p, "wrong horse", "another horse", "a"), "wrong_credentials")
		storetest.Refused(t, "a short one", b.Recovery.ChangePassword(ctx, p, password, "short", "a"), fault.KindInvalid)
		if err := b.Recovery.ChangePassword(ctx, p, password, "another horse", "a"); err != nil {
			t.Fatal(err)
		}
		b.presence(here) // this session goes on
		b.dead("the other session", identity.Credential{Cookie: elsewhere.Secret})
		if _, err := b.Identify(ctx, identity.Credential{Bearer: secret}); err != nil {
			t.Errorf("a token of its own list: %v", err)
		}
		_, err = b.Accounts.SignIn(ctx, "ada@example.org", password, "", visit)
		wantCode(t, "the old password", err, "wrong_credentials")
		if _, err := b.Accounts.SignIn(ctx, "ADA@example.org", "another horse", "", visit); err != nil {
			t.Errorf("the new one: %v", err)
		}

		var link string
		if err := b.Recovery.RequestReset(ctx, " Ada@Example.org", visit, func(token string) string { link = token; return token }); err != nil {
			t.Fatal(err)
		}
		if err := b.Recovery.MayReset(ctx, link); err != nil {
			t.Errorf("a fresh link: %v", err)
		}
		storetest.Refused(t, "a short one by the link", b.Recovery.ResetPassword(ctx, link, "short"), fault.KindInvalid)
		wantCode(t, "a link that proves nothing of the kind", b.Recovery.Verify(ctx, link), "link_invalid")
		if err := b.Recovery.ResetPassword(ctx, link, "a third horse"); err != nil {
			t.Errorf("what was refused has used it up: %v", err)
		}
		b.dead("the session that asked", identity.Credential{Cookie: here.Secret})
		b.dead("its token", identity.Credential{Bearer: here.Token.Text})
		wantCode(t, "the link again", b.Recovery.MayReset(ctx, link), "link_invalid")
	})
}

func TestALinkIsForOneThingAndForAWhile(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		p := b.presence(b.signUp("ada"))
		var link string
		keep := func(token string) string { link = token; return token }
		sent, err := b.Recovery.SendVerification(ctx, p, visit, keep)
		if err != nil || !sent {
			t.Fatal(sent, err)
		}
		verify := link
		wantCode(t, "a link to verify, for a password", b.Recovery.ResetPassword(ctx, verify, "another horse"), "link_invalid")
		for _, token := range []string{"", "nonsense", verify + "x", strings.ToUpper(verify), "\x00"} {
			wantCode(t, "the link "+token, b.Recovery.Verify(ctx, token), "link_invalid")
			wantCode(t, "a reset by "+token, b.Recovery.MayReset(ctx, token), "link_invalid")
		}
		if err := b.Recovery.RequestReset(ctx, "ada@example.org", visit, keep); err != nil {
			t.Fatal(err)
		}
		b.clock.Pass(time.Hour)
		wantCode(t, "a reset after an hour", b.Recovery.ResetPassword(ctx, link, "another horse"), "link_invalid")
		b.clock.Pass(7*24*time.Hour - time.Hour - time.Second)
		if err := b.Recovery.Verify(ctx, verify); err != nil {
			t.Errorf("in its last second: %v", err)
		}
		p = b.presence(b.mustSignIn("ada"))
		if !p.User.EmailVerified {
			t.Error("the address is not verified")
		}
		if sent, err := b.Recovery.SendVerification(ctx, p, visit, keep); sent || err != nil {
			t.Errorf("what is proven is asked for again: %v, %v", sent, err)
		}

		late := b.presence(b.signUp("eve"))
		if _, err := b.Recovery.SendVerification(ctx, late, visit, keep); err != nil {
			t.Fatal(err)
		}
		b.clock.Pass(7 * 24 * time.Hour)
		wantCode(t, "a verification after seven days", b.Recovery.Verify(ctx, link), "link_invalid")
	})
}

func (b *bench) mustSignIn(name string) builtin.SignedIn {
	b.t.Helper()
	in, err := b.Accounts.SignIn(b.t.Context(), name+"@example.org", password, "", visit)
	if err != nil {
		b.t.Fatal(err)
	}
	return in
}

// Mail is bounded by the address it goes to, whoever asks and whether or not anybody
// has it: the limit would tell who has an account.
func TestMailToOneAddressIsFew(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		b.signUp("ada")
		keep := func(token string) string { return token }
		for _, email := range []string{"ada@example.org", "nobody@example.org"} {
			for n := range 5 {
				if err := b.Recovery.RequestReset(ctx, email, visit, keep); err != nil {
					t.Fatalf("%s, %d: %v", email, n, err)
				}
			}
			other := visit
			other.ClientPrefix = "198.51.100.1"
			storetest.Refused(t, "the sixth to "+email, b.Recovery.RequestReset(ctx, email, other, keep), fault.KindLimited)
		}
		storetest.Refused(t, "to nobody", b.Recovery.RequestReset(ctx, "nobody", visit, keep), fault.KindInvalid)
		b.clock.Pass(time.Hour)
		if err := b.Recovery.RequestReset(ctx, "ada@example.org", visit, keep); err != nil {
			t.Errorf("an hour later: %v", err)
		}
	})
}

func TestWhoMayMakeAnAccount(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		ada := b.presence(b.signUp("ada"))
		made, err := b.invited(ada, "bob@example.org", "member")
		if err != nil {
			t.Fatal(err)
		}
		with := func(policy builtin.SignUpPolicy) *builtin.System {
			o := b.options
			o.SignUp = policy
			return builtin.New(o)
		}
		try := func(s *builtin.System, email, invitation string) error {
			_, err := s.Accounts.SignUp(ctx, builtin.SignUp{Email: email, Password: password, Name: "Bob", Invitation: invitation}, visit)
			return err
		}
		wantCode(t, "closed", try(with(builtin.SignUpClosed), "bob@example.org", made.Link), "sign_up_closed")
		invite := with(builtin.SignUpInvite)
		wantCode(t, "without an invitation", try(invite, "bob@example.org", ""), "sign_up_invite_only")
		wantCode(t, "with a made-up one", try(invite, "bob@example.org", "nonsense"), "invitation_invalid")
		wantCode(t, "with another's", try(invite, "eve@example.org", made.Link), "invitation_invalid")
		wantCode(t, "as who is there", try(invite, "ada@example.org", made.Link), "email_taken")
		if err := try(invite, "bob@example.org", made.Link); err != nil {
			t.Errorf("with one's own: %v", err)
		}
		wantCode(t, "with it again", try(invite, "bob2@example.org", made.Link), "invitation_invalid")
		wantCode(t, "an address that is taken", try(b.System, "ADA@example.org", ""), "email_taken")
		bob := b.presence(b.mustSignIn("bob"))
		if len(bob.Memberships) != 2 || bob.User.EmailVerified { // a link that was copied proves no address
			t.Errorf("%+v", bob)
		}
		if n := atOnce(t, fault.KindConflict, func() error { return try(b.System, "cleo@example.org", "") }); n != 1 {
			t.Errorf("%d accounts of one address", n)
		}
	})
}
