package environment

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// markerNames are what a marker may ask about, as PEP 508 lists them.
var markerNames = []string{
	"python_version", "python_full_version", "os_name", "sys_platform", "platform_release", "platform_system",
	"platform_version", "platform_machine", "platform_python_implementation", "implementation_name", "implementation_version", "extra",
}

var markerToken = regexp.MustCompile(`^[ \t]*(\(|\)|===|==|!=|<=|>=|~=|<|>|[a-z_]+|"[A-Za-z0-9 .,*+!_-]*"|'[A-Za-z0-9 .,*+!_-]*')`)

// parseMarker checks the grammar of a marker and returns it with single spaces.
func parseMarker(text string) (string, error) {
	m := marker{}
	for rest := text; strings.Trim(rest, " \t") != ""; {
		found := markerToken.FindStringSubmatch(rest)
		if found == nil {
			return "", fmt.Errorf("the condition `%s` cannot be read at `%s`", short(text), short(strings.Trim(rest, " \t")))
		}
		m.tokens, rest = append(m.tokens, found[1]), rest[len(found[0]):]
	}
	if !m.either() || len(m.tokens) > m.at {
		return "", fmt.Errorf("the condition `%s` is not of the form `python_version < \"3.12\"`", short(text))
	}
	return strings.Join(m.tokens, " "), nil
}

// marker is one that is being read. Its depth is bounded by its length.
type marker struct {
	tokens []string
	at     int
}

func (m *marker) next() string {
	if m.at == len(m.tokens) {
		return ""
	}
	m.at++
	return m.tokens[m.at-1]
}

func (m *marker) accept(token string) bool {
	if m.at < len(m.tokens) && m.tokens[m.at] == token {
		m.at++
		return true
	}
	return false
}

func (m *marker) either() bool {
	ok := m.both()
	for ok && m.accept("or") {
		ok = m.both()
	}
	return ok
}

func (m *marker) both() bool {
	ok := m.one()
	for ok && m.accept("and") {
		ok = m.one()
	}
	return ok
}

func (m *marker) one() bool {
	if m.accept("(") {
		return m.either() && m.accept(")")
	}
	return m.operand() && m.comparison() && m.operand()
}

func (m *marker) operand() bool {
	token := m.next()
	return strings.HasPrefix(token, `"`) || strings.HasPrefix(token, `'`) || slices.Contains(markerNames, token)
}

func (m *marker) comparison() bool {
	switch m.next() {
	case "==", "===", "!=", "<", "<=", ">", ">=", "~=", "in":
		return true
	case "not":
		return m.accept("in")
	}
	return false
}
