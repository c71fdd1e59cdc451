package inputs

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/waittest"
)

// codeOf is the code of a foreseen failure.
func codeOf(err error) string {
	known, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return ""
	}
	return known.Code
}

func ignore(int64) {}

// What a run asked for by its hash it gets, or nothing: whatever others wait for or
// have learnt of the same address meanwhile.
func TestEachRunGetsTheHashItAskedFor(t *testing.T) {
	t.Parallel()
	bytes, sum := random(1000)
	wrong := strings.Repeat("ab", 32)
	ask := func(s *Fetched, run ids.Run, given, learnt string) (string, error) {
		o := object(len(bytes))
		o.SHA256, o.Learnt = given, learnt
		return s.Fetch(t.Context(), "team_1", run, o, ignore)
	}
	t.Run("others wait for whatever is there", func(t *testing.T) {
		t.Parallel()
		f := &far{bytes: bytes, left: -1}
		s := NewFetched(t.TempDir(), f, 1<<40, neverLow)
		f.mu.Lock() // nothing arrives before all have asked
		var all sync.WaitGroup
		for _, given := range []string{"", wrong, sum, wrong, ""} {
			all.Go(func() {
				got, err := ask(s, ids.Run("run_"+given), given, "")
				if given == wrong && codeOf(err) != changedCode {
					t.Errorf("another file was given: %s, %v", got, err)
				}
				if given != wrong && (err != nil || got != sum) {
					t.Errorf("asked for %q: %s, %v", given, got, err)
				}
			})
		}
		waittest.Until(func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			n := 0
			for _, transfer := range s.active {
				n += transfer.waiting
			}
			return n == 5
		})
		f.mu.Unlock()
		all.Wait()
	})
	t.Run("it was learnt that it is another", func(t *testing.T) {
		t.Parallel()
		f := &far{bytes: bytes, left: -1}
		s := NewFetched(t.TempDir(), f, 1<<40, neverLow)
		for i, tt := range []struct {
			given, learnt string
			ok            bool
		}{{"", "", true}, {"", sum, true}, {sum, sum, true}, {wrong, sum, false}, {wrong, "", false}, {sum, "", true}} {
			got, err := ask(s, ids.Run(fmt.Sprint("run_", i)), tt.given, tt.learnt)
			if (err == nil && got == sum) != tt.ok || !tt.ok && codeOf(err) != changedCode {
				t.Errorf("given %q, learnt %q: %s, %v", tt.given, tt.learnt, got, err)
			}
		}
	})
}
