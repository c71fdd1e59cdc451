// Package spelling finds the name that somebody meant.
package spelling

import "strings"

// DidYouMean ends a message with the known name nearest to what was written, or
// with nothing when none is near.
func DidYouMean(written string, known []string) string {
	if near := Nearest(written, known); near != "" {
		return `; did you mean "` + near + `"?`
	}
	return ""
}

// Nearest returns the known name nearest to what was written, or nothing when
// none is near.
func Nearest(written string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if d := distance(strings.ToLower(written), strings.ToLower(k), least); d < least {
			best, least = k, d
		}
	}
	if best == "" || least >= len(best) {
		return ""
	}
	return best
}

// distance counts the single-character edits between a and b, giving up with
// most once it cannot be less.
func distance(a, b string, most int) int {
	if len(a) > 80 || len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
