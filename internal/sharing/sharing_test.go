package sharing_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/workflows"
)

// bench is the room on a real database, with a workflow to share.
type bench struct {
	*sharing.Service
	t        *testing.T
	db       *store.DB
	clock    *storetest.Clock
	owner    access.Caller
	workflow ids.Workflow
	members  roles
}

// roles stands in for the identity system.
type roles map[ids.Session]any

func (r roles) RoleOf(_ context.Context, s ids.Session, _ ids.Team) (access.Role, error) {
	switch v := r[s].(type) {
	case access.Role:
		return v, nil
	case error:
		return "", v
	}
	return "", fault.Unauthenticated("no such session")
}

func each(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := &bench{t: t, db: db, clock: storetest.NewClock(), owner: storetest.Owner(t, db, "ada"), members: roles{}}
		b.Service = sharing.NewService(sharing.Options{Store: db, Rooms: db, Members: b.members, Key: []byte("key"), Now: b.clock.Now})
		w, err := workflows.NewService(db.WorkflowStores(), b.clock.Now).Create(t.Context(), b.owner, workflows.New{Name: "w"})
		if err != nil {
			t.Fatal(err)
		}
		b.workflow = w.ID
		test(t, b)
	})
}

func (b *bench) link(in sharing.New) (sharing.Invite, string) {
	b.t.Helper()
	in.Workflow = b.workflow
	if in.Role == "" {
		in.Role = sharing.Editor
	}
	i, token, err := b.Create(b.t.Context(), b.owner, in)
	if err != nil {
		b.t.Fatal(err)
	}
	return i, token
}

// join comes by a link with a browser.
func (b *bench) join(token, browser string) (sharing.Joined, error) {
	return b.Join(b.t.Context(), token, "Gus", browser, func() string { return "guest_" + browser + token[len(token)-6:] })
}

func code(err error) string {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e.Code
	}
	return fmt.Sprint(err)
}

