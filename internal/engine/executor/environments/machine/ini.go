package machine

import (
	"fmt"
	"strings"
)

// readINI reads the settings of a file as pip does, by section and name. A line that
// stands further to the right than the name before it continues its value. Errors
// name the line, and not what is in it.
func readINI(path, text string) (map[string]map[string]string, error) {
	sections := map[string]map[string]string{}
	var section map[string]string
	name, indent := "", 0
	for n, line := range strings.Split(text, "\n") {
		wrong := func(what string) error { return fmt.Errorf("%s, line %d: %s", path, n+1, what) }
		words := strings.TrimSpace(line)
		at := len(line) - len(strings.TrimLeft(line, " \t"))
		switch {
		case words == "" || words[0] == '#' || words[0] == ';':
		case name != "" && at > indent:
			section[name] += "\n" + words
		case words[0] == '[':
			title, _, closed := strings.Cut(words[1:], "]")
			if !closed || sections[title] != nil {
				return nil, wrong("a section needs a name in brackets that no other section has")
			}
			section, name = map[string]string{}, ""
			sections[title] = section
		default:
			i := strings.IndexAny(words, "=:")
			if i <= 0 || section == nil {
				return nil, wrong("it is neither a section nor a setting `name = value` in one")
			}
			name, indent = strings.TrimSpace(words[:i]), at
			name = strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(name), "--"), "_", "-")
			if _, twice := section[name]; twice {
				return nil, wrong("the setting is in the section already")
			}
			section[name] = strings.TrimSpace(words[i+1:])
		}
	}
	return sections, nil
}
