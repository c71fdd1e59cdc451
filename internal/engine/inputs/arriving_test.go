package inputs

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/domain/ids"
)

// From the moment that a file has arrived until the run that waited for it has it,
// nobody takes it away to make room.
func TestWhatHasJustArrivedIsNotRemoved(t *testing.T) {
	t.Parallel()
	bytes, sum := random(1000)
	s := NewFetched(t.TempDir(), &far{bytes: bytes, left: -1}, 0, neverLow)
	ctx, stop := context.WithCancel(t.Context())
	var cleaners sync.WaitGroup
	for range 2 {
		cleaners.Go(func() {
			for ctx.Err() == nil {
				if err := s.MakeRoom(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	lost := 0
	for i := range 50 {
		o := object(len(bytes))
		o.ETag = fmt.Sprint(i)
		run := ids.Run("run_" + o.ETag)
		if _, err := s.Fetch(t.Context(), "team_1", run, o, ignore); err != nil {
			t.Fatal(err)
		}
		if o.Learnt = sum; !s.Has("team_1", run, o) {
			lost++
		}
		if err := s.Release(run); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	cleaners.Wait()
	if lost > 0 {
		t.Errorf("%d files were gone when their runs had them", lost)
	}
	if len(s.used) != 0 {
		t.Errorf("runs that let go still use files: %v", s.used)
	}
}
