package freedisk

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
)

func TestTheDiskIsLowBeforeItIsFull(t *testing.T) {
	t.Parallel()
	const gb = 1 << 30
	plenty := Space{Free: 50 * gb, Total: 100 * gb, FreeFiles: 1000, Files: 1000}
	for name, tt := range map[string]struct {
		least  int64
		change func(*Space)
		want   int32
	}{
		"enough":                             {0, func(*Space) {}, enough},
		"less than a twentieth":              {0, func(s *Space) { s.Free = 4 * gb }, low},
		"less than half of that":             {0, func(s *Space) { s.Free = 2 * gb }, nearlyNone},
		"a large disk needs 10 GB":           {0, func(s *Space) { s.Total, s.Free = 10_000*gb, 11*gb }, enough},
		"less than was asked for":            {60 * gb, func(*Space) {}, low},
		"hardly any files are left":          {0, func(s *Space) { s.FreeFiles = 40 }, low},
		"no files are left":                  {0, func(s *Space) { s.FreeFiles = 0 }, nearlyNone},
		"a file system that counts no files": {0, func(s *Space) { s.Files, s.FreeFiles = 0, 0 }, enough},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := plenty
			tt.change(&s)
			w := &Watch{folder: t.TempDir(), least: tt.least, log: slog.New(slog.DiscardHandler), stat: func(string) (Space, error) { return s, nil }}
			w.look()
			if got := w.state.Load(); got != tt.want {
				t.Errorf("state %d, want %d", got, tt.want)
			}
			if err := w.Check(context.Background()); fault.Is(err, fault.KindUnavailable) != (tt.want > enough) {
				t.Errorf("checked: %v", err)
			}
		})
	}
}

func TestTheReserveIsGivenUpAndTakenBack(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := Space{Free: 1 << 40, Total: 1 << 41}
	w := &Watch{folder: folder, log: slog.New(slog.DiscardHandler), stat: func(string) (Space, error) { return s, nil }}
	there := func() bool {
		w.look()
		_, err := os.Stat(filepath.Join(folder, reserveFile))
		return err == nil
	}
	if !there() {
		t.Fatal("there is no reserve")
	}
	if s.Free = 1 << 20; there() {
		t.Error("it is kept although the disk is full")
	}
	if s.Free = 1 << 40; !there() {
		t.Error("it is not taken back")
	}
}
