package schedules_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/addresses"
	"github.com/millrace/millrace/internal/runs/outputto"
	"github.com/millrace/millrace/internal/runs/schedules"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/waittest"
	"github.com/millrace/millrace/internal/workflows"
)

// troubled takes runs, unless they are of a size that is in trouble.
type troubled struct {
	idle
	hang   chan struct{} // nil: it fails at once
	called chan struct{}
}

const badVCPU = 3

func (e troubled) Choose(ctx context.Context, w runs.Wanted) (runs.Chosen, error) {
	if w.Size.VCPU != badVCPU {
		return e.idle.Choose(ctx, w)
	}
	select {
	case e.called <- struct{}{}:
	default:
	}
	if e.hang != nil {
		<-e.hang
	}
	return runs.Chosen{}, fault.Unavailable("nobody answers")
}

func (b *bench) with(e runs.Engine, change ...func(*runs.Options)) {
	o := runs.Options{
		Store: b.db, Details: b.db, Shards: b.db, Logs: b.db, Submit: b.db, Known: b.db, Targets: targets{}, Engine: e, Catalog: credits.DefaultCatalog(), Now: b.clock.Now,
	}
	for _, c := range change {
		c(&o)
	}
	b.runs = runs.NewService(o)
	b.Service = schedules.NewService(b.db, b.db, b.runs, b.clock.Now)
}

// workflowOf makes another workflow, of somebody's team.
func (b *bench) workflowOf(as access.Caller, name string) ids.Workflow {
	b.t.Helper()
	return b.workflowAs(as, name, simple)
}

func (b *bench) workflowAs(as access.Caller, name, definition string) ids.Workflow {
	b.t.Helper()
	w, err := b.edit.Create(b.t.Context(), as, workflows.New{Name: name, Definition: []byte(definition)})
	if err != nil {
		b.t.Fatal(err)
	}
	return w.ID
}

func bad(e *schedules.Edit) {
	e.Given = &schedules.Given{Custom: &credits.Custom{VCPU: badVCPU, RAMGB: 4 * badVCPU}}
}

// cannotStart makes schedules that are due before others, and cannot start.
func (b *bench) cannotStart(n int) (list []schedules.Schedule) {
	b.t.Helper()
	mine := b.workflow
	for i := range n {
		if i%20 == 0 {
			b.workflow = b.workflowOf(b.owner, fmt.Sprint("bad", i))
		}
		list = append(list, b.make(b.owner, "9 12 * * *", bad))
	}
	b.workflow = mine
	return list
}

// However many schedules cannot start, of the same team and due earlier, the others do.
func TestSchedulesThatCannotStartDoNotDelayTheOthers(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.with(troubled{})
		stuck := b.cannotStart(60)
		good := b.make(b.owner, "10 12 * * *")
		b.clock.Pass(10 * time.Minute)
		b.round()
		if got := b.outcomes(good.ID); got != "12:10 started" {
			t.Errorf("%q: those that cannot start delay it", got)
		}
		// They are tried again, not paused, and go on by themselves.
		b.with(idle{})
		b.clock.Pass(30 * time.Second)
		b.round()
		for _, s := range stuck {
			s, err := b.db.Schedule(t.Context(), b.owner.Team, s.Workflow, s.ID)
			if err != nil || !s.Enabled() || s.Paused != nil || len(s.Firings) != 1 || s.Firings[0].Outcome != schedules.Started {
				t.Fatalf("%+v, %v", s, err)
			}
		}
	})
}

// A schedule that is due while there is no room for its run waits for that, and is not
// paused. None is made or changed meanwhile, but each can be paused.
func TestSchedulesWaitForRoom(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		s, other := b.make(b.owner, "10 12 * * *"), b.make(b.owner, "0 1 * * *")
		full := fault.Unavailable("the disk is nearly full").WithCode("disk_low")
		check := func(context.Context) error {
			if full != nil {
				return full
			}
			return nil
		}
		b.runs.RefuseWhile(check)
		b.RefuseWhile(check)
		b.clock.Pass(10 * time.Minute)
		b.round()
		if s, err := b.db.Schedule(ctx, b.owner.Team, s.Workflow, s.ID); err != nil || !s.Enabled() || s.Paused != nil || len(s.Firings) > 0 {
			t.Errorf("%+v, %v", s, err)
		}
		cron, no := "1 1 * * *", false
		_, err := b.Create(ctx, b.owner, b.workflow, schedules.Edit{Cron: &cron})
		storetest.Refused(t, "making one", err, fault.KindUnavailable)
		_, err = b.Change(ctx, b.owner, b.workflow, other.ID, schedules.Edit{Cron: &cron})
		storetest.Refused(t, "changing one", err, fault.KindUnavailable)
		_, err = b.Change(ctx, b.owner, b.workflow, other.ID, schedules.Edit{Enabled: &no})
		storetest.Refused(t, "pausing one", err, "")
		_, _, err = b.CreateTrigger(ctx, b.owner, b.workflow, schedules.NewTrigger{})
		storetest.Refused(t, "making a trigger", err, fault.KindUnavailable)
		full = nil
		b.clock.Pass(30 * time.Second)
		b.round()
		if got := b.outcomes(s.ID); got != "12:10 started" {
			t.Errorf("with room: %q", got)
		}
	})
}

