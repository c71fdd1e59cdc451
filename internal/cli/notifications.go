package cli

import (
	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/internal/cli/screen"
	"github.com/millrace/millrace/internal/cli/session"
)

type notificationsCommand struct {
	session.Flags `embed:""`
	All           bool `env:"-" help:"Also show read notifications."`
	Read          bool `env:"-" help:"Mark all as read."`
}

// Run lists the newest.
func (c *notificationsCommand) Run(w screen.Console) error {
	s, err := c.Open(w)
	if err != nil {
		return err
	}
	unread := !c.All
	r, err := s.API.ListNotificationsWithResponse(s.Ctx, &api.ListNotificationsParams{Unread: &unread})
	if err != nil {
		return s.Explain(err)
	}
	if c.Read {
		if _, err := s.API.MarkNotificationsWithResponse(s.Ctx, nil, api.MarkRead{All: &c.Read}); err != nil {
			return s.Explain(err)
		}
	}
	inbox := r.JSON200.Data
	return s.Emit(inbox, func() {
		rows := [][]string{{"WHEN", "TYPE", "WHAT", "WHERE"}}
		for _, n := range inbox.Notifications {
			rows = append(rows, []string{n.CreatedAt.Local().Format("2006-01-02 15:04"), n.Type, screen.Clean(n.Title), s.Server + n.Path})
		}
		s.Table(rows)
	})
}
