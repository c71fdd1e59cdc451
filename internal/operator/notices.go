package operator

import (
	"context"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/ids"
)

// Level is how much a notice matters.
type Level string

// The levels. People can dismiss a notice that only informs.
const (
	Info    Level = "info"
	Warning Level = "warning"
)

// Notice is what operators tell everybody who uses the installation.
type Notice struct {
	ID    string
	Text  string // empty: there is no notice
	Level Level
	Until time.Time // zero: until it is removed
}

// At is the notice that is shown at a time.
func (n Notice) At(now time.Time) Notice {
	if !n.Until.IsZero() && !now.Before(n.Until) {
		return Notice{}
	}
	return n
}

// Maintenance is whether runs that have not started wait until it is over.
type Maintenance struct {
	On      bool
	Message string // for those who wait; may be empty
	Since   time.Time
}

// Notices is where the notice and the maintenance mode are kept.
type Notices interface {
	Notice(ctx context.Context) (Notice, error)
	// SetNotice replaces the notice; one without text removes it.
	SetNotice(ctx context.Context, n Notice, now time.Time) error
	Maintenance(ctx context.Context) (Maintenance, error)
	// SetMaintenance turns the mode on or off, and keeps since when it has been on.
	SetMaintenance(ctx context.Context, m Maintenance, now time.Time) (Maintenance, error)
}

const longestNotice = 500

// Notice is what everybody is told at the moment.
func (s *Service) Notice(ctx context.Context) (Notice, error) {
	n, err := s.Notices.Notice(ctx)
	return n.At(s.Now()), err
}

// SetNotice tells everybody something else, or, without text, nothing.
func (s *Service) SetNotice(ctx context.Context, n Notice) (Notice, error) {
	text, err := plain("text", n.Text)
	if err != nil {
		return Notice{}, err
	}
	if text == "" {
		return Notice{}, s.Notices.SetNotice(ctx, Notice{}, s.Now())
	}
	if n.Level == "" {
		n.Level = Info
	}
	if n.Level != Info && n.Level != Warning {
		return Notice{}, wrong("level", "must be %s or %s", Info, Warning)
	}
	n.ID, n.Text, n.Until = ids.NewNotice(), text, n.Until.Truncate(time.Millisecond)
	if n.At(s.Now()).Text == "" {
		return Notice{}, wrong("until", "must be in the future")
	}
	return n, s.Notices.SetNotice(ctx, n, s.Now())
}

// Maintenance is whether the installation is in maintenance mode.
func (s *Service) Maintenance(ctx context.Context) (Maintenance, error) {
	return s.Notices.Maintenance(ctx)
}

// SetMaintenance turns maintenance mode on or off. What has started goes on.
func (s *Service) SetMaintenance(ctx context.Context, m Maintenance) (Maintenance, error) {
	var err error
	if m.Message, err = plain("message", m.Message); err != nil {
		return Maintenance{}, err
	}
	if m, err = s.Notices.SetMaintenance(ctx, m, s.Now()); err == nil {
		s.Wake()
	}
	return m, err
}

// plain is one line of text that looks on every screen as it was typed.
func plain(field, text string) (string, error) {
	text = strings.TrimSpace(text)
	if utf8.RuneCountInString(text) > longestNotice {
		return "", wrong(field, "has at most %d characters", longestNotice)
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable) {
		return "", wrong(field, "must be one line of plain text, without control characters and without characters that change the direction of writing")
	}
	return text, nil
}

// unprintable reports whether a character breaks a line, controls a terminal, or hides the
// order of those around it.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.In(r, unicode.Zl, unicode.Zp)
}

// Board is the notice as a server last read it, so that telling it to all who ask costs nothing.
type Board struct {
	notices Notices
	now     func() time.Time
	shown   atomic.Pointer[Notice]
}

// NewBoard makes the one of a server.
func NewBoard(notices Notices, now func() time.Time) *Board {
	return &Board{notices: notices, now: now}
}

// Notice is what everybody is told, as of a few seconds ago.
func (b *Board) Notice() Notice {
	if n := b.shown.Load(); n != nil {
		return n.At(b.now())
	}
	return Notice{}
}

// Refresh reads the notice again. When that fails, the last one stays.
func (b *Board) Refresh(ctx context.Context) {
	if n, err := b.notices.Notice(ctx); err == nil {
		b.shown.Store(&n)
	}
}

// refreshed is how often a server looks for a notice that was set by another one, or on the
// command line.
const refreshed = 2 * time.Second

// Run refreshes the notice until ctx ends.
func (b *Board) Run(ctx context.Context) error {
	tick := time.NewTicker(refreshed)
	defer tick.Stop()
	for {
		b.Refresh(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
