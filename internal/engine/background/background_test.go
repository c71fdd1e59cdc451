package background_test

import (
	"slices"
	"testing"

	"github.com/millrace/millrace/internal/engine/background"
)

func TestThingsAreDoneInTheirOrder(t *testing.T) {
	t.Parallel()
	var q background.Queue
	var done, want []int
	for i := range 1000 {
		q.Add(func() { done = append(done, i) })
		want = append(want, i)
		if i%100 == 0 {
			q.Wait() // so that it begins again
		}
	}
	q.Wait()
	if !slices.Equal(done, want) {
		t.Errorf("%v", done)
	}
	q.Wait()
}
