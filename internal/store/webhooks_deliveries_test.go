package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/account"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/webhooks"
)

func hook(t *testing.T, db *DB, team ids.Team, by ids.User, events ...string) webhooks.Webhook {
	t.Helper()
	w := webhooks.Webhook{ID: ids.NewWebhook(), Team: team, URL: "https://example.org/hook", Events: events, Enabled: true, Secret: "signs", CreatedBy: by, CreatedAt: august, UpdatedAt: august}
	must(t, db.InsertWebhook(t.Context(), w, 10))
	return w
}

// due are the types of what one server gets to send at a time, and of which webhook.
func due(t *testing.T, db *DB, now time.Time) (webhooks.Webhook, []webhooks.Delivery) {
	t.Helper()
	w, list, err := db.ClaimDeliveries(t.Context(), now, now.Add(time.Minute), 10)
	must(t, err)
	return w, list
}

// attempt says that a message was tried.
func attempt(t *testing.T, db *DB, d webhooks.Delivery, status webhooks.Status, next time.Time, disable string) {
	t.Helper()
	d.Status, d.Attempts, d.NextAt, d.ResponseStatus = status, d.Attempts+1, next, 500
	if status == webhooks.Delivered {
		d.DeliveredAt, d.ResponseStatus = next, 204
	}
	must(t, db.Attempted(t.Context(), d, webhooks.Webhook{}, disable))
}

// Of each run the earliest message goes first, whatever becomes of it, and the
// messages of other runs do not wait for it.
func TestMessagesOfARunGoInTheirOrder(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		w := hook(t, db, team, owner)
		first := submit(t, db, team)
		if _, err := db.CancelRun(ctx, team, first.ID, runs.Starter{Name: "Ada"}, august); err != nil {
			t.Fatal(err)
		}
		other := submit(t, db, team)
		got, list := due(t, db, august)
		if got.ID != w.ID || got.Secret != "signs" || got.URL != w.URL || len(list) != 2 || list[0].Type != "run.queued" || list[1].Type != "run.queued" {
			t.Fatalf("%+v, %+v", got, list)
		}
		if _, more := due(t, db, august); len(more) != 0 {
			t.Errorf("two servers send at once: %+v", more)
		}
		of := map[ids.Run]webhooks.Delivery{list[0].Run: list[0], list[1].Run: list[1]}
		later := august.Add(10 * time.Minute)
		attempt(t, db, of[first.ID], webhooks.Pending, later, "")
		attempt(t, db, of[first.ID], webhooks.Delivered, august, "") // a server that lost its claim changes nothing
		attempt(t, db, of[other.ID], webhooks.Delivered, august, "")
		must(t, db.ReleaseWebhook(ctx, w.ID, august, august)) // not the claim that there is
		if _, list := due(t, db, august.Add(30*time.Second)); len(list) != 0 {
			t.Errorf("%+v", list)
		}
		must(t, db.ReleaseWebhook(ctx, w.ID, august.Add(time.Minute), august))
		if _, list := due(t, db, later.Add(-time.Microsecond)); len(list) != 0 {
			t.Errorf("what waits for an earlier message: %+v", list)
		}
		_, list = due(t, db, later)
		if len(list) != 1 || list[0].Run != first.ID || list[0].Type != "run.queued" || list[0].Attempts != 1 {
			t.Fatalf("%+v", list)
		}
		attempt(t, db, list[0], webhooks.Failed, later, "") // given up
		must(t, db.ReleaseWebhook(ctx, w.ID, later.Add(time.Minute), august))
		_, list = due(t, db, later)
		if len(list) != 1 || list[0].Type != "run.cancelled" || list[0].Run != first.ID {
			t.Errorf("%+v", list)
		}
		attempt(t, db, list[0], webhooks.Pending, later, "410 Gone")
		if got, err := db.Webhook(ctx, team, w.ID); err != nil || got.Enabled || got.Why != "410 Gone" {
			t.Errorf("%+v, %v", got, err)
		}
		if _, list := due(t, db, later.AddDate(0, 0, 1)); len(list) != 0 {
			t.Errorf("one that is disabled: %+v", list)
		}
	})
}

// Of a team, so many webhooks are sent to at once, whatever waits; those that were sent
// to longest ago go first, and one that is paused waits.
func TestTeamsTakeTurnsWithTheirWebhooks(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		many, owner := newTeam(t, db)
		few, other := newTeam(t, db)
		for range webhooks.TeamAtOnce + 2 {
			hook(t, db, many, owner)
		}
		one := hook(t, db, few, other)
		submit(t, db, many)
		submit(t, db, few)
		claimed := map[ids.Team][]webhooks.Webhook{}
		for w, _ := due(t, db, august); w.ID != ""; w, _ = due(t, db, august) {
			claimed[w.Team] = append(claimed[w.Team], w)
		}
		if len(claimed[many]) != webhooks.TeamAtOnce || len(claimed[few]) != 1 || claimed[few][0].ID != one.ID {
			t.Fatalf("%d and %d are sent to at once", len(claimed[many]), len(claimed[few]))
		}
		first := claimed[many][0]
		must(t, db.ReleaseWebhook(ctx, first.ID, august.Add(time.Minute), august))
		next, _ := due(t, db, august)
		if next.Team != many || slices.ContainsFunc(claimed[many], func(w webhooks.Webhook) bool { return w.ID == next.ID }) {
			t.Errorf("%s, and not one that was not sent to yet", next.ID)
		}
		one.PausedUntil = august.Add(time.Hour)
		must(t, db.SaveWebhook(ctx, one))
		must(t, db.ReleaseWebhook(ctx, one.ID, august.Add(time.Minute), august))
		if w, _ := due(t, db, august.Add(time.Second)); w.Team == few {
			t.Error("one that is paused is sent to")
		}
		must(t, db.ReleaseWebhook(ctx, next.ID, august.Add(time.Minute), august))
		for range 10 {
			if w, _ := due(t, db, august.Add(2*time.Hour)); w.ID == one.ID {
				return
			}
		}
		t.Error("nothing is sent after the pause")
	})
}

