package credits

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/internal/domain/fault"
)

func TestASizeIsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	gpu := Size{VCPU: 4, RAMGB: 16, GPU: 1}
	for name, tt := range map[string]struct {
		custom  *Custom
		profile string
		want    Size
	}{
		"nothing gives the default":        {nil, "", Size{VCPU: 2, RAMGB: 8}},
		"the gpu preset":                   {nil, "gpu", gpu},
		"a custom size":                    {&Custom{VCPU: 1, RAMGB: 4}, "", Size{VCPU: 1, RAMGB: 4}},
		"more memory than needed":          {&Custom{VCPU: 2, RAMGB: 64}, "", Size{VCPU: 2, RAMGB: 64}},
		"a custom size wins over a preset": {&Custom{VCPU: 8, RAMGB: 32}, "gpu", Size{VCPU: 8, RAMGB: 32}},
		"the largest":                      {&Custom{VCPU: maxVCPU, RAMGB: maxRAMGB}, "", Size{VCPU: maxVCPU, RAMGB: maxRAMGB}},
	} {
		got, problems := Resolve(tt.custom, tt.profile)
		if got != tt.want || len(problems) > 0 {
			t.Errorf("%s: got %+v, %v", name, got, problems)
		}
	}
}

func TestEverythingWrongWithASizeIsSaid(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		custom  *Custom
		profile string
		paths   []string
	}{
		"too little memory":             {&Custom{VCPU: 4, RAMGB: 15}, "", []string{"compute.ramGb"}},
		"nothing in it":                 {&Custom{}, "", []string{"compute.vcpu", "compute.ramGb"}},
		"below zero":                    {&Custom{VCPU: -1, RAMGB: -4}, "", []string{"compute.vcpu", "compute.ramGb"}},
		"beyond any machine":            {&Custom{VCPU: 1025, RAMGB: 40000}, "", []string{"compute.vcpu", "compute.ramGb"}},
		"beyond what can be multiplied": {&Custom{VCPU: math.MaxInt, RAMGB: 8}, "", []string{"compute.vcpu"}},
		"an unknown profile":            {nil, "tpu", []string{"resourceProfile"}},
		"both":                          {&Custom{VCPU: 2, RAMGB: 4}, "tpu", []string{"resourceProfile", "compute.ramGb"}},
	} {
		_, problems := Resolve(tt.custom, tt.profile)
		if diff := cmp.Diff(tt.paths, paths(problems)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheDefaultRatesAreWholeASecond(t *testing.T) {
	t.Parallel()
	rates := DefaultCatalog().Rates
	for name, tt := range map[string]struct {
		size    Size
		second  string
		anHour  string
		ninetyS string
	}{
		"the default": {Size{VCPU: 2, RAMGB: 8}, "0.0028", "10.08", "0.252"},
		"four CPUs":   {Size{VCPU: 4, RAMGB: 16}, "0.0056", "20.16", "0.504"},
		"gpu":         {Size{VCPU: 4, RAMGB: 16, GPU: 1}, "0.0156", "56.16", "1.404"},
	} {
		got := [3]string{rates.PerSecond(tt.size).String(), rates.PerHour(tt.size).String(), rates.Cost(tt.size, 90).String()}
		if want := [3]string{tt.second, tt.anHour, tt.ninetyS}; got != want {
			t.Errorf("%s costs %v, want %v", name, got, want)
		}
	}
}

func TestEveryStartedSecondCounts(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]int64{
		-time.Second: 0, 0: 0, 1: 1, time.Second - 1: 1, time.Second: 1, time.Second + 1: 2,
		time.Hour: 3600, math.MaxInt64: 9223372037,
	} {
		if got := StartedSeconds(took); got != want {
			t.Errorf("%v counts as %d seconds, want %d", took, got, want)
		}
	}
}

func TestARunCostsTheSameInPiecesAndAtOnce(t *testing.T) {
	t.Parallel()
	rates := DefaultCatalog().Rates
	rapid.Check(t, func(t *rapid.T) {
		size := Size{
			VCPU: rapid.IntRange(1, maxVCPU).Draw(t, "vcpu"), RAMGB: rapid.IntRange(4, maxRAMGB).Draw(t, "ram"),
			GPU: rapid.IntRange(0, 8).Draw(t, "gpu"),
		}
		a := rapid.Int64Range(0, maxSeconds).Draw(t, "a")
		b := rapid.Int64Range(0, maxSeconds).Draw(t, "b")
		if rates.Cost(size, a)+rates.Cost(size, b) != rates.Cost(size, a+b) {
			t.Fatalf("%d and %d seconds cost something else than %d", a, b, a+b)
		}
		amount := Amount(rapid.Int64Range(0, int64(maxGrant)).Draw(t, "amount"))
		lasts := rates.Lasts(size, amount)
		if rates.Cost(size, lasts) > amount || rates.Cost(size, lasts+1) <= amount {
			t.Fatalf("%s credits do not last just %d seconds", amount, lasts)
		}
	})
}

func TestAPlanCapsWhatItSays(t *testing.T) {
	t.Parallel()
	c := DefaultCatalog()
	gpu, _ := Resolve(nil, GPUProfile)
	for name, tt := range map[string]struct {
		plan Plan
		size Size
		says string
	}{
		"free takes its largest":    {Free, Size{VCPU: 4, RAMGB: 16}, ""},
		"free takes the gpu preset": {Free, gpu, ""},
		"free refuses more CPUs":    {Free, Size{VCPU: 5, RAMGB: 16}, "up to 4 vCPUs, this size has 5"},
		"free refuses more memory":  {Free, Size{VCPU: 4, RAMGB: 17}, "up to 16 GB of memory, this size has 17"},
		"free refuses more of both": {Free, Size{VCPU: 8, RAMGB: 32}, "up to 4 vCPUs and 16 GB, this size has 8 vCPUs and 32 GB"},
		"pro takes anything":        {Pro, Size{VCPU: maxVCPU, RAMGB: maxRAMGB}, ""},
		"team takes anything":       {Team, Size{VCPU: maxVCPU, RAMGB: maxRAMGB}, ""},
	} {
		terms, known := c.Terms(tt.plan)
		reason, ok := terms.Allows(tt.size)
		if !known || ok != (tt.says == "") || !strings.Contains(reason, tt.says) {
			t.Errorf("%s: got %v, %q", name, ok, reason)
		}
	}
}

func TestARefundTakesBackItsPartAndNoMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := Package{
			Credits:     Amount(rapid.Int64Range(1, int64(maxGrant)).Draw(t, "credits")),
			AmountMinor: rapid.Int64Range(1, maxPrice).Draw(t, "price"),
		}
		first := rapid.Int64Range(0, p.AmountMinor).Draw(t, "first")
		second := rapid.Int64Range(first, p.AmountMinor).Draw(t, "second")
		a, b := p.CreditsFor(first), p.CreditsFor(second)
		if a < 0 || b < a || b > p.Credits {
			t.Fatalf("refunds of %d and %d take %s and %s", first, second, a, b)
		}
		if p.CreditsFor(p.AmountMinor) != p.Credits || p.CreditsFor(0) != 0 {
			t.Fatal("all of the price does not stand for all credits")
		}
	})
}

