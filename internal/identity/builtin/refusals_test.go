package builtin_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store/storetest"
)

// wantCode fails unless an error has this code.
func wantCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != code {
		t.Errorf("%s: %v, want the code %s", what, err, code)
	}
}

func TestADeviceIsAnsweredInTheWordsOfItsStandard(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		p := b.presence(b.signUp("ada"))
		start := func() builtin.DeviceCodes {
			t.Helper()
			codes, err := b.Devices.Start(ctx, builtin.CommandLine, visit.ClientPrefix)
			if err != nil {
				t.Fatal(err)
			}
			return codes
		}
		poll := func(codes builtin.DeviceCodes) error {
			_, err := b.Devices.Poll(ctx, builtin.CommandLine, codes.Device)
			return err
		}
		codes := start()
		wantCode(t, "before anybody decided", poll(codes), "authorization_pending")
		wantCode(t, "at once again", poll(codes), "slow_down")
		b.clock.Pass(7 * time.Second) // it has to wait five seconds longer since then
		wantCode(t, "again within ten seconds", poll(codes), "slow_down")
		_, err := b.Devices.Poll(ctx, builtin.Client{ID: "other"}, codes.Device)
		wantCode(t, "another client", err, "invalid_grant")
		wantCode(t, "a code that nobody has", b.Devices.Decide(ctx, p, "BCDF-GHJK", true), "unknown_code")
		_, err = b.Devices.Find(ctx, p, "BCDF-GHJK", visit.ClientPrefix)
		wantCode(t, "looking for it", err, "unknown_code")
		if err := b.Devices.Decide(ctx, p, codes.User, true); err != nil {
			t.Fatal(err)
		}
		b.clock.Pass(time.Minute)
		if err := poll(codes); err != nil {
			t.Errorf("allowed: %v", err)
		}
		wantCode(t, "after it has its tokens", poll(codes), "invalid_grant")

		denied := start()
		if err := b.Devices.Decide(ctx, p, denied.User, false); err != nil {
			t.Fatal(err)
		}
		wantCode(t, "denied", poll(denied), "access_denied")
		late := start()
		b.clock.Pass(late.Life)
		wantCode(t, "too late", poll(late), "expired_token")
		wantCode(t, "allowed too late", b.Devices.Decide(ctx, p, late.User, true), "unknown_code")
	})
}

