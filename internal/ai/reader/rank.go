package reader

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// maxRanked bounds the sentences that are compared with one another.
const maxRanked = 300

// candidate is a sentence that may be picked.
type candidate struct {
	text   string
	weight float64 // how much its place in the paper speaks for it
}

// pick chooses the sentences that say most (TextRank: a sentence counts as
// much as those that share its words), in their order, up to so many and so
// many letters.
func pick(all []candidate, most, letters int) []string {
	all = slices.DeleteFunc(slices.Clone(all), func(c candidate) bool { return !quotable(c.text) })
	if len(all) > maxRanked {
		kept := inOrder(len(all), func(i int) float64 { return all[i].weight })[:maxRanked]
		slices.Sort(kept)
		for i, at := range kept {
			all[i] = all[at]
		}
		all = all[:maxRanked]
	}
	rank := ranks(all)
	var chosen []int
	for _, i := range inOrder(len(all), func(i int) float64 { return rank[i] }) {
		if len(chosen) == most {
			break
		}
		if len(all[i].text) <= letters && !slices.ContainsFunc(chosen, func(j int) bool { return all[j].text == all[i].text }) {
			chosen, letters = append(chosen, i), letters-len(all[i].text)
		}
	}
	slices.Sort(chosen)
	var texts []string
	for _, i := range chosen {
		texts = append(texts, all[i].text)
	}
	return texts
}

// inOrder numbers n things, what counts most first, and of equals the first.
func inOrder(n int, counts func(i int) float64) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(counts(b), counts(a)) })
	return order
}

// quotable reports whether a text reads as a sentence.
func quotable(text string) bool {
	if len(text) < 40 || len(text) > 500 || !ends(text) {
		return false
	}
	plain := 0
	for _, r := range text {
		if r >= 'a' && r <= 'z' || r == ' ' {
			plain++
		}
	}
	return plain*10 >= len(text)*7
}

// ranks is how much each sentence counts.
func ranks(all []candidate) []float64 {
	const rounds, damping = 30, 0.85
	n := len(all)
	similarity, totals := similarities(all)
	bias, total := make([]float64, n), 0.0
	for _, c := range all {
		total += c.weight
	}
	for i, c := range all {
		bias[i] = c.weight / max(total, 1)
	}
	rank := slices.Clone(bias)
	for range rounds {
		next := make([]float64, n)
		for i := range n {
			next[i] = (1 - damping) * bias[i]
			for j := range n {
				if similarity[i][j] > 0 {
					next[i] += damping * bias[i] * float64(n) * rank[j] * similarity[i][j] / totals[j]
				}
			}
		}
		rank = next
	}
	return rank
}

// similarities compares each sentence with each other by the words they share.
func similarities(all []candidate) (similarity [][]float64, totals []float64) {
	bags := make([]map[string]bool, len(all))
	similarity, totals = make([][]float64, len(all)), make([]float64, len(all))
	for i, c := range all {
		bags[i], similarity[i] = bag(c.text), make([]float64, len(all))
	}
	for i := range all {
		for j := range i {
			shared := 0
			for w := range bags[i] {
				if bags[j][w] {
					shared++
				}
			}
			if shared == 0 {
				continue
			}
			s := float64(shared) / (math.Log(float64(1+len(bags[i]))) + math.Log(float64(1+len(bags[j]))))
			similarity[i][j], similarity[j][i] = s, s
			totals[i] += s
			totals[j] += s
		}
	}
	return similarity, totals
}

// bag is the words of a sentence that carry meaning, without their endings.
func bag(text string) map[string]bool {
	words := map[string]bool{}
	for _, w := range word().FindAllString(strings.ToLower(text), -1) {
		if len(w) > 3 && !common[w] {
			words[w[:min(len(w), 6)]] = true
		}
	}
	return words
}

var common = set("this,that,these,those,with,from,were,have,been,which,their,than,then,also,between,both,such,using,used,into,more,most,other,each,after,before,over,under,when,where,while,during,because,however,therefore,thus,here,there,they,them,will,would,could,should,about,only,some,many,much,very,same,through,based,does,being,within,without,among")
