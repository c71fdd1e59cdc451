package httpapi

// Words tells tests which routes have a word in the audit log.
func Words() map[string]string { return actions }

// CountedRoutes tells tests which routes the limit of changes a day may refuse.
func CountedRoutes() (patterns []string) {
	a := New(Options{})
	for _, rt := range a.routes() {
		if a.server.CountsChanges(rt) {
			patterns = append(patterns, rt.Pattern)
		}
	}
	return patterns
}
