// Package webhooks tells other programs what happens to a team's runs: each
// event becomes a message, in the transaction of the event, and is posted to the
// addresses that the team gave, signed as Standard Webhooks.
package webhooks

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/webhooks/templates"
)

// TestEvent is the type of a message that somebody asked for to try an address.
const TestEvent = "webhook.test"

// Events are the types that a webhook can be told of.
func Events() []string {
	return []string{"run.queued", "run.started", "run.completed", "run.failed", "run.cancelled", "run.interrupted"}
}

// Webhook is an address that is told of events.
type Webhook struct {
	ID            ids.Webhook
	Team          ids.Team
	URL           string
	Events        []string // none: all
	Format        templates.Format
	Template      string // empty: as the format has it
	Enabled       bool
	Why           string    // it is not, if that is our doing
	Timeouts      int       // attempts in a row that were not answered in time
	PausedUntil   time.Time // nothing is sent before, since it did not answer in time
	Secret        string    // that signs; read where something is sent
	CreatedBy     ids.User
	CreatedByName string
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// ShownURL is the address as people see it: of that of a chat, which is all that is
// needed to write there, only where it is.
func (w Webhook) ShownURL() string {
	u, err := url.Parse(w.URL)
	if w.Format == templates.Standard || w.URL == "" || err != nil {
		return w.URL
	}
	end := []rune(strings.TrimPrefix(strings.TrimPrefix(w.URL, u.Scheme+"://"+u.Host), "/"))
	return u.Scheme + "://" + u.Host + "/…" + string(end[max(len(end)-4, 0):])
}

// endPause ends a pause whose time is over: the next message tries whether the address
// answers again.
func (w *Webhook) endPause(now time.Time) {
	if !w.PausedUntil.After(now) {
		w.PausedUntil = time.Time{}
	}
}

// Paused is why nothing is sent until PausedUntil; empty: it is not paused.
func (w Webhook) Paused() string {
	if w.PausedUntil.IsZero() {
		return ""
	}
	return fmt.Sprintf("The server did not respond within %d seconds, %d times in a row. Messages wait until it does.", attemptTime/time.Second, w.Timeouts)
}

// Status is what became of a delivery.
type Status string

// The states of a delivery.
const (
	Pending   Status = "pending"
	Delivered Status = "delivered"
	Failed    Status = "failed"
)

// Delivery is one message to one webhook.
type Delivery struct {
	ID             string
	Webhook        ids.Webhook
	Team           ids.Team
	Run            ids.Run // empty: of no run
	Seq            int64   // of the event among those of its run
	Type           string
	Payload        []byte
	Status         Status
	Attempts       int
	NextAt         time.Time
	GiveUpAt       time.Time
	CreatedAt      time.Time
	DeliveredAt    time.Time
	ResponseStatus int    // of the last attempt; 0: there was no answer
	Answer         string // the beginning of it
	Error          string
}

// Store keeps webhooks.
type Store interface {
	InsertWebhook(ctx context.Context, w Webhook, most int) error
	Webhooks(ctx context.Context, team ids.Team) ([]Webhook, error)
	Webhook(ctx context.Context, team ids.Team, id ids.Webhook) (Webhook, error)
	SaveWebhook(ctx context.Context, w Webhook) error
	DeleteWebhook(ctx context.Context, team ids.Team, id ids.Webhook) error
}

// DeliveryStore keeps what was sent to them.
type DeliveryStore interface {
	// Deliveries are a webhook's before one of them, newest first.
	Deliveries(ctx context.Context, team ids.Team, id ids.Webhook, before string, limit int) ([]Delivery, error)
	Delivery(ctx context.Context, team ids.Team, id ids.Webhook, delivery string) (Delivery, error)
	InsertDelivery(ctx context.Context, d Delivery) error
	// Resend makes a delivery wait for its turn again.
	Resend(ctx context.Context, team ids.Team, id ids.Webhook, delivery string, now, giveUp time.Time) error
}

// Service answers for a team's webhooks.
type Service struct {
	store     Store
	sent      DeliveryStore
	sender    *Sender
	plainHTTP bool
	now       func() time.Time
}

// NewService makes the room. With plainHTTP an address may be one of http.
func NewService(store Store, sent DeliveryStore, sender *Sender, plainHTTP bool, now func() time.Time) *Service {
	return &Service{store, sent, sender, plainHTTP, now}
}

// Most is how many webhooks a team has.
const Most = 20

const maxURL = 2000

// Edit is what a webhook is to be; nil stays as it is.
type Edit struct {
	URL      *string
	Events   []string
	Format   *templates.Format
	Template *string
	Enabled  *bool
}

// List are the team's webhooks, newest first.
func (s *Service) List(ctx context.Context, caller access.Caller) ([]Webhook, error) {
	if err := caller.Must(access.ManageWebhooks); err != nil {
		return nil, err
	}
	list, err := s.store.Webhooks(ctx, caller.Team)
	for i := range list {
		list[i].endPause(s.now())
	}
	return list, err
}

// Create makes a webhook. Its secret is shown this once.
func (s *Service) Create(ctx context.Context, caller access.Caller, e Edit) (Webhook, error) {
	if err := caller.Must(access.ManageWebhooks); err != nil {
		return Webhook{}, err
	}
	now := s.now()
	w := Webhook{ID: ids.NewWebhook(), Team: caller.Team, Enabled: true, Format: templates.Standard, Secret: newSecret(), CreatedBy: caller.User, CreatedByName: caller.Name, CreatedAt: now}
	if err := s.apply(&w, e); err != nil {
		return Webhook{}, err
	}
	return w, s.store.InsertWebhook(ctx, w, Most)
}

// Webhook is one of the team's.
func (s *Service) Webhook(ctx context.Context, caller access.Caller, id ids.Webhook) (Webhook, error) {
	if err := caller.Must(access.ManageWebhooks); err != nil {
		return Webhook{}, err
	}
	w, err := s.store.Webhook(ctx, caller.Team, id)
	w.endPause(s.now())
	return w, err
}

// Change changes a webhook.
func (s *Service) Change(ctx context.Context, caller access.Caller, id ids.Webhook, e Edit) (Webhook, error) {
	w, err := s.Webhook(ctx, caller, id)
	if err != nil {
		return Webhook{}, err
	}
	if err := s.apply(&w, e); err != nil {
		return Webhook{}, err
	}
	return w, s.store.SaveWebhook(ctx, w)
}

func (s *Service) apply(w *Webhook, e Edit) error {
	if e.URL != nil && *e.URL == w.ShownURL() {
		e.URL = nil // it is as it was shown, perhaps in part
	}
	if e.URL != nil {
		w.URL = *e.URL
	}
	if e.Events != nil {
		w.Events = slices.Compact(slices.Sorted(slices.Values(e.Events)))
	}
	if e.Enabled != nil {
		w.Enabled, w.Why, w.Timeouts, w.PausedUntil = *e.Enabled, "", 0, time.Time{}
	}
	var wrong []fault.Detail
	if e.Format != nil {
		if *e.Format == templates.Standard && w.Format != templates.Standard && e.URL == nil && w.URL != "" {
			wrong = append(wrong, fault.Detail{Path: "url", Message: "must be given again with this format, which does not hide it"})
		}
		if *e.Format != w.Format {
			w.Template = "" // it was for another
		}
		w.Format = *e.Format
	}
	if e.Template != nil {
		w.Template = strings.TrimSpace(*e.Template)
	}
	w.UpdatedAt = s.now()
	if field, message := templates.Check(w.Format, w.Template); field != "" {
		wrong = append(wrong, fault.Detail{Path: field, Message: message})
	}
	if message := s.wrongURL(w.URL); message != "" {
		wrong = append(wrong, fault.Detail{Path: "url", Message: message})
	}
	for i, name := range e.Events {
		if !slices.Contains(Events(), name) {
			wrong = append(wrong, fault.Detail{Path: fmt.Sprintf("events[%d]", i), Message: "is none of " + strings.Join(Events(), ", ")})
		}
	}
	if len(wrong) > 0 {
		return fault.Problems(wrong, "%s %s", wrong[0].Path, wrong[0].Message)
	}
	return nil
}

func (s *Service) wrongURL(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || len(text) > maxURL || u.Scheme != "https" && u.Scheme != "http" || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '…' }):
		return "must be an address such as https://example.org/hook"
	case u.Scheme == "http" && !s.plainHTTP:
		return "must be https, because messages are not sent in clear: the server's operator can allow http with --fetch-allow-private"
	case u.User != nil || u.Fragment != "":
		return "must have no user, password or fragment"
	}
	return ""
}

