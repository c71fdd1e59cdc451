package reader

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What a page may hold whose blocks are tried in another order.
const (
	maxUnits    = 60
	maxHeadings = 30
)

// unit is what moves as one when columns are told apart: a block of lines, or
// the cells of a table.
type unit struct {
	lines []line
	ranks []int // of the headings in it
	bare  bool  // it is a heading and nothing else
	prose bool
}

// unweave puts the columns of a page back one after the other where text
// extraction took their blocks in turn, left, right, left, right. That this
// happened is seen by the headings: their numbers run backwards, or one stands
// on another that it has nothing to do with.
func unweave(page []line) []line {
	units, headings := unitsOf(page), 0
	for _, u := range units {
		headings += len(u.ranks)
	}
	if len(units) < 4 || len(units) > maxUnits || headings > maxHeadings || !woven(units) {
		return page
	}
	best, least := units, cost(units)
	before := least
	for s := range min(8, len(units)-3) {
		for e := len(units); e >= s+4; e-- {
			try := sideBySide(units, s, e)
			if c := cost(try); c < least {
				best, least = try, c
			}
		}
	}
	if least*2 > before {
		return page
	}
	var sorted []line
	for _, u := range best {
		sorted = append(sorted, u.lines...)
	}
	return sorted
}

// sideBySide takes the units from s to e as those of two columns in turn.
func sideBySide(units []unit, s, e int) []unit {
	all := append([]unit{}, units[:s]...)
	for i := s; i < e; i += 2 {
		all = append(all, units[i])
	}
	for i := s + 1; i < e; i += 2 {
		all = append(all, units[i])
	}
	return append(all, units[e:]...)
}

func unitsOf(page []line) []unit {
	var units []unit
	for i, l := range page {
		r, isHeading := rank(l.text)
		if l.gap || i == 0 {
			units = append(units, unit{bare: isHeading})
		}
		u := &units[len(units)-1]
		if u.lines = append(u.lines, l); len(u.lines) > 1 && !isHeading {
			u.bare = false
		}
		if isHeading {
			u.ranks = append(u.ranks, r)
		}
		u.prose = u.prose || len(strings.Fields(l.text)) > 4
	}
	var merged []unit
	for _, u := range units {
		if n := len(merged); n > 0 && !u.prose && len(u.ranks) == 0 && !merged[n-1].prose && len(merged[n-1].ranks) == 0 {
			merged[n-1].lines = append(merged[n-1].lines, u.lines...)
			continue
		}
		merged = append(merged, u)
	}
	return merged
}

// places of the headings that have no number, on the scale of those that do.
var placeOf = map[Kind]int{Abstract: 0, Introduction: 100, Methods: 200, Results: 300, Discussion: 400, Conclusion: 500, Availability: 9000, Back: 9100, References: 9200}

var romans = []string{"I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X"}

// rank says where in a paper a heading belongs.
func rank(text string) (int, bool) {
	if len(text) > 90 || strings.HasSuffix(text, ".") {
		return 0, false
	}
	title, number := text, numbered().FindStringSubmatch(text)
	if number != nil && titled(number[2], 9) {
		title = number[2]
		major, minor, _ := strings.Cut(strings.TrimRight(number[1], ".)"), ".")
		n, err := strconv.Atoi(major)
		if err != nil {
			n = 1 + slices.Index(romans, major)
		}
		if n > 0 {
			minor, _, _ = strings.Cut(minor, ".") // 3.1.2 stands where 3.1 does
			m, _ := strconv.Atoi(minor)
			return 100*n + m, true
		}
	}
	first, _ := utf8.DecodeRuneInString(title)
	kind := kindOf(title)
	place, known := placeOf[kind]
	return place, known && !unicode.IsLower(first)
}

// woven reports whether the headings of a page betray columns taken in turn.
func woven(units []unit) bool {
	last := -1
	for i, u := range units {
		for _, r := range u.ranks {
			if r%100 != 0 && r < last && last < 9000 {
				return true
			}
			last = max(last, r)
		}
		if i > 0 && units[i-1].bare && len(u.ranks) > 0 {
			a, b := units[i-1].ranks[len(units[i-1].ranks)-1], u.ranks[0]
			if b < a || b/100 > a/100+1 {
				return true
			}
		}
	}
	return inversions(units) > 0 && numberedThroughout(units)
}

// numberedThroughout reports whether at least three headings have numbers of
// their own, which never run backwards.
func numberedThroughout(units []unit) bool {
	count := 0
	for _, u := range units {
		for _, l := range u.lines {
			if m := numbered().FindStringSubmatch(l.text); m != nil && titled(m[2], 9) && unicode.IsDigit(rune(m[1][0])) {
				count++
			}
		}
	}
	return count >= 3
}

// cost is how much speaks against an order: headings that run backwards above
// all, then sentences that are torn.
func cost(units []unit) int {
	torn := 0
	for i := 1; i < len(units); i++ {
		a, b := units[i-1], units[i]
		if !a.prose || !b.prose {
			continue
		}
		first, _ := utf8.DecodeRuneInString(b.lines[0].text)
		if ends(a.lines[len(a.lines)-1].text) == unicode.IsLower(first) {
			torn++
		}
	}
	return 4*inversions(units) + torn
}

// inversions counts the pairs of headings that stand the wrong way round.
func inversions(units []unit) int {
	var all []int
	count := 0
	for _, u := range units {
		for _, r := range u.ranks {
			for _, before := range all {
				if before > r {
					count++
				}
			}
			all = append(all, r)
		}
	}
	return count
}
