package panics

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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
