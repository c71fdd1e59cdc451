package executor

import (
	"fmt"
	"strings"
)

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

// ExitMessage says of a command that it failed by itself, and why if its log tells.
func ExitMessage(node string, code int, log string) string {
	said := fmt.Sprintf("%s exited with status %d", node, code)
	if NestedSandbox(log) {
		said += ": it tried to start a sandbox or container of its own, which a task cannot. Set `image` on the step, or switch the tool's own sandbox off"
	}
	return said
}
