package runs

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/fault"
)

// sweepName tells the runs of a sweep apart: "minQuality=20, mode=fast".
func sweepName(varied []string, values map[string]json.RawMessage, most int) string {
	parts := make([]string, len(varied))
	for i, name := range varied {
		text := string(values[name])
		var word string
		if json.Unmarshal(values[name], &word) == nil {
			text = strings.Join(strings.Fields(word), " ")
		}
		parts[i] = name + "=" + text
	}
	name := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.Join(parts, ", "))
	if utf8.RuneCountInString(name) > most {
		name = string([]rune(name)[:most-1]) + "…"
	}
	return name
}

// combinations are the parameters of each run: those that are common, and one
// combination of those that vary. The last name varies fastest.
func combinations(common []byte, vary map[string][]json.RawMessage, most int) ([]map[string]json.RawMessage, error) {
	base := map[string]json.RawMessage{}
	if common != nil {
		if err := json.Unmarshal(common, &base); err != nil {
			return nil, err
		}
		if base == nil { // null: there are none
			base = map[string]json.RawMessage{}
		}
	}
	if len(vary) == 0 {
		return nil, fault.Problems([]fault.Detail{{Path: "vary", Message: "names no parameter"}}, "vary names no parameter: say which takes which values")
	}
	list := []map[string]json.RawMessage{base}
	for _, name := range slices.Sorted(maps.Keys(vary)) {
		values := vary[name]
		d := fault.Detail{Path: "vary." + name}
		switch _, both := base[name]; {
		case both:
			d.Message = "is among the common parameters, too"
		case len(values) == 0:
			d.Message = "has no values"
		case len(values)*len(list) > most:
			d = fault.Detail{Path: "vary", Message: fmt.Sprintf("makes more than %d runs", most)}
		}
		if d.Message != "" {
			return nil, fault.Problems([]fault.Detail{d}, "%s %s", d.Path, d.Message)
		}
		var next []map[string]json.RawMessage
		for _, before := range list {
			for _, value := range values {
				one := maps.Clone(before)
				one[name] = value
				next = append(next, one)
			}
		}
		list = next
	}
	return list, nil
}
