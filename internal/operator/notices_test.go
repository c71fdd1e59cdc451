package operator_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/operator"
	"github.com/millrace/millrace/internal/store"
	"github.com/millrace/millrace/internal/store/storetest"
)

// fieldOf is the field that a refusal names.
func fieldOf(err error) string {
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Kind == fault.KindInvalid && len(e.Details) == 1 {
		return e.Details[0].Path
	}
	return ""
}

func TestANoticeIsOneLineOfPlainText(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		now := b.Now()
		for _, tt := range []struct {
			notice operator.Notice
			field  string // that is wrong
		}{
			{operator.Notice{Text: strings.Repeat("ä", 500)}, ""},
			{operator.Notice{Text: strings.Repeat("ä", 501)}, "text"},
			{operator.Notice{Text: "two\nlines"}, "text"},
			{operator.Notice{Text: "two\u2028lines"}, "text"},
			{operator.Notice{Text: "red \x1b[31m"}, "text"},
			{operator.Notice{Text: "NUL \x00"}, "text"},
			{operator.Notice{Text: "no UTF-8 \xff"}, "text"},
			{operator.Notice{Text: "turned \u202e around"}, "text"},
			{operator.Notice{Text: "isolated \u2067 around"}, "text"},
			{operator.Notice{Text: "<b>not HTML</b> & 👩🏽‍🔬 שלום"}, ""},
			{operator.Notice{Text: "x", Level: operator.Warning}, ""},
			{operator.Notice{Text: "x", Level: "error"}, "level"},
			{operator.Notice{Text: "x", Until: now}, "until"},
			{operator.Notice{Text: "x", Until: now.Add(time.Microsecond)}, "until"},
			{operator.Notice{Text: "x", Until: now.Add(time.Second)}, ""},
			{operator.Notice{Text: " ", Level: "error", Until: now.Add(-time.Hour)}, ""}, // removes it
		} {
			got, err := b.SetNotice(t.Context(), tt.notice)
			if fieldOf(err) != tt.field || (err == nil) != (tt.field == "") {
				t.Errorf("%+q: %v", tt.notice, err)
			}
			if kept, failed := b.Notice(t.Context()); failed != nil || err == nil && kept.Text != strings.TrimSpace(tt.notice.Text) {
				t.Errorf("%+q: %+v, %v", tt.notice, kept, failed)
			}
			if err == nil && got.Text != "" && (got.ID == "" || got.Level == "") {
				t.Errorf("%+v", got)
			}
		}
	})
}

func TestANoticeEndsAtItsTime(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
		clock := func() time.Time { return now }
		room := operator.NewService(operator.Options{Notices: db, Now: clock})
		board := operator.NewBoard(db, clock)
		if n := board.Notice(); n.Text != "" {
			t.Errorf("before it was read: %+v", n)
		}
		_, err := room.SetNotice(t.Context(), operator.Notice{Text: "soon over", Until: now.Add(time.Minute)})
		storetest.Refused(t, "a notice", err, "")
		board.Refresh(t.Context())
		for _, want := range []string{"soon over", ""} {
			kept, err := room.Notice(t.Context())
			if err != nil || kept.Text != want || board.Notice().Text != want {
				t.Errorf("%+v, %+v, %v; want %q", kept, board.Notice(), err, want)
			}
			now = now.Add(time.Minute)
		}
	})
}

func TestMaintenanceIsTurnedOnAndOff(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		_, err := b.SetMaintenance(t.Context(), operator.Maintenance{On: true, Message: "a\tb"})
		if fieldOf(err) != "message" || b.woken != 0 {
			t.Errorf("%v, %d wakings", err, b.woken)
		}
		for _, m := range []operator.Maintenance{{On: true}, {On: true, Message: "Back at noon."}, {Message: "not kept"}} {
			got, err := b.SetMaintenance(t.Context(), m)
			if err != nil || got.On != m.On || got.On && got.Message != m.Message || !got.On && got != (operator.Maintenance{}) {
				t.Errorf("%+v, %v", got, err)
			}
			if kept, err := b.Maintenance(t.Context()); err != nil || kept != got {
				t.Errorf("%+v is kept, %v; want %+v", kept, err, got)
			}
		}
		if b.woken != 3 {
			t.Errorf("workers were woken %d times", b.woken)
		}
	})
}
