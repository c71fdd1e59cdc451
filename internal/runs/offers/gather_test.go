package offers

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
)

func TestARunAsksForWhatItsNodesNeed(t *testing.T) {
	t.Parallel()
	size := credits.Size{VCPU: 2, RAMGB: 8}
	for definition, want := range map[string]Wanted{
		`{"nodes":[{"id":"a","command":"x"}]}`:                                                       {Size: size},
		`{"nodes":[{"id":"a","command":"x"},{"id":"b","command":"x","image":"busybox"}]}`:            {Size: size, Images: true},
		`{"nodes":[{"id":"a","command":"x","environment":{"conda":["samtools=1.20"]}}]}`:             {Size: size, Environments: true},
		`{"nodes":[{"id":"a","type":"note","name":"image","text":"x"},{"id":"b","command":"true"}]}`: {Size: size},
	} {
		g, wrong := graph.Parse([]byte(definition))
		if len(wrong) > 0 {
			t.Fatal(wrong)
		}
		want.Executor = "cluster"
		if got := WantedBy(g, size, "cluster"); !reflect.DeepEqual(got, want) {
			t.Errorf("%s asks for %+v", definition, got)
		}
	}
}

func TestAnEstimateSaysWhyNobodyServesIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		chosen  Chosen
		err     error
		percent int
		reason  string
		ok      bool
	}{
		"served":       {Chosen{"cluster", 150}, nil, 150, "", true},
		"refused":      {Chosen{}, fault.Conflict("there is no GPU on this server"), 100, "there is no GPU on this server", false},
		"nobody knows": {Chosen{}, errors.New("dial tcp 10.0.0.1"), 100, "nobody can say at the moment where it could run", false},
	} {
		percent, reason, ok := Served(tt.chosen, tt.err)
		if percent != tt.percent || reason != tt.reason || ok != tt.ok {
			t.Errorf("%s: %d, %q, %v", name, percent, reason, ok)
		}
	}
}

func TestWhatIsFreeIsNeverLessThanNothing(t *testing.T) {
	t.Parallel()
	list := Gather([]Worker{
		{Executor: "a", Scope: "1", Size: credits.Size{VCPU: 8, RAMGB: 32}},
		{Executor: "a", Scope: "2", Size: credits.Size{VCPU: 4, RAMGB: 16, GPU: 1}, Draining: true},
		{Executor: "b", Problem: "its disk is full"},
	})
	SetLoads(list, map[string]Load{
		"a": {Used: credits.Size{VCPU: 9, RAMGB: 20}, Queued: 3, Waits: []time.Duration{9, 1, 5}}, "c": {Queued: 1},
	})
	if len(list) != 2 {
		t.Fatalf("%+v", list)
	}
	if got := list[0].Free(); got != (credits.Size{RAMGB: 12}) || list[0].Typical != 5 || list[0].Queued != 3 || list[0].Problem != "" {
		t.Errorf("%+v is free of %+v", got, list[0])
	}
	if got := list[1].Free(); got != (credits.Size{}) || list[1].Problem != "its disk is full" || list[1].Typical != 0 {
		t.Errorf("%+v is free of %+v", got, list[1])
	}
}

// A run with images goes to a worker that takes them, so that one is enough.
func TestAnExecutorTakesImagesWhereOneOfItsWorkersDoes(t *testing.T) {
	t.Parallel()
	with, without := Worker{Scope: "1", Size: credits.Size{VCPU: 1}}, Worker{Scope: "2", Size: credits.Size{VCPU: 1}, NoImages: true}
	for name, tt := range map[string]struct {
		workers []Worker
		want    bool
	}{
		"all": {[]Worker{with}, true}, "none": {[]Worker{without}, false}, "the first": {[]Worker{with, without}, true}, "the last": {[]Worker{without, without, with}, true},
	} {
		if got := Gather(tt.workers); len(got) != 1 || got[0].Images != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	chosen, err := Choose([]Worker{without, {Executor: "other", Size: with.Size}}, nil, Wanted{Images: true, Size: with.Size})
	if err != nil || chosen.Executor != "other" {
		t.Errorf("%+v, %v", chosen, err)
	}
}

func TestAnExecutorThatIsNotThereIsNamedInFewWords(t *testing.T) {
	t.Parallel()
	_, err := Choose([]Worker{{Executor: "a"}, {Executor: "a"}, {}, {Executor: "b"}}, nil, Wanted{Executor: strings.Repeat("é", 500)})
	e, _ := errors.AsType[*fault.Error](err)
	if e == nil || e.Kind != fault.KindInvalid || e.Details[0].Path != "executor" || len(e.Message) > 300 || !strings.HasSuffix(e.Message, "choose one of a, b") {
		t.Errorf("%v", err)
	}
}
