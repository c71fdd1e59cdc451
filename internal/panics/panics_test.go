package panics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/millrace/millrace/internal/domain/fault"
)

func TestCatchTurnsAPanicIntoAnError(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	if err := Catch(func() error { return failed }); err != failed || Is(err) {
		t.Errorf("without a panic: %v", err)
	}
	if err := Catch(func() error { return nil }); err != nil || Is(err) {
		t.Errorf("without an error: %v", err)
	}
	for name, value := range map[string]any{"a text": "out of order", "an error": failed, "a fault": fault.NotFound("no such file")} {
		err := fmt.Errorf("around it: %w", Catch(func() error { panic(value) }))
		known, ok := errors.AsType[*Error](err)
		if !ok || !Is(err) || known.Value != value || !strings.Contains(known.Stack, "panics_test.go") || strings.Contains(err.Error(), "panics_test.go") {
			t.Errorf("%s: %v", name, err)
		}
		if fault.KindOf(err) != fault.KindInternal {
			t.Errorf("%s is taken for a failure that was foreseen: %v", name, err)
		}
	}
}

func TestRestartCallsWorkAgainAfterAPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		calls := 0
		Restart(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), func(context.Context) {
			if calls++; calls < 3 {
				panic("out of order")
			}
		})
		if calls != 3 || strings.Count(log.String(), "out of order") != 2 || !strings.Contains(log.String(), "panics_test.go") {
			t.Errorf("%d calls: %s", calls, log.String())
		}
		ctx, stop := context.WithCancel(t.Context())
		Restart(ctx, slog.New(slog.DiscardHandler), func(context.Context) {
			stop()
			panic("at the end")
		})
	})
}