func TestATokenIsNoMoreThanWhoMadeIt(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		in := b.signUp("ada")
		p := b.presence(in)
		as := func(role access.Role) access.Caller {
			c := p.Caller(p.Memberships[0])
			c.Role = role
			return c
		}
		member := p.Memberships[0]
		member.Role = access.Member
		good := builtin.NewAPIToken{Name: "script", Days: 1}
		for name, tt := range map[string]struct {
			change func(*builtin.NewAPIToken)
			kind   fault.Kind
		}{
			"a role above one's own":   {func(n *builtin.NewAPIToken) { n.Role = access.Admin }, fault.KindForbidden},
			"a role that there isn't":  {func(n *builtin.NewAPIToken) { n.Role = "king" }, fault.KindInvalid},
			"no name":                  {func(n *builtin.NewAPIToken) { n.Name = " " }, fault.KindInvalid},
			"a name of two lines":      {func(n *builtin.NewAPIToken) { n.Name = "a\nb" }, fault.KindInvalid},
			"no day":                   {func(n *builtin.NewAPIToken) { n.Days = 0 }, fault.KindInvalid},
			"more than a year":         {func(n *builtin.NewAPIToken) { n.Days = 367 }, fault.KindInvalid},
			"a scope that there isn't": {func(n *builtin.NewAPIToken) { n.Scopes = access.ScopeSet{"all"} }, fault.KindInvalid},
			"a scope twice": {func(n *builtin.NewAPIToken) {
				n.Scopes = access.ScopeSet{access.ScopeRead, access.ScopeRead}
			}, fault.KindInvalid},
		} {
			asked := good
			tt.change(&asked)
			_, secret, err := b.APITokens.CreateAPIToken(ctx, p, member, asked)
			storetest.Refused(t, name, err, tt.kind)
			if secret != "" {
				t.Errorf("%s: a secret was given", name)
			}
		}
		made, _, err := b.APITokens.CreateAPIToken(ctx, p, member, good)
		if err != nil || made.Role != access.Member {
			t.Fatalf("%+v, %v", made, err)
		}
		for _, overlap := range []time.Duration{-1, 31 * 24 * time.Hour} {
			_, _, err := b.APITokens.RotateAPIToken(ctx, p, made.ID, overlap)
			storetest.Refused(t, fmt.Sprint("an overlap of ", overlap), err, fault.KindInvalid)
		}
		eve := b.presence(b.signUp("eve"))
		_, _, err = b.APITokens.RotateAPIToken(ctx, eve, made.ID, 0)
		storetest.Refused(t, "another's token, rotated", err, fault.KindNotFound)
		storetest.Refused(t, "another's token, revoked", b.APITokens.RevokeAPIToken(ctx, eve, made.ID), fault.KindNotFound)
		if list, err := b.APITokens.APITokens(ctx, p); err != nil || len(list) != 1 {
			t.Errorf("%d tokens are left, %v", len(list), err)
		}

		for name, tt := range map[string]struct {
			as   access.Role
			role access.Role
			kind fault.Kind
		}{
			"by a member":           {access.Member, access.Viewer, fault.KindForbidden},
			"an owner":              {access.Owner, access.Owner, fault.KindInvalid},
			"a role there isn't":    {access.Owner, "king", fault.KindInvalid},
			"an admin, by an admin": {access.Admin, access.Admin, ""},
			"a viewer, by an owner": {access.Owner, access.Viewer, ""},
			"whatever, by an owner": {access.Owner, "", ""},
			"an admin, by a viewer": {access.Viewer, access.Admin, fault.KindForbidden},
			"a member, by nobody":   {"", access.Member, fault.KindForbidden},
		} {
			_, err := b.Programs.CreateServiceAccount(ctx, as(tt.as), name, tt.role)
			storetest.Refused(t, "a service account: "+name, err, tt.kind)
		}
		_, err = b.Programs.CreateServiceAccount(ctx, as(access.Owner), "", access.Member)
		storetest.Refused(t, "a service account without a name", err, fault.KindInvalid)

		robot, err := b.Programs.CreateServiceAccount(ctx, as(access.Owner), "robot", access.Viewer)
		if err != nil {
			t.Fatal(err)
		}
		team := p.Memberships[0].Team
		_, _, err = b.Programs.CreateServiceToken(ctx, as(access.Owner), team, robot.ID, builtin.NewAPIToken{Name: "t", Days: 1, Role: access.Admin})
		storetest.Refused(t, "a token above its service account", err, fault.KindForbidden)
		narrow := as(access.Owner)
		narrow.Scopes = access.ScopeSet{access.ScopeAdmin}
		_, _, err = b.Programs.CreateServiceToken(ctx, narrow, team, robot.ID, good)
		storetest.Refused(t, "all scopes by a token that has one", err, fault.KindForbidden)
		theirs := eve.Caller(eve.Memberships[0])
		_, _, err = b.Programs.CreateServiceToken(ctx, theirs, eve.Memberships[0].Team, robot.ID, good)
		storetest.Refused(t, "a token of another team's", err, fault.KindNotFound)
		storetest.Refused(t, "another team's, deleted", b.Programs.DeleteServiceAccount(ctx, theirs, robot.ID), fault.KindNotFound)
		storetest.Refused(t, "its token, revoked", b.Programs.RevokeServiceToken(ctx, theirs, robot.ID, "t"), fault.KindNotFound)
		_, _, err = b.Programs.RotateServiceToken(ctx, theirs, robot.ID, "t", 0)
		storetest.Refused(t, "its token, rotated", err, fault.KindNotFound)
	})
}