func TestLinksAreMadeByWhoMayAndAsTheyMayBe(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		good := sharing.New{Workflow: b.workflow, Role: sharing.Viewer}
		for role, kind := range map[access.Role]fault.Kind{access.Owner: "", access.Admin: "", access.Member: fault.KindForbidden, access.Viewer: fault.KindForbidden, access.GuestEditor: fault.KindForbidden} {
			as := b.owner
			as.Role = role
			_, _, err := b.Create(t.Context(), as, good)
			storetest.Refused(t, string(role)+" makes one", err, kind)
			_, err = b.Invites(t.Context(), as, b.workflow)
			storetest.Refused(t, string(role)+" lists them", err, kind)
			_, err = b.AllInvites(t.Context(), as, "", 10)
			storetest.Refused(t, string(role)+" exports them", err, kind)
			if kind != "" {
				storetest.Refused(t, string(role)+" revokes one", b.Revoke(t.Context(), as, "inv_x"), kind)
			}
		}
		_, _, err := b.Create(t.Context(), storetest.Owner(t, b.db, "mia"), good)
		storetest.Refused(t, "another team", err, fault.KindNotFound)
		for path, change := range map[string]func(*sharing.New){
			"workflowId":     func(n *sharing.New) { n.Workflow = "" },
			"role":           func(n *sharing.New) { n.Role = "owner" },
			"expiresInHours": func(n *sharing.New) { n.Hours = 721 },
			"maxUses":        func(n *sharing.New) { n.MaxUses = 1001 },
			"maxCredits":     func(n *sharing.New) { n.MaxCredits = -1 },
		} {
			in := good
			change(&in)
			_, _, err := b.Create(t.Context(), b.owner, in)
			if e, ok := errors.AsType[*fault.Error](err); !ok || len(e.Details) != 1 || e.Details[0].Path != path {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
}

func TestOneBrowserIsOneGuestAndTheLastUseIsTakenOnce(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		i, token := b.link(sharing.New{MaxUses: 3})
		first, err := b.join(token, "a")
		if err != nil || !strings.HasPrefix(first.RunToken, sharing.TokenPrefix) {
			t.Fatal(first, err)
		}
		again, err := b.join(token, "a")
		if err != nil || again.Guest.ID != first.Guest.ID || again.RunToken != first.RunToken {
			t.Errorf("%+v, %v", again, err)
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		in, out := 0, 0
		for n := range 10 {
			wg.Go(func() {
				_, err := b.join(token, fmt.Sprint("browser", n))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					in++
				case code(err) == "exhausted":
					out++
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if in != 2 || out != 8 {
			t.Errorf("%d came in, %d did not", in, out)
		}
		if _, err := b.join(token, "a"); err != nil {
			t.Errorf("who was there comes back: %v", err)
		}
		_, err = b.Caller(t.Context(), token)
		storetest.Refused(t, "the token of a used-up link", err, fault.KindForbidden)
		guest, err := b.Caller(t.Context(), first.RunToken)
		if err != nil || guest.Role != access.GuestEditor || guest.Guest.Workflow != b.workflow || guest.Guest.Invite != i.ID || guest.Team != b.owner.Team {
			t.Errorf("%+v, %v", guest, err)
		}
	})
}

func TestALinkThatEndedOpensNothing(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		_, brief := b.link(sharing.New{Hours: 1})
		revoked, gone := b.link(sharing.New{})
		inBrief, err := b.join(brief, "a")
		if err != nil {
			t.Fatal(err)
		}
		inGone, err := b.join(gone, "a")
		if err != nil {
			t.Fatal(err)
		}
		storetest.Refused(t, "another team revokes it", b.Revoke(t.Context(), storetest.Owner(t, b.db, "mia"), revoked.ID), fault.KindNotFound)
		if err := b.Revoke(t.Context(), b.owner, revoked.ID); err != nil {
			t.Fatal(err)
		}
		b.clock.Pass(time.Hour)
		for token, want := range map[string]string{brief: "expired", gone: "revoked", inBrief.RunToken: "expired", inGone.RunToken: "revoked"} {
			_, err := b.Caller(t.Context(), token)
			storetest.Refused(t, want, err, fault.KindUnauthenticated)
			if code(err) != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
		for token, want := range map[string]string{brief: "expired", gone: "revoked"} {
			for _, browser := range []string{"a", "b"} { // a guest of before, and a newcomer
				if _, err := b.join(token, browser); code(err) != want {
					t.Errorf("%s by %s: %v", want, browser, err)
				}
			}
		}
		_, err = b.Caller(t.Context(), sharing.TokenPrefix+"nobody")
		storetest.Refused(t, "a token that nobody has", err, fault.KindUnauthenticated)
		_, err = b.join("nobody", "a")
		storetest.Refused(t, "a link that nobody has", err, fault.KindNotFound)
	})
}

func TestGuestsAreCalledAsTheyMayBe(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		_, token := b.link(sharing.New{Role: sharing.Viewer})
		for name, good := range map[string]bool{"": true, " Gus ": true, strings.Repeat("é", 100): true, strings.Repeat("é", 101): false, "a\nb": false, "\x00": false} {
			j, err := b.Join(t.Context(), token, name, "browser of "+name, func() string { return "guest_" + fmt.Sprint(len(name)) })
			if (err == nil) != good || good && (j.Guest.Name == "" || j.Guest.Name != strings.TrimSpace(j.Guest.Name) || j.RunToken != "") {
				t.Errorf("%q: %+v, %v", name, j.Guest, err)
			}
		}
	})
}

func TestARoomTokenIsWhatWeSignedForAnHour(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		p, err := b.MemberPass(t.Context(), b.owner, "ses_1", b.workflow)
		if err != nil {
			t.Fatal(err)
		}
		token, err := b.Sign(p)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := b.Verify(token); err != nil || got != p || got.Role != sharing.Editor {
			t.Errorf("%+v, %v", got, err)
		}
		body, signature, _ := strings.Cut(token, ".")
		other := sharing.NewService(sharing.Options{Key: []byte("another"), Now: b.clock.Now})
		foreign, _ := other.Sign(p)
		for _, bad := range []string{"", ".", body, body + ".", "." + signature, body + "x." + signature, body + "." + signature + "x", foreign, token + "." + signature} {
			_, err := b.Verify(bad)
			storetest.Refused(t, bad, err, fault.KindUnauthenticated)
		}
		b.clock.Pass(time.Hour)
		_, err = b.Verify(token)
		storetest.Refused(t, "after an hour", err, fault.KindUnauthenticated)

		viewer := b.owner
		viewer.Role = access.Viewer
		if p, err := b.MemberPass(t.Context(), viewer, "ses_1", b.workflow); err != nil || p.Role != sharing.Viewer {
			t.Errorf("%+v, %v", p, err)
		}
		_, err = b.MemberPass(t.Context(), storetest.Owner(t, b.db, "mia"), "ses_2", b.workflow)
		storetest.Refused(t, "another team's room", err, fault.KindNotFound)
		_, err = b.MemberPass(t.Context(), access.Caller{Team: b.owner.Team, Role: access.GuestEditor}, "ses_2", b.workflow)
		storetest.Refused(t, "a guest as a member", err, fault.KindForbidden)
	})
}

