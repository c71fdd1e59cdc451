package credits

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestThePricesAreTheOnesPromised(t *testing.T) {
	t.Parallel()
	want := Catalog{
		Rates: Rates{VCPUHour: 3_600_000, GBHour: 360_000, GPUHour: 36_000_000, StorageGBMonth: 3_000_000},
		Plans: []PlanTerms{
			{Name: "free", MonthlyCredits: 500_000_000, MaxVCPU: 4, MaxRAMGB: 16, MaxRunSeconds: 3600, StorageBytes: 5_368_709_120},
			{Name: "pro", MonthlyCredits: 10_000_000_000, StorageMetered: true},
			{Name: "team", MonthlyCredits: 50_000_000_000, StorageMetered: true},
		},
		Packages: []Package{
			{Index: 0, Name: "1,000 credits", Credits: 1_000_000_000, AmountMinor: 1000, Currency: "usd"},
			{Index: 1, Name: "5,000 credits", Credits: 5_000_000_000, AmountMinor: 4500, Currency: "usd"},
			{Index: 2, Name: "20,000 credits", Credits: 20_000_000_000, AmountMinor: 16000, Currency: "usd"},
		},
	}
	if diff := cmp.Diff(want, DefaultCatalog()); diff != "" {
		t.Errorf("the defaults differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Plans(), DefaultCatalog().PlanNames()); diff != "" {
		t.Errorf("the plans differ (-want +got):\n%s", diff)
	}
}

func TestWhatAFileLeavesOutKeepsItsDefault(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{}`, ` { "rates": {}, "plans": {} } `, `{"plans": {"free": {}, "pro": {}}}`,
	} {
		got, err := ParseCatalog([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(DefaultCatalog(), got); diff != "" {
			t.Errorf("%s changed something (-want +got):\n%s", text, diff)
		}
	}
}

// The file is the one in the package's comment.
func TestAFileChangesWhatItSays(t *testing.T) {
	t.Parallel()
	got, err := ParseCatalog([]byte(`{
	  "rates": {"vcpuHour": 3.6, "gbHour": 0.36, "gpuHour": 36, "storageGbMonth": 3},
	  "plans": {
	    "free": {"monthlyCredits": 200, "maxRunSeconds": 1800, "storageGb": 2},
	    "pro": {"maxVcpu": 64, "maxRamGb": 512},
	    "course": {"monthlyCredits": 2000, "maxVcpu": 8, "maxRamGb": 32, "storageGb": 50, "storageMetered": false}
	  },
	  "packages": [
	    {"name": "2,000 credits", "credits": 2000, "amount": 1800, "currency": "eur"}
	  ]
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultCatalog()
	free := &want.Plans[0]
	free.MonthlyCredits, free.MaxRunSeconds, free.StorageBytes = 200*Credit, 1800, 2*GB
	want.Plans[1].MaxVCPU, want.Plans[1].MaxRAMGB = 64, 512
	want.Plans = append(want.Plans, PlanTerms{
		Name: "course", MonthlyCredits: 2000 * Credit, MaxVCPU: 8, MaxRAMGB: 32, StorageBytes: 50 * GB,
	})
	want.Packages = []Package{{Name: "2,000 credits", Credits: 2000 * Credit, AmountMinor: 1800, Currency: "eur"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the catalog differs (-want +got):\n%s", diff)
	}
}

func TestNullLiftsACap(t *testing.T) {
	t.Parallel()
	c, err := ParseCatalog([]byte(`{"plans": {"free": {"maxVcpu": null, "maxRamGb": null, "maxRunSeconds": null, "storageGb": null}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Plans[0]; got.MaxVCPU != 0 || got.MaxRAMGB != 0 || got.MaxRunSeconds != 0 || got.StorageBytes != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestEverythingWrongWithAFileIsSaid(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		says []string
	}{
		"nothing":          {``, []string{"not valid JSON"}},
		"half":             {"{\n\"rates\": {", []string{"not valid JSON"}},
		"no object":        {`[]`, []string{"must be an object"}},
		"two":              {`{} {}`, []string{"not valid JSON"}},
		"a bad end":        {`{"rates": {}]`, []string{"not valid JSON"}},
		"an unknown field": {`{"rate": {}}`, []string{"rate: is not a field"}},
		"a name twice":     {`{"rates": {"gbHour": 1.8, "gbHour": 3.6}}`, []string{`duplicate object member name "gbHour"`}},
		"rates": {`{"rates": {"vcpuHour": 1, "gbHour": "3.6", "gpuHour": -36, "storageGbMonth": 1e3, "ramHour": 1}}`, []string{
			"rates.vcpuHour: 1 credits an hour", "rates.gbHour: ", "rates.gpuHour: must be from 0", "rates.storageGbMonth: ", "rates.ramHour: is not a field",
		}},
		"plans": {`{"plans": {"free": {"maxVcpu": 0, "maxRamGb": 1.5, "storageMetered": "no", "name": "x"}, "Gold!": {}, "lab": {"maxVcpu": 8}, "pro": 7}}`, []string{
			"plans.free.maxVcpu: must be a whole number", "plans.free.maxRamGb: ", "plans.free.storageMetered: must be true or false", "plans.free.name: is not a field",
			"plans.Gold!: a plan's name", "plans.lab.monthlyCredits: is missing", "plans.pro: must be an object",
		}},
		"packages": {`{"packages": [{"credits": 0, "amount": 10.5, "currency": "USD"}, 7, {"name": " ", "credits": 1, "amount": 1}]}`, []string{
			"packages[0].name: is missing", "packages[0].credits: must be from", "packages[0].amount: must be a whole number", "packages[0].currency: must be three",
			"packages[1]: must be an object", "packages[2].name: must be 1 to 200",
		}},
		"packages as null": {`{"packages": null}`, []string{"packages: must be a list"}},
		"too many packages": {`{"packages": [` + strings.TrimSuffix(strings.Repeat(`{"name": "x", "credits": 1, "amount": 1},`, maxPackages+1), ",") + `]}`, []string{
			"packages[50]: is one package too many",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseCatalog([]byte(tt.text))
			if err == nil {
				t.Fatalf("it was taken: %+v", got)
			}
			for _, want := range tt.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("it does not say %q:\n%v", want, err)
				}
			}
			if n := strings.Count(err.Error(), "\n"); n != len(tt.says) {
				t.Errorf("it says %d things instead of %d:\n%v", n, len(tt.says), err)
			}
		})
	}
}

func TestAnotherLongestRunLeavesTheRestAlone(t *testing.T) {
	t.Parallel()
	base := DefaultCatalog()
	changed := base.WithRunSeconds(Free, 60)
	if diff := cmp.Diff(DefaultCatalog(), base); diff != "" {
		t.Errorf("the catalog asked has changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(base, changed.WithRunSeconds(Free, 3600)); diff != "" || changed.Plans[0].MaxRunSeconds != 60 {
		t.Errorf("the changed one is %+v", changed)
	}
}

func TestOnlyPackagesOnOfferAreFound(t *testing.T) {
	t.Parallel()
	c := DefaultCatalog()
	for index, want := range map[int]bool{-1: false, 0: true, 2: true, 3: false} {
		if p, ok := c.Package(index); ok != want || ok && p.Index != index {
			t.Errorf("package %d: %+v, %v", index, p, ok)
		}
	}
}

func FuzzAPlansFileIsTakenOrExplained(f *testing.F) {
	f.Add([]byte(`{"rates": {"gbHour": 0.36}, "plans": {"free": {"maxVcpu": null}}, "packages": [{"name": "a", "credits": 1, "amount": 1}]}`))
	f.Add([]byte(`{"plans": {"lab": {"monthlyCredits": 5}}} x`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ParseCatalog(text)
		if err != nil {
			return
		}
		if c.Rates.VCPUHour%secondsPerHour != 0 || c.Rates.GBHour%secondsPerHour != 0 || c.Rates.GPUHour%secondsPerHour != 0 {
			t.Errorf("rates that are not whole a second: %+v", c.Rates)
		}
		for _, plan := range Plans() {
			if _, ok := c.Terms(plan); !ok {
				t.Errorf("plan %s is gone", plan)
			}
		}
	})
}

// A plan that the operator has taken away gives its teams no more than the free
// one: not to be limited at all is what the largest plans have.
func TestAPlanThatIsTakenAwayIsTheFreeOne(t *testing.T) {
	t.Parallel()
	c, err := ParseCatalog([]byte(`{"plans": {"lab": {"monthlyCredits": 7, "storageGb": 9}}}`))
	if err != nil {
		t.Fatal(err)
	}
	free, _ := c.Terms(Free)
	for _, tt := range []struct {
		c    Catalog
		plan Plan
		want Plan
	}{{c, "lab", "lab"}, {c, Pro, Pro}, {DefaultCatalog(), "lab", Free}, {DefaultCatalog(), "", Free}} {
		got := tt.c.TermsOf(tt.plan)
		if got.Name != tt.want || tt.want == Free && got != free {
			t.Errorf("teams on %q have %+v", tt.plan, got)
		}
		if _, ok := got.Allows(Size{VCPU: 64, RAMGB: 1}); ok != (tt.want != Free) {
			t.Errorf("teams on %q may have 64 vCPUs: %v", tt.plan, ok)
		}
	}
}