// Preview is how a message about a run that failed would be written, and by which
// template.
func (s *Service) Preview(caller access.Caller, f templates.Format, template string) (body []byte, used string, err error) {
	if err := caller.Must(access.ManageWebhooks); err != nil {
		return nil, "", err
	}
	template = strings.TrimSpace(template)
	if field, message := templates.Check(f, template); field != "" {
		return nil, "", fault.Problems([]fault.Detail{{Path: field, Message: message}}, "%s %s", field, message)
	}
	now := s.now()
	r := runs.Run{
		ID: "run_0199a4", Workflow: "wf_0199a2", WorkflowName: "Trim and align", Revision: 7, Number: 12, Label: runs.Label{Tags: []string{"pilot"}}, Status: lifecycle.Failed,
		ErrorCode: "node_failed", ErrorMessage: "Step align exited with status 3", Starter: runs.Starter{Type: "user", ID: string(caller.User), Name: caller.Name},
		CreditsUsed: credits.Credit / 8, CreatedAt: now.Add(-time.Hour), StartedAt: now.Add(-time.Hour), FinishedAt: now,
	}
	body, err = templates.Render(f, template, s.sender.base, RunPayload(r, lifecycle.RunFailed, now))
	if err != nil {
		return nil, "", fault.Problems([]fault.Detail{{Path: "template", Message: err.Error()}}, "template: %s", err)
	}
	return body, cmp.Or(template, templates.Recipe(f)), nil
}