func TestAWebhookIsToldOfWhatItWants(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		other, stranger := newTeam(t, db)
		all, some, off, theirs := hook(t, db, team, owner), hook(t, db, team, owner, "run.failed", "run.cancelled"), hook(t, db, team, owner), hook(t, db, other, stranger)
		off.Enabled = false
		must(t, db.SaveWebhook(ctx, off))
		r := started(t, db, team, `{}`)
		must(t, db.EndRun(ctx, r.ID, r.Fence, runs.Ending{Status: lifecycle.Failed}, august))
		for name, tt := range map[string]struct {
			w    webhooks.Webhook
			want string
		}{
			"all": {all, "run.failed run.started run.queued "}, "some": {some, "run.failed "}, "disabled": {off, ""}, "another team's": {theirs, ""},
		} {
			list, err := db.Deliveries(ctx, tt.w.Team, tt.w.ID, "", 10)
			must(t, err)
			var got string
			for _, d := range list {
				got += d.Type + " "
			}
			if got != tt.want {
				t.Errorf("%s: %q, want %q", name, got, tt.want)
			}
		}
		test := webhooks.Delivery{ID: "msg_test", Webhook: some.ID, Team: team, Type: webhooks.TestEvent, Payload: []byte(`{}`), Status: webhooks.Pending, NextAt: august, GiveUpAt: august.Add(time.Hour), CreatedAt: august.Add(time.Hour)}
		must(t, db.InsertDelivery(ctx, test))
		page, err := db.Deliveries(ctx, team, some.ID, "", 1)
		if err != nil || len(page) != 1 || page[0].ID != "msg_test" {
			t.Fatalf("%+v, %v", page, err)
		}
		if page, err = db.Deliveries(ctx, team, some.ID, "msg_test", 10); err != nil || len(page) != 1 || page[0].Type != "run.failed" {
			t.Errorf("%+v, %v", page, err)
		}
		for _, before := range []string{"nothing", page[0].ID} {
			if list, err := db.Deliveries(ctx, team, some.ID, before, 10); err != nil || len(list) != 0 {
				t.Errorf("before %s: %+v, %v", before, list, err)
			}
		}
		// Sent again, it waits for its turn as if it were new; how often it was tried is kept.
		d := page[0]
		attempt(t, db, d, webhooks.Failed, august, "")
		must(t, db.Resend(ctx, team, some.ID, d.ID, august.Add(time.Hour), august.Add(2*time.Hour)))
		if d, err = db.Delivery(ctx, team, some.ID, d.ID); err != nil || d.Status != webhooks.Pending || d.Attempts != 1 || !d.GiveUpAt.Equal(august.Add(2*time.Hour)) {
			t.Errorf("%+v, %v", d, err)
		}
		for what, err := range map[string]error{
			"sending again by another team":    db.Resend(ctx, other, some.ID, d.ID, august, august),
			"sending again of another webhook": db.Resend(ctx, team, all.ID, d.ID, august, august),
			"reading by another team":          second(db.Delivery(ctx, other, some.ID, d.ID)),
			"deleting by another team":         db.DeleteWebhook(ctx, other, some.ID),
			"saving by another team":           db.SaveWebhook(ctx, webhooks.Webhook{ID: some.ID, Team: other}),
		} {
			refused(t, what, err, fault.KindNotFound, "")
		}
		must(t, db.DeleteWebhook(ctx, team, some.ID))
		refused(t, "its messages", second(db.Delivery(ctx, team, some.ID, d.ID)), fault.KindNotFound, "")
		if list, err := db.Webhooks(ctx, team); err != nil || len(list) != 2 || list[0].ID != off.ID {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestATeamHasSoManyWebhooks(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, owner := newTeam(t, db)
		add := func(i int) error {
			return db.InsertWebhook(ctx, webhooks.Webhook{ID: ids.NewWebhook(), Team: team, URL: fmt.Sprint("https://example.org/", i), Enabled: true, CreatedBy: owner, CreatedAt: august, UpdatedAt: august}, 3)
		}
		if done, errs := atOnce(6, add); done != 3 {
			t.Errorf("%d were added: %v", done, errs)
		}
		refused(t, "one more", add(9), fault.KindConflict, "too_many_webhooks")
		must(t, db.CloseTeam(ctx, team, account.Lifetimes{}, august))
		refused(t, "of a team that is being erased", add(9), fault.KindForbidden, "not_a_member")
	})
}
