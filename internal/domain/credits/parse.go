package credits

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ParseCatalog reads the operator's plans file. Whatever it leaves out keeps
// its default; when something is wrong the error says everything that is.
func ParseCatalog(text []byte) (Catalog, error) {
	var whole jsontext.Value // valid, in UTF-8, and no name twice
	if err := json.Unmarshal(text, &whole); err != nil {
		return Catalog{}, fmt.Errorf("the plans file is wrong:\n  not valid JSON: %w", err)
	}
	p := &parser{catalog: DefaultCatalog()}
	p.object("", whole, map[string]func(path string, value []byte){
		"rates":    p.rates,
		"plans":    p.plans,
		"packages": p.packages,
	})
	if len(p.problems) > 0 {
		return Catalog{}, fmt.Errorf("the plans file is wrong:\n  %s", strings.Join(p.problems, "\n  "))
	}
	return p.catalog, nil
}

// What a file may say. The bounds keep every sum far inside an Amount.
const (
	maxRate     = 100_000 * Credit
	maxGrant    = 1_000_000_000 * Credit
	maxPrice    = 100_000_000_00
	maxSeconds  = 366 * 24 * secondsPerHour
	maxStoreGB  = 1 << 30
	maxName     = 64
	maxLabel    = 200
	maxPackages = 50
	maxPlans    = 50
)

func (p *parser) rates(path string, value []byte) {
	r := &p.catalog.Rates
	p.object(path, value, map[string]func(string, []byte){
		"vcpuHour":       p.hourly(&r.VCPUHour),
		"gbHour":         p.hourly(&r.GBHour),
		"gpuHour":        p.hourly(&r.GPUHour),
		"storageGbMonth": p.amount(&r.StorageGBMonth, 0, maxRate),
	})
}

// hourly reads a rate that makes a whole number of micro-credits a second.
func (p *parser) hourly(into *Amount) func(string, []byte) {
	return func(path string, value []byte) {
		before := len(p.problems)
		p.amount(into, 0, maxRate)(path, value)
		if len(p.problems) == before && *into%secondsPerHour != 0 {
			p.note(path, "%s credits an hour are no whole micro-credits a second; %s are",
				*into, *into/secondsPerHour*secondsPerHour)
		}
	}
}

func (p *parser) plans(path string, value []byte) {
	p.members(path, value, func(name string, path string, value []byte) {
		if !isPlanName(name) {
			p.note(path, "a plan's name is up to %d lower-case letters, digits and hyphens", maxName)
			return
		}
		i := slices.IndexFunc(p.catalog.Plans, func(t PlanTerms) bool { return t.Name == Plan(name) })
		if i >= 0 {
			p.terms(&p.catalog.Plans[i], path, value)
			return
		}
		// A plan of the operator's own is a paid one unless the file says more.
		own := PlanTerms{Name: Plan(name), MonthlyCredits: -1, StorageMetered: true}
		p.terms(&own, path, value)
		if own.MonthlyCredits < 0 {
			p.note(path+".monthlyCredits", "is missing, and this plan has no default")
		}
		p.catalog.Plans = append(p.catalog.Plans, own)
		if len(p.catalog.Plans) > maxPlans {
			p.note(path, "is one plan too many; there may be %d", maxPlans)
		}
	})
}

func (p *parser) terms(t *PlanTerms, path string, value []byte) {
	p.object(path, value, map[string]func(string, []byte){
		"monthlyCredits": p.amount(&t.MonthlyCredits, 0, maxGrant),
		"maxVcpu":        p.cap(maxVCPU, func(n int64) { t.MaxVCPU = int(n) }),
		"maxRamGb":       p.cap(maxRAMGB, func(n int64) { t.MaxRAMGB = int(n) }),
		"maxRunSeconds":  p.cap(maxSeconds, func(n int64) { t.MaxRunSeconds = n }),
		"storageGb":      p.cap(maxStoreGB, func(n int64) { t.StorageBytes = n * GB }),
		"storageMetered": p.flag(&t.StorageMetered),
	})
}

func (p *parser) packages(path string, value []byte) {
	p.catalog.Packages = nil
	p.items(path, value, func(i int, path string, value []byte) {
		pack := Package{Index: i, Currency: "usd"}
		given := p.object(path, value, map[string]func(string, []byte){
			"name":     p.text(&pack.Name, isLabel, fmt.Sprintf("1 to %d characters", maxLabel)),
			"credits":  p.amount(&pack.Credits, 1, maxGrant),
			"amount":   p.whole(1, maxPrice, func(n int64) { pack.AmountMinor = n }),
			"currency": p.text(&pack.Currency, isCurrency, "three lower-case letters, such as usd"),
		})
		for _, name := range []string{"name", "credits", "amount"} {
			if given != nil && !given[name] {
				p.note(path+"."+name, "is missing")
			}
		}
		p.catalog.Packages = append(p.catalog.Packages, pack)
		if i == maxPackages {
			p.note(path, "is one package too many; there may be %d", maxPackages)
		}
	})
}

func (p *parser) amount(into *Amount, least, most Amount) func(string, []byte) {
	return func(path string, value []byte) {
		a, err := ParseAmount(string(value))
		switch {
		case err != nil:
			p.note(path, "%v", err)
		case a < least || a > most:
			p.note(path, "must be from %s to %s credits", least, most)
		default:
			*into = a
		}
	}
}

// cap reads a limit, where null means that there is none.
func (p *parser) cap(most int64, set func(int64)) func(string, []byte) {
	number := p.whole(1, most, set)
	return func(path string, value []byte) {
		if string(value) == "null" {
			set(0)
			return
		}
		number(path, value)
	}
}

func isPlanName(name string) bool {
	return name != "" && len(name) <= maxName && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func isLabel(text string) bool {
	return strings.TrimSpace(text) != "" && utf8.RuneCountInString(text) <= maxLabel
}

func isCurrency(text string) bool {
	return len(text) == 3 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz") == ""
}
