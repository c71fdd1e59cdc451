// Package command is how a task's command is started, wherever that is: its
// command line, and all the variables that it gets.
package command

import (
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/engine/executor"
)

const (
	// Path is where commands look for programs.
	Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	// User is what a command is told that it is called.
	User = "task"
	// inline is what fits on a command line with room to spare.
	inline = 100 << 10
)

// Line is how an interpreter is given its command, and whether that has to be
// in a file.
func Line(s executor.Spec, file string) (argv []string, script bool) {
	argv = []string{s.Interpreter}
	if s.Interpreter == "bash" {
		argv = append(argv, "-euo", "pipefail")
	}
	if shell := s.Interpreter == "bash" || s.Interpreter == "sh"; shell && len(s.Command) < inline {
		return append(argv, "-c", s.Command), false
	}
	return append(argv, file), true
}

// Environment is all that a command gets, but for what the machine adds.
func Environment(s executor.Spec) map[string]string {
	env := map[string]string{"PATH": Path, "HOME": "/tmp", "TMPDIR": "/tmp", "USER": User}
	maps.Copy(env, s.Env)
	return env
}

// Variables are an environment as the kernel takes it.
func Variables(env map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// HoldsSecret reports whether a value has a secret in it.
func HoldsSecret(value string, secrets []string) bool {
	return slices.ContainsFunc(secrets, func(s string) bool { return s != "" && strings.Contains(value, s) })
}
