package httpapi

// Words tells tests which routes have a word in the audit log.
func Words() map[string]string { return actions }
