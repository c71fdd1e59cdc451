package webhooks_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/webhooks"
	"github.com/millrace/millrace/internal/runs/webhooks/templates"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

// receiver is somebody who gets messages, and answers as it is told.
type receiver struct {
	mu     sync.Mutex
	got    []message
	answer func(m message) (int, error)
}

type message struct {
	url, id, timestamp, signature, body string
}

func (r *receiver) Post(_ context.Context, url string, h map[string]string, body []byte) (int, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := message{url, h["webhook-id"], h["webhook-timestamp"], h["webhook-signature"], string(body)}
	r.got = append(r.got, m)
	if r.answer == nil {
		return 200, "thanks", nil
	}
	status, err := r.answer(m)
	return status, "hm", err
}

func (r *receiver) types() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for _, m := range r.got {
		var body struct{ Type string }
		_ = json.Unmarshal([]byte(m.body), &body)
		list = append(list, body.Type)
	}
	return strings.Join(list, " ")
}

type bench struct {
	*webhooks.Service
	t      *testing.T
	db     *store.DB
	clock  *storetest.Clock
	owner  access.Caller
	to     *receiver
	sender *webhooks.Sender
}

func each(t *testing.T, test func(t *testing.T, b *bench)) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		b := &bench{t: t, db: db, clock: storetest.NewClock(), owner: storetest.Owner(t, db, "ada"), to: &receiver{}}
		b.sender = webhooks.NewSender(db, b.to, "https://here", slog.New(slog.NewTextHandler(t.Output(), nil)), b.clock.Now)
		b.Service = webhooks.NewService(db, db, b.sender, false, b.clock.Now)
		test(t, b)
	})
}

func (b *bench) make(events ...string) webhooks.Webhook {
	b.t.Helper()
	address := "https://example.org/hook"
	w, err := b.Create(b.t.Context(), b.owner, webhooks.Edit{URL: &address, Events: events})
	if err != nil {
		b.t.Fatal(err)
	}
	return w
}

func (b *bench) submit() runs.Run {
	b.t.Helper()
	r := runs.Run{
		ID: ids.NewRun(), Team: b.owner.Team, Workflow: "wf_1", WorkflowName: "align", Revision: 1, Definition: []byte(`{}`), Parameters: []byte(`{}`),
		Inputs: []byte(`{}`), Size: credits.DefaultSize(), Price: 1, Starter: runs.Starter{Type: "user", ID: string(b.owner.User), Name: "ada"}, CreatedAt: b.clock.Now(),
	}
	if err := b.db.SubmitRun(b.t.Context(), r, r.Price, nil); err != nil {
		b.t.Fatal(err)
	}
	return r
}

func (b *bench) cancel(r runs.Run) {
	b.t.Helper()
	if _, err := b.db.CancelRun(b.t.Context(), b.owner.Team, r.ID, r.Starter, b.clock.Now()); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) drain() {
	b.t.Helper()
	for range 1000 {
		if !b.sender.Round(b.t.Context()) {
			return
		}
	}
	b.t.Fatal("it never ends")
}

func TestEventsArriveSignedAndInOrder(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		w := b.make()
		ends := b.make("run.cancelled")
		b.cancel(b.submit())
		b.drain()
		if got := b.to.types(); strings.Count(got, "run.queued") != 1 || strings.Count(got, "run.cancelled") != 2 || strings.Index(got, "run.queued") > strings.LastIndex(got, "run.cancelled") {
			t.Error(got)
		}
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(w.Secret, "whsec_"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range b.to.got {
			if strings.HasSuffix(m.id, string(ends.ID)) {
				continue
			}
			h := hmac.New(sha256.New, key)
			fmt.Fprintf(h, "%s.%s.%s", m.id, m.timestamp, m.body)
			if m.signature != "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil)) {
				t.Errorf("a wrong signature: %+v", m)
			}
		}
		list, more, err := b.Deliveries(t.Context(), b.owner, w.ID, "", 1)
		if err != nil || !more || len(list) != 1 || list[0].Status != webhooks.Delivered || list[0].Answer != "thanks" || list[0].Type != "run.cancelled" {
			t.Errorf("%+v %v %v", list, more, err)
		}
		if rest, more, err := b.Deliveries(t.Context(), b.owner, w.ID, list[0].ID, 10); err != nil || more || len(rest) != 1 || rest[0].Type != "run.queued" {
			t.Errorf("%+v %v %v", rest, more, err)
		}
	})
}

