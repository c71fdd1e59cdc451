package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type webhooksCommand struct {
	List       webhooksList       `cmd:"" default:"withargs" aliases:"ls" help:"List the team's webhooks."`
	Create     webhooksCreate     `cmd:"" help:"Create a webhook: send HTTP requests when runs start or finish."`
	Preview    webhooksPreview    `cmd:"" help:"Preview a message to a chat."`
	Test       webhooksTest       `cmd:"" help:"Send a test message now."`
	Deliveries webhooksDeliveries `cmd:"" help:"List a webhook's deliveries."`
	Resend     webhooksResend     `cmd:"" help:"Send a message again."`
	Delete     webhooksDelete     `cmd:"" aliases:"rm" help:"Delete a webhook."`
}

type webhooksList struct {
	session.Flags `embed:""`
}

// Run shows where what is sent.
func (c *webhooksList) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.ListWebhooksWithResponse(s.Ctx, nil)
	if err != nil {
		return s.Explain(err)
	}
	list := r.JSON200.Data
	return s.Emit(list, func() {
		rows := [][]string{{"ID", "URL", "EVENTS", "ENABLED"}}
		for _, x := range list {
			events, enabled := "all", "yes"
			if len(x.Events) > 0 {
				events = strings.Join(x.Events, " ")
			}
			switch {
			case !x.Enabled:
				enabled = "no"
			case x.Paused != nil:
				enabled = "paused (" + x.Paused.Code + ")"
			}
			rows = append(rows, []string{x.ID, screen.Clean(x.URL), events, enabled})
		}
		s.Table(rows)
	})
}

type webhooksCreate struct {
	session.Flags `embed:""`
	URL           string   `arg:"" help:"The HTTPS URL."`
	Event         []string `env:"-" sep:"none" placeholder:"TYPE" help:"Only these events, such as run.failed; repeatable."`
	messageFormat `embed:""`
}

// messageFormat is who reads messages, and how they are written.
type messageFormat struct {
	Format   string `env:"-" default:"standard" enum:"standard,slack,teams,mattermost,discord,custom" help:"Format: standard, slack, teams, mattermost, discord or custom."`
	Template string `env:"-" type:"existingfile" help:"JSON file with the message. Placeholders such as {{title}} and {{url}} in its strings are replaced by values."`
}

func (f messageFormat) read() (api.WebhookFormat, *string, error) {
	if f.Template == "" {
		return api.WebhookFormat(f.Format), nil, nil
	}
	text, err := os.ReadFile(filepath.Clean(f.Template))
	return api.WebhookFormat(f.Format), new(string(text)), err
}

type webhooksPreview struct {
	session.Flags `embed:""`
	messageFormat `embed:""`
}

// Run prints the body of a message about a run that failed.
func (c *webhooksPreview) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	format, template, err := c.read()
	if err != nil {
		return err
	}
	r, err := s.API.PreviewWebhookWithResponse(s.Ctx, nil, api.WebhookPreviewRequest{Format: format, Template: template})
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(r.JSON200.Data, func() { s.Say("%s", screen.Clean(string(r.JSON200.Data.Body))) })
}

// Run shows the secret this once, to scripts as well: nobody can ask for it again. The
// id is all that stands on standard output, as other commands take it.
func (c *webhooksCreate) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	format, template, err := c.read()
	if err != nil {
		return err
	}
	in := api.NewWebhook{URL: c.URL, Format: &format, Template: template}
	if len(c.Event) > 0 {
		in.Events = &c.Event
	}
	r, err := s.API.CreateWebhookWithResponse(s.Ctx, nil, in)
	if err != nil {
		return s.Explain(err)
	}
	made := r.JSON201.Data
	return s.Emit(made, func() {
		s.Say("%s", made.ID)
		s.Tell("Messages are signed with %s. It is shown only once.", made.Secret)
	})
}

// oneWebhook names a webhook.
type oneWebhook struct {
	session.Flags `embed:""`
	Webhook       string `arg:"" help:"ID of the webhook, from webhooks list."`
}

type webhooksTest struct{ oneWebhook }

// Run waits for the answer.
func (c *webhooksTest) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.TestWebhookWithResponse(s.Ctx, c.Webhook, nil)
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(r.JSON200.Data, func() { s.Say("%s", outcomeOf(r.JSON200.Data)) })
}

func outcomeOf(d api.WebhookDelivery) string {
	text := d.Status
	if d.ResponseStatus != nil {
		text += ", answered " + strconv.Itoa(*d.ResponseStatus)
	}
	if d.Error != nil {
		text += ": " + screen.Clean(*d.Error)
	}
	return text
}

type webhooksDeliveries struct{ oneWebhook }

// Run lists the newest.
func (c *webhooksDeliveries) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.ListWebhookDeliveriesWithResponse(s.Ctx, c.Webhook, nil)
	if err != nil {
		return s.Explain(err)
	}
	list := r.JSON200.Data
	return s.Emit(list, func() {
		rows := [][]string{{"ID", "TYPE", "OUTCOME", "ATTEMPTS", "AT"}}
		for _, d := range list {
			rows = append(rows, []string{d.ID, d.Type, outcomeOf(d), strconv.Itoa(d.Attempts), s.Ago(d.CreatedAt.Time)})
		}
		s.Table(rows)
	})
}

type webhooksResend struct {
	oneWebhook
	Delivery string `arg:"" help:"ID of the message, from webhooks deliveries."`
}

// Run sends it under the same id, so that receivers can tell.
func (c *webhooksResend) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.ResendWebhookDeliveryWithResponse(s.Ctx, c.Webhook, c.Delivery, nil)
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(r.JSON200.Data, func() { s.Say("sending %s again", c.Delivery) })
}

type webhooksDelete struct{ oneWebhook }

// Run ends it, with what was still to be sent.
func (c *webhooksDelete) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	r, err := s.API.DeleteWebhookWithResponse(s.Ctx, c.Webhook, nil)
	if err != nil {
		return s.Explain(err)
	}
	return s.Emit(r.JSON200.Data, func() { s.Say("deleted %s", c.Webhook) })
}
