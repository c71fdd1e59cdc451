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

func TestARunSaysThatMaintenanceHoldsItBack(t *testing.T) {
	t.Parallel()
	q := QueueState{Workers: []Worker{{Owner: "w", Size: credits.Size{VCPU: 4}}}, Maintained: true}
	const wait = "New runs wait until maintenance is over."
	for said, want := range map[string]string{"": wait, "Back at noon": wait + " Back at noon.", "Sorry!": wait + " Sorry!", "Zurück um zwölf Uhr für öä": wait + " Zurück um zwölf Uhr für öä."} {
		q.Announced = said
		if w := q.Why(Queued{ID: "r1"}); w.Reason != WaitsForMaintenance || w.Message != want {
			t.Errorf("%q: %+v", said, w)
		}
	}
	if w := q.Why(Queued{ID: "r1", Started: true}); w.Reason != WaitsForCapacity {
		t.Errorf("one that had started: %+v", w)
	}
	if q.Suspended = true; q.Why(Queued{ID: "r1"}).Reason != WaitsForOperator {
		t.Error("a suspended team waits for the end of maintenance")
	}
}
