package runimages

import (
	"cmp"
	"context"
	"strings"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/command"
)

// environmentPrefix begins the reference of an environment; no image's has it.
const environmentPrefix = "environment "

// EnvironmentRef is the reference of an environment, by what was asked for.
func EnvironmentRef(canonical string) string { return environmentPrefix + canonical }

// RefOf is what a node's software is called here: an image or an environment.
// It is empty for a node that has neither.
func RefOf(n *graph.Node) string {
	if n.Environment != nil {
		return EnvironmentRef(n.Environment.Canonical())
	}
	return n.Image
}

// For is where a team's images and environments come from. Either may be nil.
func For(images, environments func(ids.Team) Store) func(ids.Team) Store {
	return func(team ids.Team) Store {
		var s software
		if images != nil {
			s.images = images(team)
		}
		if environments != nil {
			s.environments = environments(team)
		}
		return s
	}
}

// software is a Store of both.
type software struct{ images, environments Store }

// Unavailable is why a server that may have images and environments can use none
// like a reference.
func Unavailable(caps executor.Capabilities, images, environments bool, ref string) error {
	switch isEnvironment := strings.HasPrefix(ref, environmentPrefix); {
	case isEnvironment && !environments:
		return fault.Unavailable("this server builds no environments (--environments off): remove `environment` to use the programs of the machine")
	case isEnvironment && caps.NoEnvironments != "":
		return fault.Unavailable("%s", caps.NoEnvironments)
	case isEnvironment:
	case !images:
		return fault.Unavailable("this server runs no container images: leave `image` empty to use the programs of the machine")
	case !caps.Images:
		return fault.Unavailable("%s", caps.NoImages)
	}
	return nil
}

func (s software) of(ref string) (Store, string, error) {
	store, wanted := s.images, ref
	if canonical, ok := strings.CutPrefix(ref, environmentPrefix); ok {
		store, wanted = s.environments, canonical
	}
	if store == nil {
		return nil, "", fault.Unavailable("this server has no images or no environments: use the programs of the machine")
	}
	return store, wanted, nil
}

// Resolve finds out what a reference stands for.
func (s software) Resolve(ctx context.Context, ref string) (string, error) {
	store, wanted, err := s.of(ref)
	if err != nil {
		return "", err
	}
	return store.Resolve(ctx, wanted)
}

// Root is where the software is.
func (s software) Root(ctx context.Context, ref, digest string) (string, []string, func(), error) {
	store, wanted, err := s.of(ref)
	if err != nil {
		return "", nil, nil, err
	}
	return store.Root(ctx, wanted, digest)
}

// Place makes it the root of an attempt, or its environment.
func (i *Image) Place(s *executor.Spec) {
	switch {
	case i == nil:
	case i.environment:
		s.Environment = i.root
	default:
		s.Root = i.root
	}
}

// reserved are the variables that an image cannot set: they name places that
// are not its own.
var reserved = map[string]bool{"HOME": true, "TMPDIR": true, "USER": true}

// SetVariables lets a command whose folders are at places use it. What an image
// sets gives way to the platform and to the author; the programs of an
// environment are found before all others.
func (i *Image) SetVariables(env map[string]string, places executor.Places) {
	if i == nil {
		return
	}
	for _, variable := range i.env {
		name, value, _ := strings.Cut(variable, "=")
		if _, set := env[name]; !set && !reserved[name] {
			env[name] = value
		}
	}
	if i.environment {
		env["PATH"] = places.Environment + "/bin:" + cmp.Or(env["PATH"], command.Path)
		if len(i.env) == 0 { // one of conda packages has a variable of its own
			env["VIRTUAL_ENV"] = places.Environment
		}
	}
}

// Name adds what it is to the parts of a cache key; system names the programs of
// the machine.
func (i *Image) Name(parts map[string]string, system string) {
	switch {
	case i == nil:
		parts["root"] = system
	case i.environment:
		parts["root"], parts["environment"] = system, i.Digest
	default:
		parts["root"] = i.Digest
	}
}
