// Package notifications speaks HTTP for what people are told.
package notifications

import (
	"strconv"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/notifications"
)

// API is the part of the HTTP API that this room serves.
type API struct {
	Notifications *notifications.Service
}

// NotificationOut is a notification as the API shows it.
func NotificationOut(n notifications.Notification) api.Notification {
	return api.Notification{
		ID: n.ID, Topic: api.NotificationTopic(n.Topic), Type: n.Type, Title: n.Title, Text: n.Text, Path: n.Path,
		CreatedAt: api.At(n.CreatedAt), ReadAt: kernel.TimeOrNull(n.ReadAt),
	}
}

const (
	inboxDefault = 50
	inboxMost    = 100
)

// List answers GET /api/notifications.
func (a *API) List(x *kernel.Exchange) (kernel.Answer, error) {
	limit, err := kernel.Number(x.Request, "limit", 1, inboxMost, inboxDefault)
	if err != nil {
		return kernel.Answer{}, err
	}
	before, err := kernel.Cursor(x.Request)
	if err != nil {
		return kernel.Answer{}, err
	}
	unread := x.Request.URL.Query().Get("unread")
	if unread != "" && unread != "true" && unread != "false" {
		return kernel.Answer{}, kernel.Wrong("unread", "must be true or false")
	}
	list, count, more, err := a.Notifications.Inbox(x.Context(), x.Caller, unread == "true", before, limit)
	if err != nil {
		return kernel.Answer{}, err
	}
	out := api.Inbox{Unread: count, Notifications: make([]api.Notification, len(list))}
	for i, n := range list {
		out.Notifications[i] = NotificationOut(n)
	}
	page := &api.Page{HasMore: more}
	if more {
		page.NextCursor = kernel.AsCursor(list[limit-1].ID)
	}
	return kernel.Answer{Data: out, Page: page}, nil
}

// MarkRead answers PUT /api/notifications.
func (a *API) MarkRead(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.MarkRead](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if in.Ids != nil && len(*in.Ids) == 0 {
		return kernel.Answer{}, kernel.Wrong("ids", "must name at least one, or be left out")
	}
	list := kernel.Listed(in.Ids)
	for i, id := range list {
		if !kernel.Printable(id) {
			return kernel.Answer{}, kernel.Wrong("ids["+strconv.Itoa(i)+"]", "is no id")
		}
	}
	n, err := a.Notifications.MarkRead(x.Context(), x.Caller, list, in.All != nil && *in.All)
	return kernel.Answer{Data: api.UnreadCount{Unread: n}}, err
}

// Choices answers GET /api/me/notifications.
func (a *API) Choices(x *kernel.Exchange) (kernel.Answer, error) {
	list, err := a.Notifications.Choices(x.Context(), x.Caller)
	return kernel.Answer{Data: choicesOut(list)}, err
}

// Choose answers PUT /api/me/notifications.
func (a *API) Choose(x *kernel.Exchange) (kernel.Answer, error) {
	in, err := kernel.Decode[api.NotificationChoices](x)
	if err != nil {
		return kernel.Answer{}, err
	}
	if in.Topics == nil {
		return kernel.Answer{}, kernel.Wrong("topics", "is missing")
	}
	list := make([]notifications.Choice, len(in.Topics))
	for i, c := range in.Topics {
		list[i] = notifications.Choice{Topic: notifications.Topic(c.Topic), App: c.App, Mail: c.Mail}
	}
	list, err = a.Notifications.Choose(x.Context(), x.Caller, list)
	return kernel.Answer{Data: choicesOut(list)}, err
}

func choicesOut(list []notifications.Choice) api.NotificationChoices {
	out := api.NotificationChoices{Topics: make([]api.NotificationChoice, len(list))}
	for i, c := range list {
		out.Topics[i] = api.NotificationChoice{Topic: api.NotificationTopic(c.Topic), App: c.App, Mail: c.Mail}
	}
	return out
}
