package environment

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Requirement is one package by name, as PEP 508 writes it. Addresses, paths
// and options of installers are none.
type Requirement struct {
	Name    string   // normal
	Extras  []string // normal, sorted
	Version string   // such as >=2,<3; empty: any
	Marker  string   // when it applies; empty: always
}

// String is the requirement in its one spelling.
func (r Requirement) String() string {
	text := r.Name
	if len(r.Extras) > 0 {
		text += "[" + strings.Join(r.Extras, ",") + "]"
	}
	text += r.Version
	if r.Marker != "" {
		text += " ; " + r.Marker
	}
	return text
}

const name = `[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?`

var (
	requirement = regexp.MustCompile(`^(` + name + `)[ \t]*(?:\[([^\]]*)\])?[ \t]*([^;]*?)[ \t]*(?:;(.*))?$`)
	plainName   = regexp.MustCompile(`^` + name + `$`)
	clause      = regexp.MustCompile(`^(===|==|!=|<=|>=|~=|<|>)[ \t]*([A-Za-z0-9][A-Za-z0-9.*!+_-]*)$`)
	separators  = regexp.MustCompile(`[-_.]+`)
)

// normalName is the spelling under which indexes know a package.
func normalName(s string) string { return strings.ToLower(separators.ReplaceAllString(s, "-")) }

// ParseRequirement reads a requirement. What an installer would take for
// anything else is refused here, so that it never sees it.
func ParseRequirement(text string) (r Requirement, err error) {
	text = strings.Trim(text, " \t")
	switch {
	case text == "":
		return r, errors.New("is empty")
	case len(text) > MaxRequirement:
		return r, fmt.Errorf("is longer than %d characters", MaxRequirement)
	case strings.ContainsFunc(text, func(c rune) bool { return c != '\t' && (c < ' ' || c > '~') }):
		return r, errors.New("holds a character that no requirement has")
	case strings.HasPrefix(text, "-"):
		return r, fmt.Errorf("`%s` is an option of an installer: only packages can be named", short(text))
	case strings.Contains(text, "://") || strings.Contains(text, "@"):
		return r, fmt.Errorf("`%s` is an address: only packages of the operator's indexes can be named", short(text))
	case strings.ContainsAny(text, `/\#`):
		return r, fmt.Errorf("`%s` is a path: only packages can be named", short(text))
	}
	found := requirement.FindStringSubmatch(text)
	if found == nil {
		return r, fmt.Errorf("`%s` is not a requirement such as `pandas==2.2.*`", short(text))
	}
	r.Name = normalName(found[1])
	if r.Extras, err = parseExtras(found[2]); err != nil {
		return r, err
	}
	if r.Version, err = parseVersion(found[3]); err != nil {
		return r, err
	}
	if strings.Contains(text, ";") {
		r.Marker, err = parseMarker(found[4])
	}
	return r, err
}

func parseExtras(text string) (extras []string, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for extra := range strings.SplitSeq(text, ",") {
		extra = strings.Trim(extra, " \t")
		if !plainName.MatchString(extra) {
			return nil, fmt.Errorf("`%s` is not the name of an extra", short(extra))
		}
		extras = append(extras, normalName(extra))
	}
	slices.Sort(extras)
	return slices.Compact(extras), nil
}

func parseVersion(text string) (string, error) {
	if inner, ok := strings.CutPrefix(text, "("); ok {
		if inner, ok = strings.CutSuffix(inner, ")"); ok {
			text = inner
		}
	}
	if text = strings.Trim(text, " \t"); text == "" {
		return "", nil
	}
	var clauses []string
	for part := range strings.SplitSeq(text, ",") {
		found := clause.FindStringSubmatch(strings.Trim(part, " \t"))
		if found == nil {
			return "", fmt.Errorf("`%s` is not a version such as `==2.2.*` or `>=1.26,<3`", short(part))
		}
		clauses = append(clauses, found[1]+found[2])
	}
	slices.Sort(clauses)
	return strings.Join(slices.Compact(clauses), ","), nil
}