// While the schedules of one team take their time, those of another start.
func TestSlowSchedulesOfOneTeamHoldUpNoOtherTeam(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		hang, called := make(chan struct{}), make(chan struct{}, 100)
		b.with(troubled{hang: hang, called: called})
		b.cannotStart(60)
		other := storetest.Owner(t, b.db, "bea")
		workflow := b.workflowOf(other, "good")
		every := "10 12 * * *"
		good, err := b.Create(t.Context(), other, workflow, schedules.Edit{Cron: &every})
		if err != nil {
			t.Fatal(err)
		}
		b.clock.Pass(10 * time.Minute)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- b.runner(0).Run(ctx) }()
		<-called // the slow ones are under way
		if !waittest.Until(func() bool {
			s, err := b.db.Schedule(t.Context(), other.Team, workflow, good.ID)
			return err == nil && len(s.Firings) == 1 && s.Firings[0].Outcome == schedules.Started
		}) {
			t.Error("the other team's schedule has not started")
		}
		stop()
		close(hang)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A schedule that could not start for longer than its time is met says so, and goes on.
func TestScheduleGoesOnAfterTrouble(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.with(troubled{})
		s := b.make(b.owner, "*/10 * * * *", bad)
		for range 16 {
			b.clock.Pass(time.Minute)
			b.round()
		}
		b.with(idle{})
		for range 4 {
			b.clock.Pass(time.Minute)
			b.round()
		}
		if got := b.outcomes(s.ID); got != "12:10 missed, 12:20 started" {
			t.Error(got)
		}
		if got := b.look(s.ID); !got.Enabled() || got.Paused != nil || !strings.Contains(got.Firings[1].Message, "no server was available") {
			t.Errorf("%+v", got)
		}
	})
}

// hosts are those of inputs by address and of outputs, which fail by the beginning of the
// address.
type hosts struct {
	targets
	failing map[string]error
}

func (h *hosts) fails(url string) error {
	for prefix, err := range h.failing {
		if strings.HasPrefix(url, prefix) {
			return err
		}
	}
	return nil
}

func (h *hosts) Fits(context.Context, ids.Team, []addresses.Address) error { return nil }

func (h *hosts) Look(_ context.Context, _ ids.Team, list []addresses.Address, _ func(int) bool) ([][]addresses.Object, []error) {
	found, failed := make([][]addresses.Object, len(list)), make([]error, len(list))
	for i, a := range list {
		if failed[i] = h.fails(a.URL); failed[i] == nil {
			found[i] = []addresses.Object{{Address: a, Endpoint: "https://data.example", Size: 1, ETag: "e"}}
		}
	}
	return found, failed
}

func (h *hosts) CheckTarget(_ context.Context, _ ids.Team, t outputto.Target) error {
	return h.fails(t.URL)
}

const (
	reads  = "https://reads.example/"
	genome = "https://genome.example/"
	bucket = "s3://bucket/"
)

// byAddress makes a schedule whose runs have inputs by address, and copy their outputs.
func (b *bench) byAddress(cron string, change ...func(*schedules.Edit)) schedules.Schedule {
	b.t.Helper()
	if b.inputs == "" {
		b.inputs = b.workflowAs(b.owner, "inputs", `{"inputs":{"many":{"type":"files"}},"nodes":[{"id":"a","command":"true"}]}`)
	}
	mine := b.workflow
	defer func() { b.workflow = mine }()
	b.workflow = b.inputs
	return b.make(b.owner, cron, append(change, func(e *schedules.Edit) {
		e.Given = &schedules.Given{
			Inputs:   map[string]json.RawMessage{"many": json.RawMessage(`[{"url":"` + reads + `1"},{"url":"` + genome + `1"}]`)},
			OutputTo: &outputto.Target{URL: bucket + "out/", Connection: "conn_own"},
		}
	})...)
}

