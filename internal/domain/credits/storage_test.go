package credits

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAPeriodIsTheCalendarMonthInUTC(t *testing.T) {
	t.Parallel()
	auckland := time.FixedZone("NZDT", 13*3600)
	for name, tt := range map[string]struct{ at, start, end time.Time }{
		"the first moment":  {day(2026, 3, 1), day(2026, 3, 1), day(2026, 4, 1)},
		"the last moment":   {day(2026, 4, 1).Add(-1), day(2026, 3, 1), day(2026, 4, 1)},
		"december":          {day(2026, 12, 31), day(2026, 12, 1), day(2027, 1, 1)},
		"a leap day":        {day(2028, 2, 29), day(2028, 2, 1), day(2028, 3, 1)},
		"a zone far ahead":  {time.Date(2026, 4, 1, 9, 0, 0, 0, auckland), day(2026, 3, 1), day(2026, 4, 1)},
		"a 31st has a next": {day(2026, 1, 31), day(2026, 1, 1), day(2026, 2, 1)},
	} {
		start, end := Period(tt.at)
		if !start.Equal(tt.start) || !end.Equal(tt.end) {
			t.Errorf("%s: from %v to %v", name, start, end)
		}
	}
}

func TestAGBForAMonthCostsTheRateWhicheverMonth(t *testing.T) {
	t.Parallel()
	rates := DefaultCatalog().Rates
	rapid.Check(t, func(t *rapid.T) {
		month := day(rapid.IntRange(2020, 2060).Draw(t, "year"), time.Month(rapid.IntRange(1, 12).Draw(t, "month")), 1)
		gigabytes := rapid.Int64Range(0, 1<<20).Draw(t, "gb")
		before := drawCarry(t)
		total, after := keep(rates, month, before, func(int) int64 { return gigabytes * GB })
		if want := rates.StorageGBMonth * Amount(gigabytes); total != want || after != before {
			t.Fatalf("%d GB for a month cost %s instead of %s, and %d became %d", gigabytes, total, want, before, after)
		}
	})
}

func TestDaysOfStorageAddUpToTheLastPart(t *testing.T) {
	t.Parallel()
	rates := DefaultCatalog().Rates
	rapid.Check(t, func(t *rapid.T) {
		month := day(2026, time.Month(rapid.IntRange(1, 12).Draw(t, "month")), 1)
		hourly := rapid.SliceOfN(rapid.Int64Range(0, 1<<50), 24, 24).Draw(t, "bytes")
		before := drawCarry(t)
		total, after := keep(rates, month, before, func(hour int) int64 { return hourly[hour] })

		kept := new(big.Int)
		for _, bytes := range hourly {
			kept.Add(kept, big.NewInt(bytes))
		}
		// Both in parts: what every day kept times its price, and what was charged
		// with the change of the carry.
		kept.Mul(kept, big.NewInt(int64(rates.StorageGBMonth)*daysMultiple))
		charged := new(big.Int).Mul(big.NewInt(int64(total)), big.NewInt(partsPerMicro))
		charged.Add(charged, big.NewInt(int64(after-before)))
		if kept.Cmp(charged) != 0 {
			t.Fatalf("kept %v parts, charged %v", kept, charged)
		}
	})
}

func TestTheCarryIsAlwaysLessThanAMicroCredit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rates := Rates{StorageGBMonth: Amount(rapid.Int64Range(0, int64(maxRate)).Draw(t, "rate"))}
		samples := rapid.SliceOfN(rapid.Int64(), 0, 24).Draw(t, "bytes")
		at := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "at"), 0)
		amount, after := rates.StorageDay(at, samples, drawCarry(t))
		if amount < 0 || after < 0 || int64(after) >= partsPerMicro {
			t.Fatalf("got %s and a carry of %d", amount, after)
		}
	})
}

func TestADayOfStorageWithoutSamplesIsFree(t *testing.T) {
	t.Parallel()
	amount, after := DefaultCatalog().Rates.StorageDay(day(2026, 2, 3), nil, 7)
	if amount != 0 || after != 7 {
		t.Errorf("got %s and a carry of %d", amount, after)
	}
}

func TestMoreBytesThanThereAreCostAllThereIs(t *testing.T) {
	t.Parallel()
	samples := make([]int64, hoursPerDay)
	for i := range samples {
		samples[i] = math.MaxInt64
	}
	amount, _ := Rates{StorageGBMonth: maxRate}.StorageDay(day(2026, 2, 3), samples, 0)
	if amount != math.MaxInt64 {
		t.Errorf("got %s", amount)
	}
}

// keep keeps the same bytes on each day of a month, by the hour, and sums up
// what that costs.
func keep(rates Rates, month time.Time, carry Carry, bytes func(hour int) int64) (total Amount, after Carry) {
	samples := make([]int64, hoursPerDay)
	for hour := range samples {
		samples[hour] = bytes(hour)
	}
	start, end := Period(month)
	for at := start; at.Before(end); at = at.AddDate(0, 0, 1) {
		var amount Amount
		amount, carry = rates.StorageDay(at, samples, carry)
		total += amount
	}
	return total, carry
}

func drawCarry(t *rapid.T) Carry { return Carry(rapid.Int64Range(0, partsPerMicro-1).Draw(t, "carry")) }

func day(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}