func TestAFailedMessageIsTriedAgainAndHoldsBackItsRunAlone(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		w := b.make()
		first := b.submit()
		fails := true
		b.to.answer = func(m message) (int, error) {
			if fails && strings.Contains(m.body, string(first.ID)) {
				return 500, nil
			}
			return 204, nil
		}
		b.cancel(first)
		b.submit()
		b.drain()
		if got := b.to.types(); got != "run.queued run.queued" {
			t.Fatalf("%s: the end of the first run came before its beginning", got)
		}
		fails = false
		b.clock.Pass(6 * time.Second)
		b.drain()
		if got := b.to.types(); got != "run.queued run.queued run.queued run.cancelled" {
			t.Error(got)
		}
		list, _, err := b.Deliveries(t.Context(), b.owner, w.ID, "", 10)
		if err != nil || len(list) != 3 {
			t.Fatalf("%+v %v", list, err)
		}
		again, err := b.SendAgain(t.Context(), b.owner, w.ID, list[0].ID)
		if err != nil || again.Status != webhooks.Pending {
			t.Errorf("%+v %v", again, err)
		}
		before := len(b.to.got)
		b.drain()
		if len(b.to.got) != before+1 || b.to.got[before].id != list[0].ID {
			t.Errorf("%+v", b.to.got[before:])
		}
	})
}

func TestLaterMessagesWaitWithTheOneThatHoldsThemBack(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		w := b.make()
		fails := true
		b.to.answer = func(message) (int, error) {
			if fails {
				return 500, nil
			}
			return 204, nil
		}
		b.cancel(b.submit())
		b.drain()
		b.clock.Pass(6 * time.Second)
		b.drain() // the next attempt is in half a minute
		list, _, err := b.Deliveries(t.Context(), b.owner, w.ID, "", 10)
		if err != nil || len(list) != 2 {
			t.Fatalf("%+v %v", list, err)
		}
		for _, d := range list {
			if !d.NextAt.Equal(list[0].NextAt) || d.NextAt.Before(b.clock.Now().Add(20*time.Second)) {
				t.Errorf("%s waits until %s, the other until %s", d.Type, d.NextAt, list[0].NextAt)
			}
			if d.Type != "run.queued" {
				continue
			}
			if _, err := b.SendAgain(t.Context(), b.owner, w.ID, d.ID); err != nil {
				t.Fatal(err)
			}
		}
		fails = false
		b.drain()
		if got := b.to.types(); got != "run.queued run.queued run.queued run.cancelled" {
			t.Errorf("%s: the later message went on waiting", got)
		}
	})
}

// What happens to a run while an earlier message waits is not due before it, and
// goes out as soon as that one does.
func TestAMessageWrittenMeanwhileWaitsToo(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		w := b.make()
		fails := true
		b.to.answer = func(message) (int, error) {
			if fails {
				return 500, nil
			}
			return 204, nil
		}
		r := b.submit()
		b.drain()
		b.clock.Pass(6 * time.Second)
		b.drain() // the next attempt is in half a minute
		b.cancel(r)
		other := b.submit() // which waits for nobody
		list, _, err := b.Deliveries(t.Context(), b.owner, w.ID, "", 10)
		if err != nil || len(list) != 3 {
			t.Fatalf("%+v %v", list, err)
		}
		for _, d := range list {
			if waits := d.NextAt.After(b.clock.Now().Add(20 * time.Second)); waits == (d.Run == other.ID) {
				t.Errorf("%s of %s is due at %s", d.Type, d.Run, d.NextAt)
			}
		}
		fails = false
		b.clock.Pass(31 * time.Second)
		b.drain()
		if got := b.to.types(); got != "run.queued run.queued run.queued run.queued run.cancelled" {
			t.Error(got)
		}
	})
}

func TestAMessageThatCannotBeWrittenHoldsNothingBack(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		w := b.make()
		w.Format, w.Template = templates.Custom, `{"a":"`+strings.Repeat("{{runId}}", 2000)+`"}`
		if err := b.db.SaveWebhook(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		b.cancel(b.submit())
		b.drain()
		list, _, err := b.Deliveries(t.Context(), b.owner, w.ID, "", 10)
		if err != nil || len(list) != 2 || len(b.to.got) != 0 {
			t.Fatalf("%+v %v", list, err)
		}
		for _, d := range list {
			if d.Status != webhooks.Failed || d.Attempts != 1 || !strings.Contains(d.Error, "64 KB") {
				t.Errorf("%+v", d)
			}
		}
	})
}

