package operate

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/cmd/millrace/installation"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/operator"
	"github.com/millrace/millrace/internal/store"
)

// Notice is what everybody who uses the installation is told.
type Notice struct {
	Set   NoticeSet   `cmd:"" help:"Show a notice on every page of the app and in the command line, in place of the one before."`
	Clear NoticeClear `cmd:"" help:"Remove the notice."`
	Show  NoticeShow  `cmd:"" help:"Print the notice."`
}

// NoticeSet sets it.
type NoticeSet struct {
	installation.Settings `embed:""`
	Text                  string    `arg:"" help:"One line of plain text, up to 500 characters."`
	Level                 string    `env:"-" enum:"info,warning" default:"info" help:"info (people can dismiss it) or warning."`
	Until                 time.Time `env:"-" format:"2006-01-02T15:04:05Z07:00" placeholder:"TIME" help:"When it ends by itself, such as 2026-08-01T18:00:00Z. Default: when you remove it."`
}

// Run shows it within seconds.
func (c *NoticeSet) Run(w Console) error {
	if strings.TrimSpace(c.Text) == "" {
		return errors.New("the text is empty: to remove the notice, run millrace admin notice clear")
	}
	return announce(w, &c.Settings, operator.Notice{Text: c.Text, Level: operator.Level(c.Level), Until: c.Until})
}

func announce(w Console, s *installation.Settings, n operator.Notice) error {
	ctx := w.Audited("operator.notice_set", audit.Installation, "")
	return s.Beside(ctx, func(db *store.DB) error {
		set, err := Service(db).SetNotice(ctx, n)
		if err != nil {
			return err
		}
		return printNotice(w, set)
	})
}

// NoticeClear removes it.
type NoticeClear struct {
	installation.Settings `embed:""`
}

// Run removes it within seconds.
func (c *NoticeClear) Run(w Console) error {
	return announce(w, &c.Settings, operator.Notice{})
}

// NoticeShow prints it.
type NoticeShow struct {
	installation.Settings `embed:""`
}

// Run prints one line.
func (c *NoticeShow) Run(w Console) error {
	return c.Beside(w.Ctx, func(db *store.DB) error {
		n, err := Service(db).Notice(w.Ctx)
		if err != nil {
			return err
		}
		return printNotice(w, n)
	})
}

func printNotice(w Console, n operator.Notice) error {
	until := ""
	if !n.Until.IsZero() {
		until = " until " + at(n.Until)
	}
	if n.Text == "" {
		_, err := fmt.Fprintln(w.Out, "there is no notice")
		return err
	}
	_, err := fmt.Fprintf(w.Out, "%s%s: %s\n", n.Level, until, n.Text)
	return err
}

// Maintenance is the maintenance mode.
type Maintenance struct {
	On   MaintenanceOn   `cmd:"" help:"Have new runs wait. Active runs continue."`
	Off  MaintenanceOff  `cmd:"" help:"Let new runs start again."`
	Show MaintenanceShow `cmd:"" help:"Print whether maintenance mode is on."`
}

// MaintenanceOn turns it on.
type MaintenanceOn struct {
	installation.Settings `embed:""`
	Message               string `env:"-" help:"One line for people whose runs wait, up to 500 characters."`
}

// Run turns it on for all servers and workers at once.
func (c *MaintenanceOn) Run(w Console) error {
	return maintain(w, &c.Settings, operator.Maintenance{On: true, Message: c.Message})
}

// MaintenanceOff turns it off.
type MaintenanceOff struct {
	installation.Settings `embed:""`
}

// Run turns it off; workers look at the queue within seconds.
func (c *MaintenanceOff) Run(w Console) error {
	return maintain(w, &c.Settings, operator.Maintenance{})
}

func maintain(w Console, s *installation.Settings, m operator.Maintenance) error {
	ctx := w.Audited("operator.maintenance_set", audit.Installation, "")
	return s.Beside(ctx, func(db *store.DB) error {
		set, err := Service(db).SetMaintenance(ctx, m)
		if err != nil {
			return err
		}
		return printMaintenance(w, set)
	})
}

// MaintenanceShow prints it.
type MaintenanceShow struct {
	installation.Settings `embed:""`
}

// Run prints one line.
func (c *MaintenanceShow) Run(w Console) error {
	return c.Beside(w.Ctx, func(db *store.DB) error {
		m, err := Service(db).Maintenance(w.Ctx)
		if err != nil {
			return err
		}
		return printMaintenance(w, m)
	})
}

func printMaintenance(w Console, m operator.Maintenance) error {
	if !m.On {
		_, err := fmt.Fprintln(w.Out, "maintenance mode is off: runs start")
		return err
	}
	says := "maintenance mode is on since " + at(m.Since) + ": active runs continue, new ones wait"
	if m.Message != "" {
		says += " (" + m.Message + ")"
	}
	_, err := fmt.Fprintln(w.Out, says)
	return err
}
