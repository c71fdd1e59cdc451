package shim

import (
	"slices"

	"github.com/millrace/millrace/internal/engine/executor/shim/firstprocess"
	"github.com/millrace/millrace/internal/engine/executor/shim/relay"
)

// shimArgument is the argument under which another program serves as shim.
const shimArgument = "__millrace-shim"

// What a shim can be asked to do.
const (
	limitFlag = "-limit" // a command, after its limits
	initFlag  = "-init"  // as the first process of a sandbox, with the limits of its commands
	relayFlag = "-relay" // a command, after the socket that it reaches at relay.Address
)

// IsShimCall reports whether a program was started as one of the shim's processes, in
// place of the small one. It then calls Main and exits with what that returns, before
// it does anything else.
func IsShimCall(args []string) bool { return len(args) > 1 && args[1] == shimArgument }

// Program is how to start a shim: the path of the small one, or of another
// program and how it is asked to be one.
type Program []string

// Small is a program that is nothing but a shim; Self is one that can be one.
func Small(path string) Program { return Program{path} }
func Self(path string) Program  { return Program{path, shimArgument} }

// Relay has a command run where program is this one, with a socket in reach.
func (p Program) Relay(program, socket string, argv ...string) []string {
	return slices.Concat([]string{program}, p[1:], []string{relayFlag, socket}, argv)
}

// OwnEnv is the environment of a shim beside a command, and of the first process of a
// sandbox. They do one thing after the other: more processors would only take them
// threads and memory.
var OwnEnv = []string{"GOMAXPROCS=1"}

// Main does what the arguments ask for, and returns the status to exit with.
func Main(args []string) int {
	if IsShimCall(args) {
		args = args[1:]
	}
	switch {
	case len(args) == 2 && args[1] == VersionFlag:
		return Version
	case len(args) == 4 && args[1] == initFlag || len(args) > 4 && args[1] == limitFlag:
		limits, err := firstprocess.ParseLimits(args[2], args[3])
		switch {
		case err != nil:
			return BadArguments
		case args[1] == initFlag:
			return firstprocess.Run(limits)
		}
		return limits.Exec(args[4:])
	case len(args) > 3 && args[1] == relayFlag:
		return relay.Run(args[2], args[3:])
	}
	return BadArguments
}
