package environment

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// MatchSpec is one conda package by name, as conda writes it on the command
// line. Channels, addresses, paths and keys in brackets are none.
type MatchSpec struct {
	Name    string
	Version string // such as >=1.2,<2 or 1.20.*; empty: any
	Build   string // with * for anything; empty: any
}

// String is the package in its one spelling.
func (m MatchSpec) String() string {
	if m.Version == "" && m.Build != "" {
		m.Version = "*" // or the build would be taken for one
	}
	return strings.TrimRight(m.Name+" "+m.Version+" "+m.Build, " ")
}

// MaxChannels are those that one environment may name.
const MaxChannels = 10

const condaWord = `[A-Za-z0-9_.+!]+`

var (
	matchSpec    = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]*)[ \t]*(.*)$`)
	exactBuild   = regexp.MustCompile(`^=?=[ \t]*(` + condaWord + `)=([A-Za-z0-9_.+*]+)$`)
	versionBuild = regexp.MustCompile(`^([^ \t]+)[ \t]+([A-Za-z0-9_.+*]+)$`)
	condaClause  = regexp.MustCompile(`^(==|!=|<=|>=|~=|=|<|>)?[ \t]*(` + condaWord + `?)(\.?\*)?$`)
	channelName  = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
)

// ParseMatchSpec reads a package with its versions. What a tool of conda would
// take for anything else is refused here, so that it never sees it.
func ParseMatchSpec(text string) (m MatchSpec, err error) {
	text = strings.Trim(text, " \t")
	switch {
	case text == "":
		return m, errors.New("is empty")
	case len(text) > MaxRequirement:
		return m, fmt.Errorf("is longer than %d characters", MaxRequirement)
	case strings.ContainsFunc(text, func(c rune) bool { return c != '\t' && (c < ' ' || c > '~') }):
		return m, errors.New("holds a character that no package has")
	case strings.HasPrefix(text, "-"):
		return m, fmt.Errorf("`%s` is an option of a tool: only packages can be named", short(text))
	case strings.Contains(text, "://") || strings.Contains(text, "@"):
		return m, fmt.Errorf("`%s` is an address: only packages of the operator's channels can be named", short(text))
	case strings.Contains(text, ":"):
		return m, fmt.Errorf("`%s` names a channel: list it in `channels`", short(text))
	case strings.ContainsAny(text, `/\#`):
		return m, fmt.Errorf("`%s` is a path: only packages can be named", short(text))
	case strings.ContainsAny(text, `[]()'"`):
		return m, fmt.Errorf("`%s` has brackets or quotes: write `name=version=build`", short(text))
	}
	found := matchSpec.FindStringSubmatch(text)
	if found == nil {
		return m, fmt.Errorf("`%s` is not a package such as `samtools=1.20`", short(text))
	}
	m.Name = strings.ToLower(found[1])
	rest := found[2]
	if exact := exactBuild.FindStringSubmatch(rest); exact != nil {
		m.Version, m.Build = "=="+exact[1], exact[2]
		return m, nil
	}
	if parts := versionBuild.FindStringSubmatch(rest); parts != nil && !endsOpen(parts[1]) {
		rest, m.Build = parts[1], parts[2]
	}
	m.Version, err = parseCondaVersion(rest)
	return m, err
}

// endsOpen reports whether what follows still belongs to a version.
func endsOpen(text string) bool {
	return strings.HasSuffix(text, ",") || strings.HasSuffix(text, "|") || strings.Trim(text, "=<>!~") == ""
}

// parseCondaVersion reads clauses, of which `,` joins those that must all hold
// and `|` those of which one must.
func parseCondaVersion(text string) (string, error) {
	if text == "" || text == "*" {
		return "", nil
	}
	var either []string
	for part := range strings.SplitSeq(text, "|") {
		var all []string
		for clause := range strings.SplitSeq(part, ",") {
			one, ok := condaVersionClause(strings.Trim(clause, " \t"))
			if !ok {
				return "", fmt.Errorf("`%s` is not a version such as `=1.20` or `>=1.2,<2`", short(clause))
			}
			all = append(all, one)
		}
		slices.Sort(all)
		either = append(either, strings.Join(slices.Compact(all), ","))
	}
	slices.Sort(either)
	return strings.Join(slices.Compact(either), "|"), nil
}

// condaVersionClause writes a clause with the operator that it stands for: one
// `=` is any version that begins so, and none is that version.
func condaVersionClause(text string) (string, bool) {
	found := condaClause.FindStringSubmatch(text)
	if found == nil || found[2] == "" {
		return "", false
	}
	operator, version, open := found[1], found[2], found[3] != ""
	switch {
	case strings.HasSuffix(version, "."):
		return "", false
	case operator == "=" || open && (operator == "" || operator == "=="):
		return version + ".*", true
	case operator == "!=" && open:
		return operator + version + ".*", true
	case open: // of the others the star says nothing
		return operator + version, true
	case operator == "":
		return "==" + version, true
	}
	return operator + version, true
}

// CheckChannel says what is wrong with the name of a channel, or nothing.
func CheckChannel(name string) string {
	if !channelName.MatchString(name) {
		return "is not the name of a channel such as `conda-forge`: addresses are the operator's"
	}
	return ""
}
