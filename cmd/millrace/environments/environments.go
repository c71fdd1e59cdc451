// Package environments is how the operator says which software may be built for
// tasks.
package environments

import (
	"context"
	"errors"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor/environments"
	"github.com/millrace/millrace/internal/engine/runimages"
)

// EnvironmentSettings say which software may be built for tasks.
type EnvironmentSettings struct {
	Environments     string   `default:"on" enum:"on,off" help:"Build the environments that steps ask for, where uv is installed: on, off." group:"tasks"`
	EnvironmentCache string   `default:"50GB" help:"Disk space for environments; the ones not used for longest make room." group:"tasks"`
	PipIndexURL      []string `default:"machine" help:"Indexes that Python packages come from, and no others; the first that has a package is the only one asked for it. machine: those that pip on this machine uses. Without one nothing is built." group:"tasks"`
	PipIndexURLFile  string   `name:"pip-index-url-file" help:"File with the value of --pip-index-url." group:"tasks"`
	CondaChannels    []string `default:"machine" help:"Channels that conda packages come from, and no others, by address; its last word is the channel's name. machine: those that conda on this machine is told of. Their installer comes from --pip-index-url." group:"tasks"`
	PythonMirror     string   `help:"Mirror of python-build-standalone's releases that versions of Python come from which the machine lacks. Without one there are only the machine's own." group:"tasks"`
}

// Open opens the cache of environments; size reads how large it may be.
func (s EnvironmentSettings) Open(c environments.Config, sandbox string, size func(string) (int64, error)) (_ *environments.Store, err error) {
	if c.MaxTotal, err = size(s.EnvironmentCache); err != nil {
		return nil, err
	}
	c.Off, c.Indexes, c.Channels, c.PythonMirror = s.Environments == "off" || sandbox == "none", s.PipIndexURL, s.CondaChannels, s.PythonMirror
	return environments.Open(c)
}

// Of is where the environments of a team come from.
func Of(s *environments.Store) func(ids.Team) runimages.Store {
	return func(team ids.Team) runimages.Store { return s.For(team) }
}

// Check reports why tasks could not use environments of Python packages, and why not of
// conda packages.
func (s EnvironmentSettings) Check(ctx context.Context, sandbox string, allowPrivate bool) (python, conda error) {
	if sandbox == "none" {
		err := errors.New("--sandbox none: steps with an `environment` are refused")
		return err, err
	}
	c := environments.Config{Off: s.Environments == "off", Indexes: s.PipIndexURL, Channels: s.CondaChannels, PythonMirror: s.PythonMirror, AllowPrivate: allowPrivate}
	return environments.Check(ctx, c), environments.CheckConda(ctx, c)
}
