package settingsfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Given are the settings that the command line names.
func Given(parsed *kong.Context) (set []Setting) {
	for _, p := range parsed.Path {
		if p.Flag == nil || p.Flag.Name == "config" {
			continue
		}
		set = Propose(set, p.Flag.Name, text(parsed.FlagValue(p.Flag)))
	}
	return set
}

// Propose adds a setting, unless it is there.
func Propose(set []Setting, name, value string) []Setting {
	if slices.ContainsFunc(set, func(s Setting) bool { return s.Name == name }) {
		return set
	}
	return append(set, Setting{name, value})
}

// text is a value as it is read.
func text(value any) string {
	switch v := value.(type) {
	case []string:
		return strings.Join(v, ",")
	case map[string]string:
		var list []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			list = append(list, k+"="+v[k])
		}
		return strings.Join(list, ";")
	default:
		return fmt.Sprint(v)
	}
}