func TestWhoLosesTheirPlaceIsFound(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		_, token := b.link(sharing.New{})
		closed, other := b.link(sharing.New{})
		var passes []sharing.Pass
		for _, link := range []string{token, other} {
			j, err := b.join(link, link)
			if err != nil {
				t.Fatal(err)
			}
			p, err := b.GuestPass(t.Context(), j)
			if err != nil {
				t.Fatal(err)
			}
			passes = append(passes, p)
		}
		if err := b.Revoke(t.Context(), b.owner, closed.ID); err != nil {
			t.Fatal(err)
		}
		b.members["stays"], b.members["lesser"] = access.Member, access.Viewer
		b.members["removed"] = fault.NotFound("no such team")
		for _, s := range []ids.Session{"stays", "lesser", "removed", "signed out"} {
			passes = append(passes, sharing.Pass{Team: b.owner.Team, Session: s, Role: sharing.Editor, User: ids.User(s)},
				sharing.Pass{Team: b.owner.Team, Session: s, Role: sharing.Viewer, User: ids.User(s)})
		}
		lost, err := b.Lost(t.Context(), passes)
		var who []string
		for _, p := range lost {
			who = append(who, string(p.Role)+" "+string(p.Invite)+string(p.Session))
		}
		want := fmt.Sprintf("[editor %s editor lesser editor removed viewer removed editor signed out viewer signed out]", closed.ID)
		if err != nil || fmt.Sprint(who) != want {
			t.Errorf("%v, %v\nwant %s", who, err, want)
		}
		b.members["stays"] = errors.New("the database is away")
		if lost, err := b.Lost(t.Context(), passes); err == nil {
			t.Errorf("when nobody can say, %v are lost", lost)
		}
	})
}

func TestABrowserIsKnownByItsCookie(t *testing.T) {
	t.Parallel()
	s := sharing.NewService(sharing.Options{Key: []byte("key")})
	mine, isNew := s.Visitor("")
	if !isNew {
		t.Error("nobody is known")
	}
	if again, isNew := s.Visitor(mine); isNew || again != mine {
		t.Error("it is not known again")
	}
	for _, forged := range []string{mine + "x", "x" + mine, strings.Split(mine, ".")[0], "." + strings.Split(mine, ".")[1], "."} {
		if got, isNew := s.Visitor(forged); !isNew || got == forged {
			t.Errorf("%q is believed", forged)
		}
	}
	if first := sharing.Color("a"); first != sharing.Color("a") {
		t.Error("a colour changes")
	}
}
