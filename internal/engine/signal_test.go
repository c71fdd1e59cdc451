package engine

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatIsAskedForDuringARestComesAfterIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := newSignal(func() time.Duration { return time.Since(began) }, time.Minute)
		var done []time.Duration
		for _, takes := range []time.Duration{time.Second, 0, time.Hour, 0, 0} {
			s.Ask()
			s.Ask() // counts once
			<-s.C
			done = append(done, time.Since(began))
			s.Do(func() {
				s.Ask() // may have come too late for what is being done
				time.Sleep(takes)
			})
			<-s.C
			s.Do(func() {})
			synctest.Wait()
			select {
			case <-s.C:
				t.Error("it is done once more than it was asked for")
			default:
			}
		}
		const hour = time.Hour + time.Second
		want := []time.Duration{0, 5 * time.Second, 5 * time.Second, hour + 4*time.Second + time.Minute, hour + 4*time.Second + time.Minute}
		for i := range want {
			if done[i] != want[i] {
				t.Fatalf("it was done at %v, want %v", done, want)
			}
		}
	})
}
