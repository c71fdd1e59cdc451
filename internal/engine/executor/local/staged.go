package local

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/millrace/millrace/internal/engine/executor/shim/stage"
)

// staged are the options of a sandbox whose root the shim has put together.
// Bubblewrap shows it as it is, and adds only what must be new for each command.
func (v view) staged(devices []int) []string {
	s := v.launch.Stage
	s.Base = v.base(devices)
	own := v.spec.Places()
	s.Own = []stage.Part{
		{Kind: stage.Bound, Name: "tmp", From: own.Temp},
		{Kind: stage.Bound, Name: workdir[1:], From: own.Work},
	}
	if v.spec.Staged {
		s.Own = append(s.Own, stage.Part{Kind: stage.ReadOnly, Name: inputs[1:], From: own.Inputs})
	}
	if v.spec.Environment != "" {
		s.Own = append(s.Own, stage.Part{Kind: stage.ReadOnly, Name: environmentFolder[1:], From: v.spec.Environment})
	}
	if !v.spec.Network {
		v.launch.Net = string(v.spec.Key.Run)
	}
	args := append([]string{"--dev-bind", s.Folder, "/", "--proc", "/proc"}, v.fresh()...)
	return append(append(args, v.names()...), "--chdir", workdir)
}

// base is what all commands see that run with the same programs and devices.
func (v view) base(devices []int) []stage.Part {
	parts := v.box.programs
	if v.spec.Root != "" {
		parts = shownPrograms(v.spec.Root, imageNames(v.spec.Root))
	}
	return slices.Concat(parts, v.box.usual, shownDevices(deviceNames(devices)))
}

// hostPrograms are those of a sandbox without an image, and what they need.
func hostPrograms(etc string) []stage.Part {
	return append(shownPrograms("/", hostNames),
		stage.Part{Kind: stage.ReadOnly, Name: "etc", From: etc},
		stage.Part{Kind: stage.EmptyFolder, Name: "home"},
		stage.Part{Kind: stage.EmptyFolder, Name: environmentFolder[1:]},
		stage.Part{Kind: stage.EmptyFolder, Name: "var"},
		stage.Part{Kind: stage.Symlink, Name: "var/tmp", From: "/tmp"},
	)
}

// usualParts are in every sandbox.
func usualParts() (parts []stage.Part) {
	for _, name := range []string{"proc", "run", "tmp", workdir[1:], inputs[1:], "dev", "dev/shm"} {
		parts = append(parts, stage.Part{Kind: stage.EmptyFolder, Name: name})
	}
	parts = append(parts, shownDevices([]string{"null", "zero", "full", "random", "urandom", "tty"})...)
	return append(parts,
		stage.Part{Kind: stage.Symlink, Name: "dev/stdin", From: "/proc/self/fd/0"},
		stage.Part{Kind: stage.Symlink, Name: "dev/stdout", From: "/proc/self/fd/1"},
		stage.Part{Kind: stage.Symlink, Name: "dev/stderr", From: "/proc/self/fd/2"},
		stage.Part{Kind: stage.Symlink, Name: "dev/fd", From: "/proc/self/fd"},
		stage.Part{Kind: stage.Symlink, Name: "dev/core", From: "/proc/kcore"},
		stage.Part{Kind: stage.Terminals, Name: "dev/pts"},
		stage.Part{Kind: stage.Symlink, Name: "dev/ptmx", From: "pts/ptmx"},
	)
}

func shownDevices(names []string) (parts []stage.Part) {
	for _, name := range names {
		if _, err := os.Stat("/dev/" + name); err == nil {
			parts = append(parts, stage.Part{Kind: stage.Device, Name: "dev/" + name, From: "/dev/" + name})
		}
	}
	return parts
}

// shownPrograms shows folders of a root.
func shownPrograms(root string, names []string) (parts []stage.Part) {
	for _, name := range names {
		path := filepath.Join(root, name)
		if target, err := os.Readlink(path); err == nil {
			parts = append(parts, stage.Part{Kind: stage.Symlink, Name: name, From: target})
		} else if _, err := os.Stat(path); err == nil {
			parts = append(parts, stage.Part{Kind: stage.ReadOnly, Name: name, From: path})
		}
	}
	return parts
}
