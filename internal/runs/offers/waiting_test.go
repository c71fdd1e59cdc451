package offers

import (
	"testing"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
)

func TestARunSaysThatItsImageIsFetched(t *testing.T) {
	t.Parallel()
	q := QueueState{Workers: []Worker{{Owner: "w", Size: credits.Size{VCPU: 4}}}, Preparing: map[ids.Run]WaitReason{"r1": WaitsForImage}}
	if w := q.Why(Queued{ID: "r1"}); w.Reason != WaitsForImage {
		t.Errorf("%+v", w)
	}
	if w := q.Why(Queued{ID: "r2"}); w.Reason != WaitsForCapacity {
		t.Errorf("%+v", w)
	}
}
