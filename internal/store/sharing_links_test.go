package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/account"
	"github.com/millrace/millrace/internal/billing"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/sharing"
	"github.com/millrace/millrace/internal/workflows"
)

// link is a share link of a workflow, for an hour.
func link(t *testing.T, db *DB, w workflows.Workflow, change func(*sharing.Invite)) sharing.Invite {
	t.Helper()
	i := sharing.Invite{ID: ids.NewInvite(), Team: w.Team, Workflow: w.ID, Role: sharing.Editor, Hours: 1, ExpiresAt: august.Add(time.Hour), CreatedBy: w.CreatedBy, CreatedAt: august}
	if change != nil {
		change(&i)
	}
	must(t, db.InsertInvite(t.Context(), i, "token of "+string(i.ID), nil))
	return i
}

var errFull = errors.New("the link is used up")

// joining lets a visitor in by a link, as often as it allows.
func joining(t *testing.T, db *DB, i sharing.Invite, visitor, name string) (sharing.Invite, sharing.Guest, error) {
	t.Helper()
	return db.Join(t.Context(), sharing.Joining{
		TokenHash: "token of " + string(i.ID), Visitor: visitor, Guest: sharing.Guest{ID: "guest " + visitor, Name: name},
		RunToken: func(guest string) string { return "run token of " + guest }, Now: august,
	}, func(i sharing.Invite, back bool) error {
		if !back && i.MaxUses > 0 && i.Uses >= i.MaxUses {
			return errFull
		}
		return nil
	})
}

func TestALinkLetsInAsManyAsItMay(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		w := newWorkflow(t, db, team, owner)
		i := link(t, db, w, func(i *sharing.Invite) { i.MaxUses = 3 })
		done, errs := atOnce(8, func(n int) error {
			_, _, err := joining(t, db, i, fmt.Sprint("v", n), "")
			return err
		})
		if done != 3 {
			t.Errorf("%d came in: %v", done, errs)
		}
		list, err := db.Invites(ctx, team, w.ID)
		if err != nil || len(list) != 1 || list[0].Uses != 3 || !list[0].LastUsedAt.Equal(august) {
			t.Errorf("%+v, %v", list, err)
		}
		var names []string
		for n, err := range errs {
			if err != nil {
				continue
			}
			// Whoever was in comes back, and is called what they were called.
			_, g, err := joining(t, db, i, fmt.Sprint("v", n), "")
			must(t, err)
			names = append(names, g.Name)
			_, g, err = joining(t, db, i, fmt.Sprint("v", n), "Ada")
			if err != nil || g.Name != "Ada" {
				t.Errorf("%+v, %v", g, err)
			}
			of, bearer, err := db.Bearer(ctx, fmt.Sprint("run token of guest v", n))
			if err != nil || of.ID != i.ID || bearer == nil || bearer.Name != "Ada" {
				t.Errorf("%+v, %+v, %v", of, bearer, err)
			}
		}
		if len(names) != 3 || names[0] == names[1] || names[1] == names[2] || names[0] == names[2] {
			t.Errorf("guests are called %q", names)
		}
		if of, bearer, err := db.Bearer(ctx, "token of "+string(i.ID)); err != nil || of.ID != i.ID || bearer != nil {
			t.Errorf("%+v, %+v, %v", of, bearer, err)
		}
		_, _, err = db.Bearer(ctx, "")
		refused(t, "no token", err, fault.KindNotFound, "")
		_, _, err = joining(t, db, sharing.Invite{ID: "inv_nothing"}, "v", "")
		refused(t, "no link", err, fault.KindNotFound, "")
	})
}

func TestLinksOfAWorkflow(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		other, stranger := newTeam(t, db)
		w, theirs := newWorkflow(t, db, team, owner), newWorkflow(t, db, other, stranger)
		a, b := link(t, db, w, nil), link(t, db, w, func(i *sharing.Invite) { i.ExpiresAt = august.Add(time.Minute) })
		c := link(t, db, theirs, nil)
		stray := sharing.Invite{ID: ids.NewInvite(), Team: team, Workflow: theirs.ID, Role: sharing.Viewer, CreatedBy: owner, CreatedAt: august, ExpiresAt: august}
		refused(t, "a link to another team's workflow", db.InsertInvite(ctx, stray, "stray", nil), fault.KindNotFound, "")
		if _, err := db.Invites(ctx, team, theirs.ID); !fault.Is(err, fault.KindNotFound) {
			t.Error(err)
		}
		if list, err := db.InvitesOfTeam(ctx, team, "", 1); err != nil || len(list) != 1 || list[0].ID != b.ID {
			t.Errorf("%+v, %v", list, err)
		}
		if list, err := db.InvitesOfTeam(ctx, team, b.ID, 5); err != nil || len(list) != 1 || list[0].ID != a.ID {
			t.Errorf("%+v, %v", list, err)
		}
		open := func(now time.Time) string {
			got, err := db.OpenInvites(ctx, []ids.Invite{a.ID, b.ID, c.ID, "inv_nothing"}, now)
			must(t, err)
			return fmt.Sprint(got[a.ID], got[b.ID], got[c.ID], len(got))
		}
		if got := open(august.Add(time.Minute)); got != "true false true 2" {
			t.Error(got)
		}
		refused(t, "another team", db.RevokeInvite(ctx, other, a.ID, august), fault.KindNotFound, "")
		for _, at := range []time.Time{august, august.Add(time.Hour)} { // once is enough
			must(t, db.RevokeInvite(ctx, team, a.ID, at))
		}
		if list, err := db.Invites(ctx, team, w.ID); err != nil || !list[1].RevokedAt.Equal(august) {
			t.Errorf("%+v, %v", list, err)
		}
		must(t, db.DeleteWorkflow(ctx, team, w.ID, "Ada", august))
		must(t, db.CloseTeam(ctx, other, account.Lifetimes{}, august))
		if got := open(august); got != "false false false 0" {
			t.Errorf("links of what is gone: %s", got)
		}
		if none, err := db.OpenInvites(ctx, nil, august); err != nil || len(none) != 0 {
			t.Errorf("%v, %v", none, err)
		}
	})
}

