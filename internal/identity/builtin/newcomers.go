package builtin

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/domain/fault"
)

// Newcomers says which newcomers may come in through a provider where
// --sign-up admits none.
type Newcomers struct {
	Anybody bool
	Domains []string // of email addresses, in lower case
	Groups  []string // at the provider
}

// LongestGroup is how many bytes the name of a group may have.
const LongestGroup = 255

// A rule names a domain in ASCII, so that no two domains that look alike are one.
var domainName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// ParseNewcomers reads "open", "off", or rules such as domain=example.org and
// group=lab, of which one must fit.
func ParseNewcomers(rules []string) (n Newcomers, err error) {
	if slices.Equal(rules, []string{"open"}) {
		return Newcomers{Anybody: true}, nil
	}
	if len(rules) == 0 || slices.Equal(rules, []string{"off"}) {
		return Newcomers{}, nil
	}
	var wrong []error
	for _, rule := range rules {
		kind, value, _ := strings.Cut(rule, "=")
		domain := lowerASCII(value)
		switch {
		case kind == "domain" && len(value) < maxEmail && domainName.MatchString(domain):
			n.Domains = append(n.Domains, domain)
		case kind == "domain":
			wrong = append(wrong, fmt.Errorf("%q is not a domain such as example.org; write one with other letters in its xn-- form", value))
		case kind == "group" && GroupName(value):
			n.Groups = append(n.Groups, value)
		case kind == "group":
			wrong = append(wrong, fmt.Errorf("the name of a group has 1 to %d bytes in one line, unlike %q", LongestGroup, value))
		default:
			wrong = append(wrong, fmt.Errorf("%q is none of open, off, domain=… and group=…; open and off stand alone", rule))
		}
	}
	return n, errors.Join(wrong...)
}

// GroupName reports whether a text can be the name of a group at a provider.
func GroupName(name string) bool {
	_, ok := line(name)
	return ok && len(name) <= LongestGroup && strings.TrimSpace(name) == name
}

// Any reports whether anybody may come in through a provider.
func (n Newcomers) Any() bool { return n.Anybody || len(n.Domains) > 0 || len(n.Groups) > 0 }

// admit reports whether somebody with a verified address may come in.
func (n Newcomers) admit(e ExternalIdentity) bool {
	domain := e.Email[strings.LastIndexByte(e.Email, '@')+1:]
	return n.Anybody || slices.Contains(n.Domains, domain) || slices.ContainsFunc(e.Groups, func(group string) bool { return slices.Contains(n.Groups, group) })
}

// refusal tells somebody whom no rule admits why.
func (n Newcomers) refusal(e ExternalIdentity) error {
	hint := ""
	if len(n.Groups) > 0 {
		hint = e.NoGroups
	}
	return fault.Forbidden("this server admits new people by the domain of their email address or by their groups at the provider, and yours are not among those%s: ask the operator of this server", hint).WithCode("not_admitted")
}

// lowerASCII changes the capitals A to Z, and no letter that only looks like one.
func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}