func TestASecondFactorIsNeitherReplacedNorPassed(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		p := b.presence(b.signUp("ada"))
		_, err := b.SecondFactors.Confirm(ctx, p, "123456", "a")
		wantCode(t, "a code before there is a secret", err, "not_begun")
		_, err = b.SecondFactors.Begin(ctx, p, "wrong horse", "a")
		wantCode(t, "a secret for who does not know the password", err, "wrong_credentials")
		begun, err := b.SecondFactors.Begin(ctx, p, password, "a")
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.SecondFactors.Confirm(ctx, p, "no code", "a")
		wantCode(t, "a wrong first code", err, "wrong_code")
		if _, err := b.Accounts.SignIn(ctx, "ada@example.org", password, "", visit); err != nil {
			t.Errorf("one that was only begun is asked for: %v", err)
		}
		codes, err := b.SecondFactors.Confirm(ctx, p, builtin.CodeOf(begun.Secret, b.clock.Now()), "a")
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.SecondFactors.Begin(ctx, p, password, "a")
		wantCode(t, "another one over it", err, "already_enabled")
		_, err = b.SecondFactors.Confirm(ctx, p, builtin.CodeOf(begun.Secret, b.clock.Now()), "a")
		wantCode(t, "confirmed again", err, "already_enabled")

		_, step, err := b.Accounts.BeginSignIn(ctx, "ada@example.org", password, visit)
		if err != nil || step == "" {
			t.Fatal(step, err)
		}
		_, err = b.Accounts.FinishSignIn(ctx, "guess", codes[0], visit)
		wantCode(t, "a second step that nobody began", err, "link_invalid")
		_, err = b.Accounts.FinishSignIn(ctx, step, "no code", visit)
		wantCode(t, "a wrong code", err, "wrong_code")
		if _, err := b.Accounts.FinishSignIn(ctx, step, codes[0], visit); err != nil {
			t.Errorf("after a wrong code: %v", err)
		}
		_, err = b.Accounts.FinishSignIn(ctx, step, codes[1], visit)
		wantCode(t, "the same step again", err, "link_invalid")
		_, late, err := b.Accounts.BeginSignIn(ctx, "ada@example.org", password, visit)
		if err != nil {
			t.Fatal(err)
		}
		b.clock.Pass(time.Hour)
		_, err = b.Accounts.FinishSignIn(ctx, late, codes[1], visit)
		wantCode(t, "an hour later", err, "link_invalid")

		wantCode(t, "off without a code", b.SecondFactors.Disable(ctx, p, password, "no code", "a"), "wrong_code")
		wantCode(t, "off without the password", b.SecondFactors.Disable(ctx, p, "wrong horse", codes[1], "a"), "wrong_credentials")
		if err := b.SecondFactors.Disable(ctx, p, password, codes[1], "a"); err != nil {
			t.Fatal(err)
		}
		if err := b.SecondFactors.Disable(ctx, p, password, "", "a"); err != nil {
			t.Errorf("off for the second time: %v", err)
		}
	})
}

