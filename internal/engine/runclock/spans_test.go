package runclock

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor"
)

// TestSpansAreSetsOfSeconds compares spans with the seconds that are in them.
func TestSpansAreSetsOfSeconds(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	second := func(n int) time.Time { return time.Unix(int64(n), 0) }
	draw := func() (one executor.Span, in [30]bool) {
		from, to := random.IntN(30), random.IntN(30)
		for n := from; n < to; n++ {
			in[n] = true
		}
		return executor.Span{From: second(from), To: second(to)}, in
	}
	for range 10_000 {
		var s spans
		var want [30]bool
		for range random.IntN(8) {
			one, in := draw()
			remove := random.IntN(3) == 0
			if remove {
				s = s.without(spans{}.add(one, 0))
			} else {
				s = s.add(one, 0)
			}
			for n := range in {
				want[n] = want[n] && !(remove && in[n]) || !remove && in[n]
			}
		}
		for n := range want {
			if got := s.after(second(n))-s.after(second(n+1)) > 0; got != want[n] {
				t.Fatalf("second %d of %v is in it: %v, want %v", n, s, got, want[n])
			}
		}
		for i := 1; i < len(s); i++ {
			if !s[i-1].To.Before(s[i].From) {
				t.Fatalf("%v is not in order", s)
			}
		}
	}
	close := spans{}.add(executor.Span{From: second(0), To: second(3)}, 2*time.Second).add(executor.Span{From: second(5), To: second(6)}, 2*time.Second)
	if len(close) != 1 || close.after(second(0)) != 6*time.Second {
		t.Errorf("spans within the gap are %v", close)
	}
}
