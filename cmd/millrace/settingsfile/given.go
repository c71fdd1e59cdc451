package settingsfile

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/alecthomas/kong"
)

// Given are the settings that the command line names, and those of variables: the
// service that reads the file has other variables, or none.
func Given(parsed *kong.Context) ([]Setting, error) {
	var set []Setting
	for _, flag := range parsed.Selected().Flags {
		named := slices.ContainsFunc(parsed.Path, func(p *kong.Path) bool { return p.Flag == flag }) ||
			slices.ContainsFunc(flag.Envs, func(name string) bool { _, is := os.LookupEnv(name); return is })
		if !named || flag.Name == "config" || flag.Name == "help" {
			continue
		}
		value, err := text(flag, parsed.FlagValue(flag))
		if err != nil {
			return nil, err
		}
		set = append(set, Setting{flag.Name, value})
	}
	return set, nil
}

// Propose adds a setting, unless it is there.
func Propose(set []Setting, name, value string) []Setting {
	if slices.ContainsFunc(set, func(s Setting) bool { return s.Name == name }) {
		return set
	}
	return append(set, Setting{name, value})
}

// text is a value as it is read.
func text(flag *kong.Flag, value any) (string, error) {
	list, separator := []string(nil), flag.Tag.Sep
	switch v := value.(type) {
	case []string:
		list = v
	case map[string]string:
		separator = flag.Tag.MapSep
		for _, k := range slices.Sorted(maps.Keys(v)) {
			list = append(list, k+"="+v[k])
		}
	default:
		return fmt.Sprint(v), nil
	}
	joined := kong.JoinEscaped(list, separator)
	if !slices.Equal(kong.SplitEscaped(joined, separator), list) { // such as one that ends in a backslash
		return "", fmt.Errorf("--%s cannot be written to a file: %q", flag.Name, list)
	}
	return joined, nil
}
