package offers

import (
	"errors"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/pipeline"
)

func TestARunGetsTheFirstExecutorThatServesIt(t *testing.T) {
	t.Parallel()
	offers := []Worker{
		{Executor: "local", Size: credits.Size{VCPU: 4, RAMGB: 16}, NoEnvironments: true},
		{Executor: "down", Size: credits.Size{VCPU: 64, RAMGB: 256}, Problem: "Slurm does not answer"},
		{Executor: "cluster", Size: credits.Size{VCPU: 64, RAMGB: 256}, PricePercent: 150, NoImages: true},
		{Executor: "gpus", Size: credits.Size{VCPU: 8, RAMGB: 64, GPU: 2}, PricePercent: 300},
	}
	for name, tt := range map[string]struct {
		want Wanted
		got  Chosen
		kind fault.Kind
	}{
		"the first, if it is large enough":        {Wanted{Size: credits.Size{VCPU: 2, RAMGB: 8}}, Chosen{"local", 100}, fault.KindInternal},
		"one that has the whole size":             {Wanted{Size: credits.Size{VCPU: 16, RAMGB: 64}}, Chosen{"cluster", 150}, fault.KindInternal},
		"one that runs its images":                {Wanted{Size: credits.Size{VCPU: 16, RAMGB: 64}, Images: true}, Chosen{"local", 100}, fault.KindInternal},
		"one that gets its environments":          {Wanted{Size: credits.Size{VCPU: 16, RAMGB: 64}, Environments: true}, Chosen{"cluster", 150}, fault.KindInternal},
		"one that has a GPU":                      {Wanted{Size: credits.Size{VCPU: 4, RAMGB: 16, GPU: 1}}, Chosen{"gpus", 300}, fault.KindInternal},
		"the first, if none is large enough":      {Wanted{Size: credits.Size{VCPU: 128, RAMGB: 8}}, Chosen{"local", 100}, fault.KindInternal},
		"the one that it names":                   {Wanted{Executor: "cluster", Size: credits.Size{VCPU: 1, RAMGB: 1}}, Chosen{"cluster", 150}, fault.KindInternal},
		"none, if it names one without a GPU":     {Wanted{Executor: "local", Size: credits.Size{VCPU: 1, GPU: 1}}, Chosen{}, fault.KindConflict},
		"none, if that builds no environments":    {Wanted{Executor: "local", Environments: true}, Chosen{}, fault.KindConflict},
		"the one that it names, which is down":    {Wanted{Executor: "down"}, Chosen{"down", 100}, fault.KindInternal},
		"one that works, if another is down":      {Wanted{Size: credits.Size{VCPU: 64, RAMGB: 256}}, Chosen{"cluster", 150}, fault.KindInternal},
		"none, if it names one that is not there": {Wanted{Executor: "moon"}, Chosen{}, fault.KindInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Choose(offers, Away(offers, nil), tt.want)
			if got != tt.got || (err != nil) != (tt.got == Chosen{}) || err != nil && !fault.Is(err, tt.kind) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// A run waits for a worker that is away, or is not there yet, and is refused only for what
// none of them has.
func TestRunWaitsForAWorkerThatIsAway(t *testing.T) {
	t.Parallel()
	small, gpu := credits.Size{VCPU: 2, RAMGB: 8}, credits.Size{VCPU: 4, RAMGB: 16, GPU: 1}
	local := Worker{Host: "h", Executor: "local", Size: small, NoEnvironments: true}
	gpus := Worker{Host: "g", Executor: "gpus", Size: gpu, PricePercent: 300, Launches: "nextflow"}
	down := func(w Worker) Worker { w.Problem = "it does not answer"; return w }
	unknown := func(w Worker) Worker { w.Size = credits.Size{}; return down(w) }
	for name, tt := range map[string]struct {
		present, remembered []Worker
		want                Wanted
		got                 Chosen
		code                string
	}{
		"none was ever there":                         {nil, nil, Wanted{Size: gpu}, Chosen{"", 100}, ""},
		"none is there now":                           {nil, []Worker{local, gpus}, Wanted{Size: small}, Chosen{"local", 100}, ""},
		"none is there now, and it names one":         {nil, []Worker{local, gpus}, Wanted{Executor: "gpus", Size: small}, Chosen{"gpus", 300}, ""},
		"only the one with a GPU is gone":             {[]Worker{local}, []Worker{gpus}, Wanted{Size: gpu}, Chosen{"gpus", 300}, ""},
		"only the one with a GPU is down":             {[]Worker{local, down(gpus)}, nil, Wanted{Size: gpu}, Chosen{"gpus", 300}, ""},
		"only the one that builds environments":       {[]Worker{local, down(gpus)}, nil, Wanted{Size: small, Environments: true}, Chosen{"gpus", 300}, ""},
		"only the one that has the engine":            {[]Worker{local}, []Worker{gpus}, Wanted{Size: small, Launches: pipeline.Nextflow}, Chosen{"gpus", 300}, ""},
		"it has started while its executor is down":   {[]Worker{unknown(gpus)}, nil, Wanted{Size: gpu}, Chosen{"gpus", 300}, ""},
		"the same, and it is known what it had":       {[]Worker{unknown(local)}, []Worker{local}, Wanted{Size: gpu}, Chosen{}, "no_capacity"},
		"none of them has a GPU":                      {[]Worker{down(local)}, []Worker{local}, Wanted{Size: gpu}, Chosen{}, "no_capacity"},
		"none is there now, and none had a GPU":       {nil, []Worker{local}, Wanted{Size: gpu}, Chosen{}, "no_capacity"},
		"its machine came back without the GPU":       {[]Worker{{Host: "g", Executor: "gpus", Size: small}}, []Worker{gpus}, Wanted{Size: gpu}, Chosen{}, "no_capacity"},
		"none of them has the engine":                 {[]Worker{local}, []Worker{gpus}, Wanted{Size: small, Launches: pipeline.Snakemake}, Chosen{}, NoEngine},
		"those with a GPU build no environments":      {[]Worker{local}, nil, Wanted{Size: small, Environments: true}, Chosen{}, NoEnvironments},
		"one that works is taken, and not one away":   {[]Worker{gpus}, []Worker{local}, Wanted{Size: small}, Chosen{"gpus", 300}, ""},
		"one that is named, and was not there lately": {[]Worker{local}, nil, Wanted{Executor: "gpus"}, Chosen{}, "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Choose(tt.present, Away(tt.present, tt.remembered), tt.want)
			code := ""
			if e, ok := errors.AsType[*fault.Error](err); ok {
				if code = e.Code; code == "" {
					code = string(e.Kind)
				}
			}
			if got != tt.got || code != tt.code {
				t.Errorf("%+v, %v (%s)", got, err, code)
			}
		})
	}
}

// Who builds environments is looked for among all: one that lacks something else, or
// comes later, is better than a refusal, and one that is down for a moment is waited for.
func TestEnvironmentsAreRefusedOnlyWhereNobodyBuildsThem(t *testing.T) {
	t.Parallel()
	bare := Worker{Executor: "pods", NoEnvironments: true}
	both := Wanted{Images: true, Environments: true}
	choose := func(list []Worker, w Wanted) (Chosen, error) { return Choose(list, Away(list, nil), w) }
	if got, err := choose([]Worker{bare, {Executor: "cluster", NoImages: true}}, both); err != nil || got.Executor != "cluster" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := choose([]Worker{bare, {Executor: "local", Problem: "its disk is full"}}, both); err != nil || got.Executor != "local" {
		t.Errorf("while its executor is down: %+v, %v", got, err)
	}
	_, err := choose([]Worker{bare, {Executor: "down", Problem: "away", NoEnvironments: true}}, both)
	if !fault.Is(err, fault.KindConflict) || !strings.Contains(err.Error(), "uv") || !strings.Contains(err.Error(), "--environments") {
		t.Errorf("where nobody does: %v", err)
	}
}

// What is drained is passed over, but a run that only it serves may wait for it.
func TestADrainedWorkerIsTheLastChoice(t *testing.T) {
	t.Parallel()
	drained := Worker{Executor: "local", Size: credits.Size{VCPU: 8, RAMGB: 32, GPU: 1}, Draining: true}
	small := Worker{Executor: "small", Size: credits.Size{VCPU: 1, RAMGB: 4}}
	if got, err := Choose([]Worker{drained, small}, nil, Wanted{Size: credits.Size{VCPU: 4, RAMGB: 8}}); err != nil || got.Executor != "small" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, w := range []Wanted{{Size: credits.Size{GPU: 1}}, {Executor: "local"}} {
		if got, err := Choose([]Worker{drained, small}, nil, w); err != nil || got.Executor != "local" {
			t.Errorf("%+v: %+v, %v", w, got, err)
		}
	}
	if list := Gather([]Worker{drained}); list[0].Problem == "" || list[0].Total != (credits.Size{}) {
		t.Errorf("%+v", list)
	}
	if why := (QueueState{Workers: []Worker{drained}}).Why(Queued{Executor: "local"}); why.Reason != WaitsForExecutor {
		t.Errorf("%+v", why)
	}
}

func TestServersThatShareAClusterOfferItOnce(t *testing.T) {
	t.Parallel()
	size := credits.Size{VCPU: 8, RAMGB: 32}
	list := Gather([]Worker{
		{Executor: "local", Scope: "a", Size: size},
		{Executor: "cluster", Scope: "slurm:/s", Size: size},
		{Executor: "local", Scope: "b", Size: size},
		{Executor: "cluster", Scope: "slurm:/s", Size: size},
		{Executor: "half", Scope: "x", Problem: "no"},
		{Executor: "half", Scope: "y", Size: size},
	})
	for i, want := range []Executor{{Name: "local", Total: size.Plus(size)}, {Name: "cluster", Total: size}, {Name: "half", Total: size}} {
		if got := list[i]; got.Name != want.Name || got.Total != want.Total || got.Problem != "" {
			t.Errorf("%+v", got)
		}
	}
}

func TestAPipelineRunsWhereItsEngineIs(t *testing.T) {
	t.Parallel()
	list := []Worker{{Executor: "first"}, {Executor: "second", Launches: "nextflow snakemake"}}
	if c, err := Choose(list, nil, Wanted{Launches: pipeline.Snakemake}); err != nil || c.Executor != "second" {
		t.Errorf("chose %+v: %v", c, err)
	}
	_, err := Choose(list[:1], nil, Wanted{Launches: pipeline.Snakemake})
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != NoEngine || !strings.Contains(e.Message, "pip install") {
		t.Errorf("it is %v", err)
	}
}
