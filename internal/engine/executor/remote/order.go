// Package remote moves the bytes of attempts on machines that share no folder with
// us: the shim beside a command fetches its inputs from a server, and sends it what
// was made. What is under way is in the database, and in objects of its own.
package remote

import (
	"encoding/json"
	"path"

	"github.com/millrace/millrace/internal/attempts"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/command"
	"github.com/millrace/millrace/internal/engine/executor/shim"
	shimremote "github.com/millrace/millrace/internal/engine/executor/shim/remote"
)

// Top is where an attempt has its folders on its machine, unless its specification
// says where.
const Top = "/task"

// Places are an attempt's folders, as its command sees them.
func Places() executor.Places { return executor.Spec{Dir: Top}.Places() }

// ID names an attempt among those of all servers.
func ID(k executor.Key) string { return k.Folder() }

// OrderOf is what an attempt's shim is told. Inputs that are no objects by themselves
// were put into some by Stage.
func OrderOf(s executor.Spec, notEnforced []string) (attempts.Order, error) {
	var o attempts.Order
	if s.Dir == "" {
		s.Dir = Top
	}
	places := s.Places()
	script := path.Join(places.Temp, ".millrace-command")
	argv, isScript := command.Line(s, script)
	t := shimremote.Task{
		Launch: shim.Launch{
			ID: ID(s.Key), Fence: s.Fence, Folder: s.Dir, Argv: argv, Env: command.Variables(s.Env), Dir: places.Work,
			Memory: s.MemoryBytes, Disk: s.DiskBytes, Log: s.LogBytes, Secrets: s.Secrets,
			Timeout: s.Timeout, Grace: s.Grace, AbandonAfter: s.AbandonAfter, Outputs: s.Outputs, NotEnforced: notEnforced,
		},
		Inherit:  true,
		Defaults: []string{"PATH=" + command.Path, "HOME=" + places.Temp, "TMPDIR=" + places.Temp, "USER=" + command.User},
		Temp:     places.Temp, In: places.Inputs,
	}
	if isScript {
		t.Script, t.File = s.Command, script
	}
	for i, in := range s.Inputs {
		as := shimremote.Input{Path: in.Path, Text: in.Text, Folder: isFolder(in)}
		if in.Object != "" || in.Folder != "" {
			key := in.Object
			if in.Copied() {
				key = attempts.StagedKey(ID(s.Key), s.Fence, i)
			} else {
				as.SHA256 = in.SHA256
			}
			o.Objects = append(o.Objects, key)
			as.Object = len(o.Objects)
		}
		t.Inputs = append(t.Inputs, as)
	}
	var err error
	o.Task, err = json.Marshal(t)
	return o, err
}

func isFolder(in executor.Input) bool { return in.Folder != "" || in.Directory }