// Delete ends a webhook, with what was to be sent to it.
func (s *Service) Delete(ctx context.Context, caller access.Caller, id ids.Webhook) error {
	if err := caller.Must(access.ManageWebhooks); err != nil {
		return err
	}
	return s.store.DeleteWebhook(ctx, caller.Team, id)
}

// Deliveries lists what was sent to a webhook before one of them, newest first.
func (s *Service) Deliveries(ctx context.Context, caller access.Caller, id ids.Webhook, before string, limit int) (list []Delivery, more bool, err error) {
	if err := caller.Must(access.ManageWebhooks); err != nil {
		return nil, false, err
	}
	w, err := s.store.Webhook(ctx, caller.Team, id)
	if err != nil {
		return nil, false, err
	}
	list, err = s.sent.Deliveries(ctx, caller.Team, id, before, limit+1)
	for i := range list {
		if d := &list[i]; d.Status == Pending && d.NextAt.Before(w.PausedUntil) {
			d.NextAt = w.PausedUntil
		}
	}
	if len(list) > limit {
		return list[:limit], true, err
	}
	return list, false, err
}

// Test sends a message at once, and says what became of it.
func (s *Service) Test(ctx context.Context, caller access.Caller, id ids.Webhook) (Delivery, error) {
	if err := caller.Must(access.ManageWebhooks); err != nil {
		return Delivery{}, err
	}
	w, err := s.store.Webhook(ctx, caller.Team, id)
	if err != nil {
		return Delivery{}, err
	}
	now := s.now()
	d := Delivery{
		ID: ids.NewMessage(), Webhook: id, Team: caller.Team, Type: TestEvent, Status: Pending, CreatedAt: now, NextAt: now.Add(lease), GiveUpAt: now,
		Payload: payload(TestEvent, now, map[string]any{"message": "This is a test."}),
	}
	if err := s.sent.InsertDelivery(ctx, d); err != nil {
		return Delivery{}, err
	}
	if err := s.sender.send(ctx, &w, d); err != nil {
		return Delivery{}, err
	}
	return s.sent.Delivery(ctx, caller.Team, id, d.ID)
}

// SendAgain sends a message once more, under the same id.
func (s *Service) SendAgain(ctx context.Context, caller access.Caller, id ids.Webhook, delivery string) (Delivery, error) {
	if err := caller.Must(access.ManageWebhooks); err != nil {
		return Delivery{}, err
	}
	if err := s.sent.Resend(ctx, caller.Team, id, delivery, s.now(), s.now().Add(Patience)); err != nil {
		return Delivery{}, err
	}
	s.sender.Wake()
	return s.sent.Delivery(ctx, caller.Team, id, delivery)
}

// Patience is how long a message is tried.
const Patience = 24 * time.Hour

const secretPrefix = "whsec_"

func newSecret() string {
	key := make([]byte, 32)
	rand.Read(key)
	return secretPrefix + base64.StdEncoding.EncodeToString(key)
}

// headers are those of Standard Webhooks.
func headers(w Webhook, id string, body []byte, now time.Time) (map[string]string, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(w.Secret, secretPrefix))
	if err != nil {
		return nil, err
	}
	at := strconv.FormatInt(now.Unix(), 10)
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "%s.%s.%s", id, at, body)
	return map[string]string{
		"Content-Type": "application/json", "User-Agent": "Millrace-Webhooks", "webhook-id": id, "webhook-timestamp": at,
		"webhook-signature": "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil)),
	}, nil
}

func payload(kind string, at time.Time, data map[string]any) []byte {
	text, err := json.Marshal(map[string]any{"type": kind, "timestamp": stamp(at), "data": data})
	if err != nil {
		panic(err) // text and numbers only
	}
	return text
}

func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// RunPayload is what is told of a run, as it was when the event happened.
func RunPayload(r runs.Run, kind lifecycle.EventType, at time.Time) []byte {
	orNull := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	message := r.ErrorMessage
	if r.Status == lifecycle.Completed {
		message = ""
	}
	return payload(string(kind), at, map[string]any{
		"runId": r.ID, "workflowId": r.Workflow, "workflowName": r.WorkflowName, "workflowRevision": r.Revision, "number": r.Number, "name": orNull(r.Name),
		"tags": append([]string{}, r.Tags...), "status": r.Status, "errorCode": orNull(string(r.ErrorCode)), "errorMessage": orNull(message),
		"startedBy":   map[string]any{"type": r.Starter.Type, "id": r.Starter.ID, "name": r.Starter.Name},
		"creditsUsed": r.CreditsUsed.Float(), "createdAt": stamp(r.CreatedAt), "startedAt": stamp(r.StartedAt), "finishedAt": stamp(r.FinishedAt),
	})
}
