package bounds

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

const (
	maxPattern  = 1_000
	maxPatterns = 16 << 10 // all together
	maxSteps    = 2_000    // of one, unfolded
)

// Pattern is a regular expression that was weighed before it was compiled.
type Pattern struct {
	*regexp.Regexp
	Steps int // of its program, about
}

// CompilePattern refuses what unfolds into a huge program: a few characters can
// ask for millions of steps.
func CompilePattern(s string) (*Pattern, error) {
	if len(s) > maxPattern {
		return nil, fmt.Errorf("a pattern has at most %d characters", maxPattern)
	}
	parsed, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil, err
	}
	steps := unfolded(parsed)
	if steps > maxSteps {
		return nil, errors.New("the pattern is too complex")
	}
	compiled, err := regexp.Compile(s)
	return &Pattern{compiled, steps}, err
}

var foldsCase = regexp.MustCompile(`\(\?[a-zA-Z]*i`)

// patternSize is what compiling a pattern costs, in characters of a plain one:
// where case is ignored, each character of a range is looked up on its own.
func patternSize(s string) int {
	if foldsCase.MatchString(s) {
		return 10 * len(s)
	}
	return len(s)
}

// unfolded counts the steps of a regular expression with its repetitions
// written out. It gives up beyond the bound.
func unfolded(re *syntax.Regexp) int {
	total := 1 + len(re.Rune)/16
	switch re.Op {
	case syntax.OpLiteral:
		total = len(re.Rune)
	case syntax.OpRepeat:
		total = 0
	}
	for _, sub := range re.Sub {
		if total += unfolded(sub); total > maxSteps {
			return total
		}
	}
	if re.Op == syntax.OpRepeat {
		total *= max(re.Min+1, re.Max)
	}
	return total
}

// Patterns are those of one definition, each compiled once.
type Patterns struct {
	known map[string]*Pattern
	size  int
}

// Compile is CompilePattern, for all of a definition together.
func (p *Patterns) Compile(s string) (*Pattern, error) {
	if known := p.known[s]; known != nil {
		return known, nil
	}
	if p.size += patternSize(s); p.size > maxPatterns {
		return nil, fmt.Errorf("the patterns of the workflow are together longer than %d KB", maxPatterns>>10)
	}
	compiled, err := CompilePattern(s)
	if err != nil {
		return nil, err
	}
	if p.known == nil {
		p.known = map[string]*Pattern{}
	}
	p.known[s] = compiled
	return compiled, nil
}