func TestWhomAProviderSendsIsCheckedHere(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		if _, err := b.Accounts.Create(ctx, builtin.SignUp{Email: "ada@example.org", Password: password, Name: "Ada"}); err != nil {
			t.Fatal(err)
		}
		from := func(email string, verified bool) builtin.ExternalIdentity {
			return builtin.ExternalIdentity{Issuer: "https://id.example", Subject: "sub of " + email, Email: email, EmailVerified: verified, Name: "A\nB"}
		}
		for name, e := range map[string]builtin.ExternalIdentity{
			"an address that is not verified": from("ada@example.org", false),
			"a newcomer's":                    from("new@example.org", false),
			"no address":                      from("nobody", true),
		} {
			_, _, err := b.Accounts.SignInExternal(ctx, e, "", visit)
			wantCode(t, name, err, "email_unverified")
		}
		closed := b.options
		closed.SignUp = builtin.SignUpClosed
		_, _, err := builtin.New(closed).Accounts.SignInExternal(ctx, from("new@example.org", true), "", visit)
		wantCode(t, "a newcomer where nobody may sign up", err, "sign_up_closed")
		_, _, err = b.Accounts.SignInExternal(ctx, from("new@example.org", true), "no invitation", visit)
		wantCode(t, "a newcomer with an invitation that there isn't", err, "invitation_invalid")
		blind := b.with(func(s *builtin.Stores) { s.Limits = noLimits{} })
		if _, _, err := blind.Accounts.SignInExternal(ctx, from("new@example.org", true), "", visit); !errors.Is(err, errAway) {
			t.Errorf("a newcomer whom nobody counts: %v", err)
		}

		in, step, err := b.Accounts.SignInExternal(ctx, from("ADA@example.org", true), "", visit)
		if err != nil || step != "" || in.User.Email != "ada@example.org" {
			t.Fatalf("%+v, %v", in, err)
		}
		ada := in.User.ID
		begun, err := b.SecondFactors.Begin(ctx, b.presence(in), password, "a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.SecondFactors.Confirm(ctx, b.presence(in), builtin.CodeOf(begun.Secret, b.clock.Now()), "a"); err != nil {
			t.Fatal(err)
		}
		in, step, err = b.Accounts.SignInExternal(ctx, from("ADA@example.org", true), "", visit)
		if err != nil || step == "" || in.Secret != "" {
			t.Errorf("past the second factor: %+v, %q, %v", in, step, err)
		}
		if err := b.db.SuspendPerson(ctx, ada, b.clock.Now()); err != nil {
			t.Fatal(err)
		}
		_, _, err = b.Accounts.SignInExternal(ctx, from("ADA@example.org", true), "", visit)
		wantCode(t, "somebody who is disabled", err, "account_disabled")
		_, err = b.Accounts.SignIn(ctx, "ada@example.org", password, "", visit)
		wantCode(t, "with a password", err, "account_disabled")
	})
}

func TestOnlyOwnersTouchOwners(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		ada, eve := b.presence(b.signUp("ada")), b.presence(b.signUp("eve"))
		team := ada.Memberships[0].Team.ID
		as := func(role access.Role) identity.Presence { // as somebody else of the team would come
			p := ada
			p.Memberships = slices.Clone(ada.Memberships)
			p.Memberships[0].Role = role
			return p
		}
		admin := as(access.Admin)
		_, err := b.Teams.ChangeRole(ctx, admin, team, ada.User.ID, access.Viewer)
		storetest.Refused(t, "an owner, by an admin", err, fault.KindForbidden)
		_, err = b.Teams.ChangeRole(ctx, admin, team, ada.User.ID, access.Owner)
		storetest.Refused(t, "another owner, by an admin", err, fault.KindForbidden)
		_, err = b.Teams.ChangeRole(ctx, admin, team, ada.User.ID, "king")
		storetest.Refused(t, "a role that there isn't", err, fault.KindInvalid)
		storetest.Refused(t, "an owner removed, by an admin", b.Teams.RemoveMember(ctx, admin, team, ada.User.ID), fault.KindForbidden)
		_, err = b.Teams.Rename(ctx, as(access.Viewer), team, "ours")
		storetest.Refused(t, "another name, by a viewer", err, fault.KindForbidden)
		for name, try := range map[string]func() error{
			"its members": func() error { _, _, err := b.Teams.Members(ctx, eve, team); return err },
			"its name":    func() error { _, err := b.Teams.Rename(ctx, eve, team, "mine"); return err },
			"its choice":  func() error { _, err := b.Teams.Activate(ctx, eve, team); return err },
			"its leaving": func() error { return b.Teams.Leave(ctx, eve, team) },
			"its people":  func() error { return b.Teams.RemoveMember(ctx, eve, team, ada.User.ID) },
			"its roles": func() error {
				_, err := b.Teams.ChangeRole(ctx, eve, team, eve.User.ID, access.Owner)
				return err
			},
			"its invitations": func() error { return b.Invitations.Revoke(ctx, eve, team, ids.NewInvitation()) },
		} {
			if err := try(); !fault.Is(err, fault.KindForbidden) && !fault.Is(err, fault.KindNotFound) {
				t.Errorf("a stranger, %s: %v", name, err)
			}
		}
	})
}