func TestMonthlyCreditsAreSpentFirst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		balance := Balance{Monthly: drawAmount(t, "monthly"), TopUp: drawAmount(t, "topup")}
		amount := drawAmount(t, "amount")
		left, split := balance.Spend(amount)
		checkSplit(t, balance, left, split, amount)
		if split.TopUp > 0 && left.Monthly > 0 {
			t.Fatalf("bought credits were spent while %s monthly ones were left", left.Monthly)
		}
		back, split := balance.TakeBack(amount)
		checkSplit(t, balance, back, split, amount)
		if split.Monthly > 0 && back.TopUp > 0 {
			t.Fatalf("monthly credits were taken back while %s bought ones were left", back.TopUp)
		}
	})
}

func TestOnlyMonthlyCreditsExpire(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		balance := Balance{Monthly: drawAmount(t, "monthly"), TopUp: drawAmount(t, "topup")}
		left, expired := balance.Expire()
		if expired != balance.Monthly || left != (Balance{TopUp: balance.TopUp}) {
			t.Fatalf("of %+v %s expired and %+v was left", balance, expired, left)
		}
	})
}

func checkSplit(t *rapid.T, before, after Balance, s Split, amount Amount) {
	t.Helper()
	switch {
	case s.Monthly+s.TopUp+s.Short != amount:
		t.Fatalf("%+v does not add up to %s", s, amount)
	case before.Monthly-s.Monthly != after.Monthly || before.TopUp-s.TopUp != after.TopUp:
		t.Fatalf("%+v less %+v is not %+v", before, s, after)
	case after.Monthly < 0 || after.TopUp < 0 || s.Monthly < 0 || s.TopUp < 0 || s.Short < 0:
		t.Fatalf("below zero: %+v, %+v", after, s)
	case s.Short > 0 && after.Left() > 0:
		t.Fatalf("%s was short while %s was left", s.Short, after.Left())
	}
}

func drawAmount(t *rapid.T, label string) Amount {
	return Amount(rapid.Int64Range(0, int64(maxGrant)).Draw(t, label))
}

func paths(problems []fault.Detail) (all []string) {
	for _, p := range problems {
		all = append(all, p.Path)
	}
	return all
}
