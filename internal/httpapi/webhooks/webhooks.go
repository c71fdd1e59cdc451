package webhooks

import (
	"encoding/json"
	"net/http"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs/webhooks"
	"github.com/millrace/millrace/internal/runs/webhooks/templates"
)

// WebhookOut is a webhook, without its secret, as the API shows it.
func WebhookOut(w webhooks.Webhook) api.Webhook {
	out := api.Webhook{
		ID: string(w.ID), URL: w.ShownURL(), Events: append([]string{}, w.Events...), Enabled: w.Enabled, DisabledReason: kernel.OrNull(w.Why),
		Format: api.WebhookFormat(w.Format), Template: kernel.OrNull(w.Template),
		CreatedBy: api.Person{ID: string(w.CreatedBy), Name: w.CreatedByName}, CreatedAt: api.At(w.CreatedAt), UpdatedAt: api.At(w.UpdatedAt),
	}
	if message := w.Paused(); message != "" {
		out.Paused = &api.WebhookPause{Code: "webhook_slow", Message: message, Until: api.At(w.PausedUntil)}
	}
	return out
}

func deliveryOut(d webhooks.Delivery) api.WebhookDelivery {
	out := api.WebhookDelivery{
		ID: d.ID, WebhookID: string(d.Webhook), RunID: kernel.OrNull(string(d.Run)), Type: d.Type, Status: string(d.Status), Attempts: d.Attempts,
		CreatedAt: api.At(d.CreatedAt), DeliveredAt: kernel.TimeOrNull(d.DeliveredAt), ResponseStatus: kernel.NumberOrNull(d.ResponseStatus),
		ResponseBody: kernel.OrNull(d.Answer), Error: kernel.OrNull(d.Error), Payload: json.RawMessage(d.Payload),
	}
	if d.Status == webhooks.Pending {
		out.NextAttemptAt = kernel.TimeOrNull(d.NextAt)
	}
	return out
}

func id(x *kernel.Exchange) ids.Webhook { return ids.Webhook(x.Request.PathValue("id")) }

// ListWebhooks answers GET /api/webhooks.
func (a *API) ListWebhooks(x *kernel.Exchange) (kernel.Answer, error) {
	list, err := a.Webhooks.List(x.Context(), x.Caller)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.Webhook, len(list))
	for i, w := range list {
		out[i] = WebhookOut(w)
	}
	return kernel.OK(out)
}

// CreateWebhook answers POST /api/webhooks.
func (a *API) CreateWebhook(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.NewWebhook](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	w, err := a.Webhooks.Create(x.Context(), x.Caller, webhooks.Edit{
		URL: &in.URL, Events: kernel.Listed(in.Events), Format: formatIn(in.Format), Template: in.Template, Enabled: in.Enabled,
	})
	o := WebhookOut(w)
	return kernel.Answer{Status: http.StatusCreated, Data: api.CreatedWebhook{
		ID: o.ID, URL: o.URL, Events: o.Events, Enabled: o.Enabled, DisabledReason: o.DisabledReason, Paused: o.Paused, CreatedBy: o.CreatedBy, CreatedAt: o.CreatedAt,
		UpdatedAt: o.UpdatedAt, Format: o.Format, Template: o.Template, Secret: w.Secret,
	}}, err
}

// ChangeWebhook answers PATCH /api/webhooks/{id}.
func (a *API) ChangeWebhook(x *kernel.Exchange) (kernel.Answer, error) {
	if _, err := a.Webhooks.Webhook(x.Context(), x.Caller, id(x)); err != nil {
		return kernel.Answer{}, err
	}
	in, err := kernel.Decode[api.WebhookEdit](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	w, err := a.Webhooks.Change(x.Context(), x.Caller, id(x), webhooks.Edit{
		URL: in.URL, Events: kernel.Listed(in.Events), Format: formatIn(in.Format), Template: in.Template, Enabled: in.Enabled,
	})
	return kernel.Answer{Data: WebhookOut(w)}, err
}

func formatIn(f *api.WebhookFormat) *templates.Format {
	if f == nil {
		return nil
	}
	return new(templates.Format(*f))
}

// PreviewWebhook answers POST /api/webhooks/preview.
func (a *API) PreviewWebhook(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.WebhookPreviewRequest](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	body, used, err := a.Webhooks.Preview(x.Caller, templates.Format(in.Format), kernel.OrEmpty(in.Template))
	return kernel.Answer{Data: api.WebhookPreview{Body: json.RawMessage(body), Template: kernel.OrNull(used)}}, err
}

// DeleteWebhook answers DELETE /api/webhooks/{id}.
func (a *API) DeleteWebhook(x *kernel.Exchange) (kernel.Answer, error) {
	err := a.Webhooks.Delete(x.Context(), x.Caller, id(x))
	return kernel.Answer{Data: api.Deleted{Deleted: true, ID: string(id(x))}}, err
}

const deliveriesMost = 100

// ListDeliveries answers GET /api/webhooks/{id}/deliveries.
func (a *API) ListDeliveries(x *kernel.Exchange) (kernel.Answer, error) {
	limit, err := kernel.Number(x.Request, "limit", 1, deliveriesMost, deliveriesMost)
	if err != nil {
		return kernel.Answer{}, err
	}
	before, err := kernel.Cursor(x.Request)
	if err != nil {
		return kernel.Answer{}, err
	}
	list, more, err := a.Webhooks.Deliveries(x.Context(), x.Caller, id(x), before, limit)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := make([]api.WebhookDelivery, len(list))
	for i, d := range list {
		out[i] = deliveryOut(d)
	}
	page := &api.Page{HasMore: more}
	if more {
		page.NextCursor = kernel.AsCursor(list[limit-1].ID)
	}
	return kernel.Answer{Data: out, Page: page}, nil
}

// TestWebhook answers POST /api/webhooks/{id}/test.
func (a *API) TestWebhook(x *kernel.Exchange) (kernel.Answer, error) {
	d, err := a.Webhooks.Test(x.Context(), x.Caller, id(x))
	if err != nil {
		return kernel.Answer{}, err
	}
	return kernel.Answer{Data: deliveryOut(d)}, nil
}

// SendAgain answers POST /api/webhooks/{id}/deliveries/{deliveryId}/send.
func (a *API) SendAgain(x *kernel.Exchange) (kernel.Answer, error) {
	delivery := x.Request.PathValue("deliveryId")
	if !kernel.Printable(delivery) {
		return kernel.Answer{}, fault.NotFound("no such delivery")
	}
	d, err := a.Webhooks.SendAgain(x.Context(), x.Caller, id(x), delivery)
	if err != nil {
		return kernel.Answer{}, err
	}
	return kernel.Answer{Data: deliveryOut(d)}, nil
}
