package command

import (
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor"
)

// The kernel's bounds on what a program is started with, on every machine: of
// one variable with its name, and of all together on the usual stack of 8 MB.
const (
	maxVariable    = 128<<10 - 1
	maxEnvironment = 1536 << 10
)

// Check refuses what could not reach the command byte for byte.
func Check(s executor.Spec) error {
	texts := map[string]string{"the command": s.Command, "the interpreter": s.Interpreter}
	sum := 0
	for name, value := range s.Env {
		if !validText(name) || name == "" || strings.Contains(name, "=") {
			return fault.Invalid("an environment variable cannot be called %q", name)
		}
		texts[name] = value
		size := len(name) + len("=") + len(value)
		if sum += size; size > maxVariable {
			return fault.Invalid("%s is %d KB long, and an environment variable holds at most 128 KB: put larger values into a file", name, size>>10)
		}
	}
	if sum > maxEnvironment {
		return fault.Invalid("the environment of the command is %d KB long, and at most %d KB are possible: put larger values into files", sum>>10, maxEnvironment>>10)
	}
	for name, text := range texts {
		if !validText(text) {
			return fault.Invalid("%s has a NUL or bytes that are no UTF-8 in it, which cannot be handed to a command", name)
		}
	}
	return nil
}

func validText(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }
