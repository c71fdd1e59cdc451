package reader

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled when it is first needed. All
// of them took a fifth of a server's heap at rest, and few servers read papers.
type pattern func() *regexp.Regexp

func compiled(expression string) pattern {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