// What guests spend counts against their link, also what runs cost that were
// deleted since.
func TestGuestsSpendWhatTheirLinkAllows(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		w := newWorkflow(t, db, team, owner)
		i := link(t, db, w, func(i *sharing.Invite) { i.MaxCredits = 10 * credits.Credit })
		_, g, err := joining(t, db, i, "v", "Eve")
		must(t, err)
		start := func(hold credits.Amount) (runs.Run, error) {
			r := newRun(team)
			r.Workflow, r.Invite, r.Starter = w.ID, i.ID, runs.Starter{Type: "guest", ID: g.ID, Name: g.Name}
			return r, db.SubmitRun(ctx, r, hold, nil)
		}
		r, err := start(6 * credits.Credit)
		must(t, err)
		_, err = start(5 * credits.Credit)
		refused(t, "more than is left", err, fault.KindPayment, billing.InviteLimit)
		// It costs less than was held, and then it is deleted: that is spent.
		claimed, err := db.ClaimRuns(ctx, claim("w1", 10), august, august.Add(time.Minute))
		if err != nil || len(claimed.Runs) != 1 {
			t.Fatalf("%+v, %v", claimed, err)
		}
		must(t, db.Advance(ctx, r.ID, 1, runs.Step{BilledSince: august}, august))
		end := august.Add(1429 * time.Second) // at 0.0028 credits a second: a little over 4
		must(t, db.EndRun(ctx, r.ID, 1, runs.Ending{Status: lifecycle.Completed}, end))
		must(t, second(db.DeleteRun(ctx, team, r.ID, end)))
		_, err = start(6 * credits.Credit)
		refused(t, "after a run was deleted", err, fault.KindPayment, billing.InviteLimit)
		r, err = start(5 * credits.Credit)
		must(t, err)
		if _, err := db.SecretsOf(ctx, r.ID, []string{"key"}, august); !fault.Is(err, fault.KindInvalid) {
			t.Errorf("a guest's run gets secrets: %v", err)
		}
		must(t, db.RevokeInvite(ctx, team, i.ID, august))
		_, err = start(0)
		refused(t, "by a link that was revoked", err, fault.KindUnauthenticated, string(sharing.Revoked))
		check(t, db, team)
	})
}

func TestALinkToResults(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		other, _ := newTeam(t, db)
		r := submit(t, db, team)
		l := sharing.ResultLink{ID: ids.NewResultLink(), Team: team, Run: r.ID, Hours: 1, ExpiresAt: august.Add(time.Hour), Parameters: []string{"size", "seed"}, AllowCopy: true, CreatedBy: owner, CreatedAt: august}
		must(t, db.InsertResultLink(ctx, l, "token", nil))
		stray := l
		stray.ID, stray.Team = ids.NewResultLink(), other
		refused(t, "to another team's run", db.InsertResultLink(ctx, stray, "stray", nil), fault.KindNotFound, "")
		done, errs := atOnce(5, func(int) error { return second(db.OpenResultLink(ctx, "token", august)) })
		got, err := db.OpenResultLink(ctx, "token", august.Add(time.Minute))
		if done != 5 || err != nil || got.Views != 6 || len(got.Parameters) != 2 || !got.AllowCopy || !got.LastUsedAt.Equal(august.Add(time.Minute)) {
			t.Errorf("%+v, %v, %v", got, err, errs)
		}
		if got, err := db.OpenResultLink(ctx, "token", august.Add(time.Hour)); err != nil || got.Views != 6 || got.Status(august.Add(time.Hour)) != sharing.Expired {
			t.Errorf("one that ran out counts views: %+v, %v", got, err)
		}
		refused(t, "of another team", db.RevokeResultLink(ctx, other, r.ID, l.ID, august), fault.KindNotFound, "")
		refused(t, "of another run", db.RevokeResultLink(ctx, team, "run_other", l.ID, august), fault.KindNotFound, "")
		must(t, db.RevokeResultLink(ctx, team, r.ID, l.ID, august))
		must(t, db.RevokeResultLink(ctx, team, r.ID, l.ID, august.Add(time.Hour)))
		if got, err := db.OpenResultLink(ctx, "token", august); err != nil || got.Views != 6 || !got.RevokedAt.Equal(august) {
			t.Errorf("one that was revoked: %+v, %v", got, err)
		}
		refused(t, "no link", second(db.OpenResultLink(ctx, "", august)), fault.KindNotFound, "")
		if list, err := db.ResultLinks(ctx, other, r.ID); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
		if list, err := db.ResultLinksOfTeam(ctx, team, "", 10); err != nil || len(list) != 1 {
			t.Errorf("%+v, %v", list, err)
		}
		if list, err := db.ResultLinksOfTeam(ctx, team, l.ID, 10); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
		must(t, db.CloseTeam(ctx, team, account.Lifetimes{}, august))
		late := l
		late.ID = ids.NewResultLink()
		refused(t, "of a team that is being erased", db.InsertResultLink(ctx, late, "late", nil), fault.KindForbidden, "not_a_member")
	})
}

