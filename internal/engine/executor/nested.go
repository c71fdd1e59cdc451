package executor

import "strings"

// nestedSandboxErrors are the words with which programs say that they could not make a
// sandbox of their own, which the sandbox of a task refuses them.
var nestedSandboxErrors = []string{
	"bwrap: ", "unshare: unshare failed", "failed to create user namespace", "creating new namespace failed", "no usable sandbox",
	"could not create user namespace", "user namespace: operation not permitted",
}

// NestedSandbox reports whether a log ends with such words.
func NestedSandbox(log string) bool {
	log = strings.ToLower(log)
	for _, words := range nestedSandboxErrors {
		if strings.Contains(log, words) {
			return true
		}
	}
	return false
}
