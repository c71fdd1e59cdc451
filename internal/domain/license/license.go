// Package license knows the identifiers of the SPDX license list, by which people say
// under which terms others may use their work.
package license

import (
	_ "embed"
	"strings"
	"sync"
)

// identifiers are those of the list, one a line, without the deprecated ones: spdx-license-ids
// 3.0.23, which is in the public domain (CC0-1.0).
//
//go:embed ids.txt
var identifiers string

var known = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for id := range strings.Lines(identifiers) {
		id = strings.TrimSpace(id)
		all[strings.ToLower(id)] = id
	}
	return all
})

// Checked is an identifier as the list spells it, whatever the case of its letters. The
// empty one stays empty. What is no identifier has a message that says so.
func Checked(id string) (clean, message string) {
	id = strings.TrimSpace(id)
	if id == "" {
		return "", ""
	}
	clean, ok := known()[strings.ToLower(id)]
	if !ok {
		return "", "needs one identifier of the SPDX license list, such as MIT, Apache-2.0 or CC-BY-4.0"
	}
	return clean, ""
}

// URL is the page that explains a license.
func URL(id string) string { return "https://spdx.org/licenses/" + id }