func TestAMessageIsGivenUpAfterADay(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		w := b.make()
		b.to.answer = func(message) (int, error) { return 0, errors.New("the address cannot be reached") }
		b.submit()
		for range 40 {
			b.drain()
			b.clock.Pass(time.Hour)
		}
		list, _, err := b.Deliveries(t.Context(), b.owner, w.ID, "", 10)
		if err != nil || len(list) != 1 || list[0].Status != webhooks.Failed || list[0].Attempts < 8 || list[0].Error != "the address cannot be reached" {
			t.Errorf("%+v %v", list, err)
		}
	})
}

func TestAnAddressThatIsGoneIsSwitchedOff(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		w := b.make()
		b.to.answer = func(message) (int, error) { return 410, nil }
		b.submit()
		b.drain()
		b.submit()
		b.drain()
		got, err := b.db.Webhook(t.Context(), b.owner.Team, w.ID)
		if err != nil || got.Enabled || got.Why == "" || len(b.to.got) != 1 {
			t.Errorf("%+v %v, %d messages", got, err, len(b.to.got))
		}
	})
}

// Several servers send at once: each message goes out once, each run in order.
func TestServersDoNotGetInEachOthersWay(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.make()
		for range 20 {
			b.cancel(b.submit())
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 60 {
					b.sender.Round(t.Context())
				}
			})
		}
		wg.Wait()
		b.drain()
		seen, begun := map[string]int{}, map[string]bool{}
		for _, m := range b.to.got {
			seen[m.id]++
			var body struct {
				Type string
				Data struct{ RunID string }
			}
			if err := json.Unmarshal([]byte(m.body), &body); err != nil {
				t.Fatal(err)
			}
			if body.Type == "run.cancelled" && !begun[body.Data.RunID] {
				t.Errorf("%s ended before it began", body.Data.RunID)
			}
			begun[body.Data.RunID] = true
		}
		if len(seen) != 40 || len(b.to.got) != 40 {
			t.Errorf("%d messages of %d", len(b.to.got), len(seen))
		}
	})
}

func TestWhoManagesWebhooksAndWhichAddressesAreTaken(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		w := b.make()
		eve, mia := storetest.Join(t, b.db, b.owner, "eve", access.Member), storetest.Owner(t, b.db, "mia")
		_, err := b.List(ctx, eve)
		storetest.Refused(t, "a member", err, fault.KindForbidden)
		_, err = b.Test(ctx, mia, w.ID)
		storetest.Refused(t, "another team", err, fault.KindNotFound)
		storetest.Refused(t, "another team", b.Delete(ctx, mia, w.ID), fault.KindNotFound)
		for _, bad := range []string{"", "x", "http://example.org", "ftp://example.org", "https://", "https://u:p@example.org", "https://example.org/#x", "https://example.org/ x", "https://e/" + strings.Repeat("x", 2000)} {
			_, err := b.Create(ctx, b.owner, webhooks.Edit{URL: &bad})
			storetest.Refused(t, bad, err, fault.KindInvalid)
		}
		good := "https://example.org"
		_, err = b.Create(ctx, b.owner, webhooks.Edit{URL: &good, Events: []string{"nonsense"}})
		storetest.Refused(t, "an unknown event", err, fault.KindInvalid)
		for range webhooks.Most - 1 {
			b.make()
		}
		_, err = b.Create(ctx, b.owner, webhooks.Edit{URL: &good})
		storetest.Refused(t, "one too many", err, fault.KindConflict)
		if d, err := b.Test(ctx, b.owner, w.ID); err != nil || d.Status != webhooks.Delivered || d.Type != webhooks.TestEvent {
			t.Errorf("%+v %v", d, err)
		}
	})
}