// The run of a guest and the link to its results are there together, or neither is.
func TestAGuestsRunAndItsResultLinkAreOneTransaction(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		w := newWorkflow(t, db, team, owner)
		open := link(t, db, w, func(i *sharing.Invite) { i.AllowResults = true })
		closed := link(t, db, w, nil)
		start := func(i sharing.Invite, token string) (runs.Run, error) {
			r := newRun(team)
			r.Workflow, r.Invite, r.Starter = w.ID, i.ID, runs.Starter{Type: "guest", ID: "guest", Name: "Eve"}
			r.ResultLink = &access.ResultLink{ID: ids.NewResultLink(), TokenHash: token, TokenHint: "hint", Hours: 2, ExpiresAt: august.Add(2 * time.Hour)}
			return r, db.SubmitRun(ctx, r, 0, nil)
		}
		absent := func(what string, r runs.Run) {
			t.Helper()
			if _, err := db.Run(ctx, team, r.ID); !fault.Is(err, fault.KindNotFound) {
				t.Errorf("%s: the run is there: %v", what, err)
			}
			if list, err := db.ResultLinks(ctx, team, r.ID); err != nil || len(list) != 0 {
				t.Errorf("%s: %+v, %v", what, list, err)
			}
		}
		r, err := start(open, "token")
		must(t, err)
		got, err := db.OpenResultLink(ctx, "token", august)
		if err != nil || got.Run != r.ID || got.Team != team || got.Invite != open.ID || got.CreatedBy != owner || got.Hours != 2 || len(got.Parameters) != 0 || got.AllowCopy || got.TokenHint != "hint" {
			t.Errorf("%+v, %v", got, err)
		}
		again, err := start(open, "token")
		if err == nil {
			t.Error("two links have one token")
		}
		absent("a link that cannot be stored", again)
		r, err = start(closed, "other token")
		refused(t, "a share link without results", err, fault.KindNotFound, "")
		absent("a share link without results", r)

		must(t, db.RevokeInvite(ctx, team, open.ID, august.Add(time.Minute)))
		must(t, db.RevokeInvite(ctx, team, open.ID, august.Add(time.Hour)))
		if got, err := db.OpenResultLink(ctx, "token", august); err != nil || !got.RevokedAt.Equal(august.Add(time.Minute)) {
			t.Errorf("of a share link that was revoked: %+v, %v", got, err)
		}
		r, err = start(open, "late token")
		refused(t, "after that", err, fault.KindUnauthenticated, string(sharing.Revoked))
		absent("after that", r)
	})
}

func TestWhichFilesAGuestMayUse(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		r := newRun(team)
		r.Inputs = []byte(`{"in":["a","b"],"more":["c"]}`)
		must(t, db.SubmitRun(ctx, r, 0, nil))
		again := newRun(team)
		again.Inputs = []byte(`{"in":["b","https://host.example/x"]}`)
		must(t, db.SubmitRun(ctx, again, 0, nil))
		// Whatever runs were given, it is not read again.
		must(t, second(db.changed(ctx, `UPDATE runs SET inputs = 'nobody can read this'`)))
		for _, tt := range []struct {
			team     ids.Team
			workflow ids.Workflow
			want     string
		}{{team, r.Workflow, "[x y]"}, {team, "wf_other", "[a x b y]"}, {"team_other", r.Workflow, "[a x b y]"}} {
			if left, err := db.FilesNotUsed(ctx, tt.team, tt.workflow, []string{"a", "x", "b", "y"}); err != nil || fmt.Sprint(left) != tt.want {
				t.Errorf("%v, %v; want %s", left, err, tt.want)
			}
		}
		if left, err := db.FilesNotUsed(ctx, team, r.Workflow, nil); err != nil || left != nil {
			t.Errorf("%v, %v", left, err)
		}
	})
}
