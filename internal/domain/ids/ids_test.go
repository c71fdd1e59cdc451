package ids_test

import (
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/ids"
)

func TestFirstRunLiesBetweenWhatCameBeforeAndAfter(t *testing.T) {
	t.Parallel()
	before := time.Now()
	made := ids.NewRun()
	after := time.Now()
	if ids.FirstRun(before) > made || ids.FirstRun(after.Add(time.Millisecond)) <= made {
		t.Errorf("%s is not between %s and %s", made, ids.FirstRun(before), ids.FirstRun(after.Add(time.Millisecond)))
	}
	if first := ids.FirstRun(time.Time{}); first >= made || len(first) != len(made) {
		t.Errorf("before all times: %s", first)
	}
	if last := ids.FirstRun(time.Date(30000, 1, 1, 0, 0, 0, 0, time.UTC)); last <= made || len(last) != len(made) {
		t.Errorf("after all times: %s", last)
	}
}
