package credits

import (
	"math"
	"time"
)

// Rates are the prices of computing and keeping.
type Rates struct {
	VCPUHour       Amount
	GBHour         Amount
	GPUHour        Amount
	StorageGBMonth Amount
}

const secondsPerHour = 3600

// PerSecond is what a second on this size costs. The catalog takes hourly
// rates only that make it whole.
func (r Rates) PerSecond(s Size) Amount {
	return (r.VCPUHour / secondsPerHour).times(int64(s.VCPU)).
		plus((r.GBHour / secondsPerHour).times(int64(s.RAMGB))).
		plus((r.GPUHour / secondsPerHour).times(int64(s.GPU)))
}

// Percent are the rates of computing where it costs another part of the usual,
// such that a second is whole.
func (r Rates) Percent(n int) Rates {
	part := func(a Amount) Amount {
		second := (a / secondsPerHour).times(int64(n))
		if second > 0 { // rounded up
			second = (second-1)/100 + 1
		}
		return second.times(secondsPerHour)
	}
	r.VCPUHour, r.GBHour, r.GPUHour = part(r.VCPUHour), part(r.GBHour), part(r.GPUHour)
	return r
}

// PerHour is what an hour on this size costs.
func (r Rates) PerHour(s Size) Amount { return r.Cost(s, secondsPerHour) }

// Cost is what so many seconds on this size cost.
func (r Rates) Cost(s Size, seconds int64) Amount { return r.PerSecond(s).times(seconds) }

// HoldSeconds is how much of a run is set aside when it starts.
const HoldSeconds = 60

// Lasts is how many whole seconds on this size the amount pays for.
func (r Rates) Lasts(s Size, amount Amount) int64 {
	price := r.PerSecond(s)
	switch {
	case amount <= 0:
		return 0
	case price == 0:
		return math.MaxInt64
	}
	return int64(amount / price)
}

// StartedSeconds is how many seconds a run that took so long pays for: every
// one that it started.
func StartedSeconds(took time.Duration) int64 {
	if took <= 0 {
		return 0
	}
	return int64((took-1)/time.Second) + 1
}