// A process that is stopped while it sends, and goes on when another has taken
// its place, neither takes back what that one did nor lets a third one in.
func TestASenderThatWasStoppedChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		w := b.make("run.queued")
		b.submit()
		b.submit()
		b.to.answer = func(message) (int, error) { // the first sender sleeps here
			b.clock.Pass(2 * time.Minute)
			_, list, err := b.db.ClaimDeliveries(ctx, b.clock.Now(), b.clock.Now().Add(time.Minute), 10)
			if err != nil || len(list) != 2 {
				t.Fatalf("%d messages for the second, %v", len(list), err)
			}
			d := list[0]
			d.Attempts, d.Status, d.DeliveredAt = 1, webhooks.Delivered, b.clock.Now()
			if err := b.db.Attempted(ctx, d, w, ""); err != nil {
				t.Fatal(err)
			}
			return 410, nil
		}
		b.sender.Round(ctx)
		b.to.answer = nil
		if b.sender.Round(ctx) {
			t.Error("a third sends while the second does")
		}
		list, _, err := b.Deliveries(ctx, b.owner, w.ID, "", 10)
		if err != nil || len(list) != 2 {
			t.Fatal(len(list), err)
		}
		for _, d := range list {
			if d.Status == webhooks.Failed {
				t.Errorf("%+v", d)
			}
		}
		if got, err := b.List(ctx, b.owner); err != nil || len(got) != 1 || !got[0].Enabled {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// The address of a chat is all that is needed to write there.
func TestTheAddressOfAChatIsNotShown(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		address, slack, standard := "https://hooks.example.org/services/T0/B0/longsecret?a=b", templates.Slack, templates.Standard
		w, err := b.Create(t.Context(), b.owner, webhooks.Edit{URL: &address, Format: &slack})
		if err != nil || w.ShownURL() != "https://hooks.example.org/…?a=b" {
			t.Errorf("%s %v", w.ShownURL(), err)
		}
		_, err = b.Change(t.Context(), b.owner, w.ID, webhooks.Edit{Format: &standard})
		storetest.Refused(t, "shown by another format", err, fault.KindInvalid)
		shown := w.ShownURL()
		_, err = b.Change(t.Context(), b.owner, w.ID, webhooks.Edit{Format: &standard, URL: &shown})
		storetest.Refused(t, "shown by another format, given as it was shown", err, fault.KindInvalid)
		if w, err = b.Change(t.Context(), b.owner, w.ID, webhooks.Edit{URL: &shown}); err != nil || w.URL != address {
			t.Errorf("given as it was shown: %s %v", w.URL, err)
		}
		if w, err = b.Change(t.Context(), b.owner, w.ID, webhooks.Edit{Format: &standard, URL: &address}); err != nil || w.ShownURL() != address {
			t.Errorf("%s %v", w.ShownURL(), err)
		}
		w.Format = templates.Slack
		for _, short := range []string{"", "https://x", "https://x/", "https://x/ab", "https://x/abcde", "https://x/éééé"} {
			if w.URL = short; utf8.RuneCountInString(w.ShownURL()) > len("https://x/")+5 || !utf8.ValidString(w.ShownURL()) {
				t.Errorf("%s: %s", short, w.ShownURL())
			}
		}
	})
}

// What is signed and posted is the message as the chat takes it.
func TestAChatGetsItsOwnMessages(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		w := b.make("run.cancelled")
		slack, custom, own := templates.Slack, templates.Custom, `{"said": "{{workflowName}} {{status}}"}`
		if _, err := b.Change(ctx, b.owner, w.ID, webhooks.Edit{Format: &custom}); !fault.Is(err, fault.KindInvalid) {
			t.Errorf("a custom format without a template: %v", err)
		}
		if _, err := b.Change(ctx, b.owner, w.ID, webhooks.Edit{Format: &slack}); err != nil {
			t.Fatal(err)
		}
		b.cancel(b.submit())
		b.drain()
		if _, err := b.Change(ctx, b.owner, w.ID, webhooks.Edit{Format: &custom, Template: &own}); err != nil {
			t.Fatal(err)
		}
		b.cancel(b.submit())
		b.drain()
		if len(b.to.got) != 2 || !strings.Contains(b.to.got[0].body, `https://here/runs/run_`) || b.to.got[1].body != `{"said":"align cancelled"}` {
			t.Fatalf("%+v", b.to.got)
		}
		key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(w.Secret, "whsec_"))
		for _, m := range b.to.got {
			h := hmac.New(sha256.New, key)
			fmt.Fprintf(h, "%s.%s.%s", m.id, m.timestamp, m.body)
			if m.signature != "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil)) {
				t.Errorf("the signature of %s is not of what was posted", m.id)
			}
		}
		body, used, err := b.Preview(b.owner, templates.Discord, "")
		if err != nil || used != templates.Recipe(templates.Discord) || !strings.Contains(string(body), "Trim and align") {
			t.Errorf("%s, %v", body, err)
		}
		member := b.owner
		member.Role = access.Member
		_, _, err = b.Preview(member, templates.Slack, "")
		storetest.Refused(t, "a member looks", err, fault.KindForbidden)
	})
}
