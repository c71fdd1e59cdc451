package kernel

import (
	"net/http"
	"slices"
	"strings"
)

// ETagList is the ETags of a conditional request; nil when it is unconditional.
type ETagList []string

// ETags reads them from a header.
func ETags(r *http.Request, header string) ETagList {
	values, given := r.Header[http.CanonicalHeaderKey(header)]
	if !given {
		return nil
	}
	list := ETagList{}
	for t := range strings.SplitSeq(strings.Join(values, ","), ",") {
		list = append(list, strings.TrimSpace(t))
	}
	return list
}

// Has compares weakly, as If-None-Match does.
func (t ETagList) Has(etag string) bool {
	return slices.ContainsFunc(t, func(one string) bool { return one == "*" || strings.TrimPrefix(one, "W/") == etag })
}
