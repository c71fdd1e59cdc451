package sandbox

import (
	"strconv"
	"strings"

	"github.com/millrace/millrace/internal/domain/credits"
)

// money is an amount in a currency's minor unit as people write it: "45.00 USD".
func money(minor int64, currency string) string {
	digits := strconv.FormatUint(magnitude(minor), 10)
	if places := minorDigits(currency); places > 0 {
		digits = strings.Repeat("0", max(0, places+1-len(digits))) + digits
		cut := len(digits) - places
		digits = grouped(digits[:cut]) + "." + digits[cut:]
	} else {
		digits = grouped(digits)
	}
	if minor < 0 {
		digits = "−" + digits
	}
	return digits + " " + strings.ToUpper(currency)
}

// minorDigits is how many decimals a currency has, as card networks count.
func minorDigits(currency string) int {
	switch currency {
	case "bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "ugx", "vnd", "vuv", "xaf", "xof", "xpf":
		return 0
	case "bhd", "jod", "kwd", "omr", "tnd":
		return 3
	default:
		return 2
	}
}

// count is a number of credits with its thousands set apart: "20,000".
func count(a credits.Amount) string {
	whole, fraction, dotted := strings.Cut(a.String(), ".")
	if dotted {
		return grouped(whole) + "." + fraction
	}
	return grouped(whole)
}

func grouped(digits string) string {
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}
