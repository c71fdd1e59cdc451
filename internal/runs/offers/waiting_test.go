package offers

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/pipeline"
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

// Room on a worker that lacks the engine is no room for a pipeline.
func TestAPipelineSaysThatNobodyHasItsEngine(t *testing.T) {
	t.Parallel()
	q := QueueState{Workers: []Worker{{Owner: "w", Size: credits.Size{VCPU: 4}, Launches: "nextflow"}}, Launches: map[ids.Run]pipeline.Engine{"r1": pipeline.Snakemake, "r2": pipeline.Nextflow}}
	if w := q.Why(Queued{ID: "r1"}); w.Reason != WaitsForExecutor || !strings.Contains(w.Message, "has Snakemake") {
		t.Errorf("%+v", w)
	}
	for _, id := range []ids.Run{"r2", "r3"} {
		if w := q.Why(Queued{ID: id}); w.Reason != WaitsForCapacity {
			t.Errorf("%s: %+v", id, w)
		}
	}
}

// Room on workers without a GPU is no room for a run that needs one.
func TestRunSaysThatNobodyHasItsGPU(t *testing.T) {
	t.Parallel()
	q := QueueState{Workers: []Worker{{Owner: "w", Size: credits.Size{VCPU: 4}}}}
	if w := q.Why(Queued{ID: "r1", Size: credits.Size{VCPU: 4, GPU: 1}}); w.Reason != WaitsForExecutor || !strings.Contains(w.Message, "has 1 GPU") {
		t.Errorf("%+v", w)
	}
}
