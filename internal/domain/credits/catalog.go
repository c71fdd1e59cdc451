package credits

// Catalog is everything that has a price, and what each plan includes.
type Catalog struct {
	Rates    Rates
	Plans    []PlanTerms // the smallest first
	Packages []Package   // each at the place of its index
	Off      bool        // nothing costs anything, and no plan has limits
}

// WithoutBilling is the catalog of an installation without money: its plans are names
// without credits and limits.
func (c Catalog) WithoutBilling() Catalog {
	off := Catalog{Off: true, Plans: make([]PlanTerms, len(c.Plans))}
	for i, terms := range c.Plans {
		off.Plans[i] = PlanTerms{Name: terms.Name}
	}
	return off
}

// DefaultCatalog is what holds where the operator says nothing else.
func DefaultCatalog() Catalog {
	return Catalog{
		Rates: Rates{
			VCPUHour:       3_600_000,
			GBHour:         360_000,
			GPUHour:        36 * Credit,
			StorageGBMonth: 3 * Credit,
		},
		Plans: []PlanTerms{
			{
				Name: Free, MonthlyCredits: 500 * Credit,
				MaxVCPU: 4, MaxRAMGB: 16, MaxRunSeconds: 3600, StorageBytes: 5 * GB,
			},
			{Name: Pro, MonthlyCredits: 10_000 * Credit, StorageMetered: true},
			{Name: Team, MonthlyCredits: 50_000 * Credit, StorageMetered: true},
		},
		Packages: []Package{
			{Index: 0, Name: "1,000 credits", Credits: 1_000 * Credit, AmountMinor: 10_00, Currency: "usd"},
			{Index: 1, Name: "5,000 credits", Credits: 5_000 * Credit, AmountMinor: 45_00, Currency: "usd"},
			{Index: 2, Name: "20,000 credits", Credits: 20_000 * Credit, AmountMinor: 160_00, Currency: "usd"},
		},
	}
}

// Terms is what a plan includes; false where there is no plan of this name.
func (c Catalog) Terms(plan Plan) (PlanTerms, bool) {
	for _, terms := range c.Plans {
		if terms.Name == plan {
			return terms, true
		}
	}
	return PlanTerms{}, false
}

// TermsOf is what the teams on a plan have. One that the operator has taken away
// is the free one.
func (c Catalog) TermsOf(plan Plan) PlanTerms {
	terms, ok := c.Terms(plan)
	if !ok {
		terms, _ = c.Terms(Free)
	}
	return terms
}

// PlanNames are the plans there are, the smallest first.
func (c Catalog) PlanNames() []Plan {
	names := make([]Plan, len(c.Plans))
	for i, terms := range c.Plans {
		names[i] = terms.Name
	}
	return names
}

// Package is the package with this index; false where there is none.
func (c Catalog) Package(index int) (Package, bool) {
	if index < 0 || index >= len(c.Packages) {
		return Package{}, false
	}
	return c.Packages[index], true
}

// WithRunSeconds is the catalog with another longest run for one plan; 0 means
// no cap. The catalog it is asked of stays as it is.
func (c Catalog) WithRunSeconds(plan Plan, seconds int64) Catalog {
	plans := make([]PlanTerms, len(c.Plans))
	for i, terms := range c.Plans {
		if terms.Name == plan {
			terms.MaxRunSeconds = seconds
		}
		plans[i] = terms
	}
	c.Plans = plans
	return c
}