func (b *bench) inputsSchedule(id ids.Schedule) schedules.Schedule {
	b.t.Helper()
	s, err := b.db.Schedule(b.t.Context(), b.owner.Team, b.inputs, id)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// Hosts of inputs and outputs that do not answer pause no schedule: it starts as soon as
// they do. What a host refuses pauses it.
func TestScheduleOutlivesAnOutageOfItsHosts(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		h := &hosts{}
		b.with(idle{}, func(o *runs.Options) { o.Remote, o.Targets = h, h })
		away, refusal := fault.Unavailable("reads.example cannot be reached"), fault.Forbidden("genome.example does not let us at this address")
		for name, tt := range map[string]struct {
			failing map[string]error
			code    string // of the pause; empty: there is none
		}{
			"no network":              {map[string]error{"": away}, ""},
			"one host is away":        {map[string]error{reads: away}, ""},
			"no answer in time":       {map[string]error{reads: context.DeadlineExceeded, genome: away}, ""},
			"one is away, one closed": {map[string]error{reads: away, genome: refusal}, "input_unreachable"},
			"one is absent":           {map[string]error{reads: away, genome: fault.NotFound("nothing is there")}, "not_found"},
			"the bucket is away":      {map[string]error{bucket: away}, ""},
			"no answer of the bucket": {map[string]error{bucket: context.DeadlineExceeded}, ""},
			"the bucket is closed":    {map[string]error{bucket: refusal}, "output_unreachable"},
		} {
			h.failing = tt.failing
			s := b.byAddress("*/10 * * * *")
			b.clock.Pass(10 * time.Minute)
			b.round()
			got := b.inputsSchedule(s.ID)
			if tt.code != "" {
				if got.Paused == nil || got.Paused.Code != tt.code {
					t.Errorf("%s: %+v", name, got.Paused)
				}
				continue
			}
			if got.Paused != nil || len(got.Firings) != 0 {
				t.Errorf("%s: %+v, %+v", name, got.Paused, got.Firings)
			}
			h.failing = nil
			b.clock.Pass(10 * time.Second)
			b.round()
			if got := b.inputsSchedule(s.ID); len(got.Firings) != 1 || got.Firings[0].Outcome != schedules.Started {
				t.Errorf("%s: once they answer: %+v", name, got.Firings)
			}
			b.end()
			if err := b.Delete(t.Context(), b.owner, b.inputs, s.ID); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// While its host stays away, each time of a schedule is missed with the reason, and the
// next one is tried again. One that catches up starts as soon as the host is back.
func TestScheduleWhoseHostIsGoneMissesItsTimes(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		h := &hosts{failing: map[string]error{reads: fault.Unavailable("there is no host reads.example")}}
		b.with(idle{}, func(o *runs.Options) { o.Remote, o.Targets = h, h })
		s := b.byAddress("*/10 * * * *")
		catches := b.byAddress("*/10 * * * *", catchingUp)
		for range 4 * 29 { // until 12:29
			b.clock.Pass(15 * time.Second)
			b.round()
		}
		got := b.inputsSchedule(s.ID)
		if got.Paused != nil || len(got.Firings) != 2 {
			t.Fatalf("%+v, %+v", got.Paused, got.Firings)
		}
		for _, f := range got.Firings {
			if f.Outcome != schedules.Missed || !strings.Contains(f.Message, "there is no host reads.example") {
				t.Errorf("%+v", f)
			}
		}
		h.failing = nil
		for range 4 * 6 {
			b.clock.Pass(15 * time.Second)
			b.round()
		}
		if got := b.inputsSchedule(s.ID); len(got.Firings) != 3 || got.Firings[0].Outcome != schedules.Started || got.Firings[0].Due.Format("15:04") != "12:30" {
			t.Errorf("%+v", got.Firings)
		}
		if got := b.inputsSchedule(catches.ID); got.Paused != nil || len(got.Firings) == 0 || got.Firings[len(got.Firings)-1].Outcome != schedules.Started {
			t.Errorf("one that catches up: %+v, %+v", got.Paused, got.Firings)
		}
	})
}

// panicking is an engine that panics over runs of one size.
type panicking struct{ idle }

func (e panicking) Choose(ctx context.Context, w runs.Wanted) (runs.Chosen, error) {
	if w.Size.VCPU == badVCPU {
		panic("out of order")
	}
	return e.idle.Choose(ctx, w)
}

// A schedule that is due again at every start of the server would end the server each
// time.
func TestPanicOverAScheduleLeavesTheOthers(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		b.with(panicking{})
		broken := b.make(b.owner, "9 12 * * *", bad)
		good := b.make(b.owner, "10 12 * * *")
		b.clock.Pass(10 * time.Minute)
		b.round()
		if got := b.outcomes(good.ID); got != "12:10 started" {
			t.Errorf("beside one that panics: %q", got)
		}
		b.with(idle{})
		b.clock.Pass(30 * time.Second)
		b.round()
		if got := b.outcomes(broken.ID); got != "12:09 started" {
			t.Errorf("when nothing panics any more: %q", got)
		}
	})
}
