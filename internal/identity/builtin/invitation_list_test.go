package builtin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
	"github.com/millrace/millrace/internal/store/storetest"
)

func TestAListOfAddressesIsReadLineByLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ada@example.org": "1 ada@example.org member",
		"ada@example.org, eve@example.org; bob@example.org":                "1 ada@example.org member|1 eve@example.org member|1 bob@example.org member",
		"ada@example.org\r\n\r\neve@example.org\r\n":                       "1 ada@example.org member|3 eve@example.org member",
		"\ufeffemail,role\nada@example.org,Admin\nEve@Example.org\tviewer": "2 ada@example.org admin|3 eve@example.org viewer",
		"admin, ada@example.org":                                           "1 ada@example.org admin",
		`"ada@example.org","viewer"`:                                       "1 ada@example.org viewer",
		"Ada Okoye <ada@example.org>":                                      "1 ada@example.org member",
		"ada@example.org\nADA@example.org":                                 "1 ada@example.org member|2 ada@example.org member wrong: is in line 1, too",
		"ada@example.org, king":                                            "1 ada@example.org member|1 king member wrong: is not an email address",
		"a\x00b@example.org":                                               "1 a\x00b@example.org member wrong: is not an email address",
		"ada@example.org\nemail":                                           "1 ada@example.org member|2 email member wrong: is not an email address",
	} {
		list, err := builtin.ParseInvitations(text, "")
		var got []string
		for _, r := range list {
			s := fmt.Sprintf("%d %s %s", r.Line, r.Email, r.Role)
			if r.Result != "" {
				s += fmt.Sprintf(" %s: %s", r.Result, r.Message)
			}
			got = append(got, s)
		}
		if err != nil || strings.Join(got, "|") != want {
			t.Errorf("%q: %q, want %q (%v)", text, strings.Join(got, "|"), want, err)
		}
	}
	for _, text := range []string{"", "\n , ;\n", "email,role\n"} {
		_, err := builtin.ParseInvitations(text, "")
		storetest.Refused(t, text, err, fault.KindInvalid)
	}
	_, err := builtin.ParseInvitations("ada@example.org", "king")
	storetest.Refused(t, "no such role", err, fault.KindInvalid)
	_, err = builtin.ParseInvitations(addresses(501), "")
	storetest.Refused(t, "too many", err, fault.KindInvalid)
}

func addresses(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "p%d@example.org\n", i)
	}
	return b.String()
}

func (b *bench) inviteList(caller access.Caller, text string) []builtin.InvitationResult {
	b.t.Helper()
	list, err := b.Invitations.InviteList(b.t.Context(), caller, builtin.InvitationList{Text: text, NewInvitation: identity.NewInvitation{
		Role: access.Member, Verified: true, ClientPrefix: "203.0.113.1", Link: func(token string) string { return "http://a/" + token },
	}})
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

// mailed is how many mails went out by now.
func (b *bench) mailed() (n int) {
	b.t.Helper()
	now := b.clock.Now()
	if err := b.db.ReleaseMails(b.t.Context(), now); err != nil {
		b.t.Fatal(err)
	}
	for {
		list, err := b.db.ClaimMails(b.t.Context(), 100, now, time.Minute)
		if err != nil {
			b.t.Fatal(err)
		}
		if len(list) == 0 {
			return n
		}
		for _, m := range list {
			if err := b.db.MailSent(b.t.Context(), m.ID); err != nil {
				b.t.Fatal(err)
			}
		}
		n += len(list)
	}
}

func TestAListSaysOfEachAddressWhatBecameOfIt(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ada := storetest.Owner(t, b.db, "ada")
		storetest.Join(t, b.db, ada, "eve", access.Member)
		results := func(text string) (got []builtin.ListResult) {
			for _, r := range b.inviteList(ada, text) {
				got = append(got, r.Result)
			}
			return got
		}
		list := "eve@example.org\nbob@example.org, admin\nnobody\nmia@example.org"
		if got := results(list); !slices.Equal(got, []builtin.ListResult{builtin.ResultAlreadyMember, builtin.ResultInvited, builtin.ResultWrong, builtin.ResultInvited}) {
			t.Error(got)
		}
		if got := results(list); !slices.Equal(got, []builtin.ListResult{builtin.ResultAlreadyMember, builtin.ResultAlreadyInvited, builtin.ResultWrong, builtin.ResultAlreadyInvited}) {
			t.Errorf("again: %v", got)
		}
		if n := b.mailed(); n != 2 {
			t.Errorf("%d mails went out", n)
		}
		admin := storetest.Join(t, b.db, ada, "max", access.Admin)
		for _, as := range []access.Caller{admin, {User: ada.User, Team: ada.Team, Role: access.Member}} {
			_, err := b.Invitations.InviteList(t.Context(), as, builtin.InvitationList{Text: "x@example.org, owner", NewInvitation: identity.NewInvitation{Link: func(string) string { return "" }}})
			storetest.Refused(t, string(as.Role), err, fault.KindForbidden)
		}
	})
}

// However long the list, mails go out as the limits allow, each of them once, and none too late
// for its invitation.
func TestMailsOfAListWaitForTheLimits(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.options.Private = false
		b.System = builtin.New(b.options)
		ada := storetest.Owner(t, b.db, "ada")
		list := b.inviteList(ada, addresses(230))
		for _, r := range list {
			if r.Result != builtin.ResultInvited {
				t.Fatalf("%+v", r)
			}
		}
		if n := b.mailed(); n != 50 {
			t.Errorf("%d mails went out at once", n)
		}
		if n := b.mailed(); n != 0 {
			t.Errorf("%d more went out at once", n)
		}
		if err := b.db.RevokeInvitation(t.Context(), ada.Team, list[229].Made.ID, b.clock.Now()); err != nil {
			t.Fatal(err)
		}
		sent, until := 50, list[228].Made.ExpiresAt
		for sent < 229 && b.clock.Now().Before(until) {
			b.clock.Pass(time.Hour)
			n := b.mailed()
			if n > 50 {
				t.Fatalf("%d mails went out within an hour", n)
			}
			sent += n
		}
		if n, err := b.db.HeldMails(t.Context(), ada.Team); err != nil || n != 0 || sent != 229 {
			t.Errorf("%d mails went out, %d wait, %v", sent, n, err)
		}
	})
}
