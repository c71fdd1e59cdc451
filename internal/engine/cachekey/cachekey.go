// Package cachekey names what a task is computed from, so that a result can be
// found again, and says why one was not.
package cachekey

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/engine/taskenv"
	"github.com/millrace/millrace/internal/files"
)

// Parts are what a task is computed from, by name. The same parts give the
// same result; that is the author's promise with `cache`.
type Parts map[string]string

// Of are the parts that a definition and the parameters of its run say, without
// what the command finds around it.
func Of(t taskenv.Task) Parts {
	p := Parts{"arch": runtime.GOARCH, "interpreter": t.Node.Interpreter, "command": t.Node.Command}
	for name, value := range t.Node.Env {
		p["env."+name] = value
	}
	for _, name := range t.Parameters() {
		if text, ok := t.Values.Text(name); ok {
			p["PARAM_"+name] = text
		}
	}
	if pipeline.Mentions(t.Node, pipeline.ParametersVariable) {
		p[pipeline.ParametersVariable] = string(t.Values.JSON())
	}
	for _, o := range t.Node.Outputs {
		p["output."+o.Name] = promise(o)
	}
	return p
}

// Unknown stands for a file that nobody has hashed yet. No value can be that.
const Unknown = "\x00"

// Known reports whether every part can be named.
func (p Parts) Known() bool {
	for _, value := range p {
		if value == Unknown {
			return false
		}
	}
	return true
}

// Key is the hash of the canonical form: JSON with sorted names.
func (p Parts) Key() string {
	sum := sha256.Sum256(p.json())
	return hex.EncodeToString(sum[:])
}

func (p Parts) json() []byte {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // text only
	}
	return text
}

// longPart is the length beyond which only a part's hash is stored.
const longPart = 200

// Stored is the form in which a later miss can be explained.
func (p Parts) Stored() []byte {
	short := maps.Clone(p)
	for name, value := range short {
		if len(value) > longPart {
			sum := sha256.Sum256([]byte(value))
			short[name] = "sha256:" + hex.EncodeToString(sum[:])
		}
	}
	return short.json()
}

// Miss says in words why a key differs from the last one.
func Miss(last, now []byte) string {
	if len(last) == 0 {
		return "it has not succeeded before"
	}
	var was, is Parts
	if json.Unmarshal(last, &was) != nil || json.Unmarshal(now, &is) != nil {
		return "what it was computed from last time is not known"
	}
	all := maps.Clone(is)
	maps.Copy(all, was)
	var why []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		before, had := was[name]
		if after, has := is[name]; had != has || before != after {
			why = append(why, difference(name, was, is))
		}
	}
	if len(why) == 0 {
		return "its earlier outputs are gone"
	}
	return strings.Join(why, "; ")
}

func difference(name string, was, is Parts) string {
	before, had := was[name]
	after, has := is[name]
	port := strings.TrimPrefix(name, "input.")
	switch {
	case name == "command", name == "interpreter":
		return "the " + name + " has changed"
	case name == "source":
		return "the code at `SOURCE_DIR` has changed"
	case name == "root":
		return fmt.Sprintf("the image or system was %s, is %s", before, after)
	case name == "environment" && had && has:
		return "the packages of the environment have changed"
	case port != name:
		return fmt.Sprintf("the files of the input `%s` have changed", port)
	case strings.HasPrefix(name, "output."):
		return fmt.Sprintf("the output `%s` is declared differently", strings.TrimPrefix(name, "output."))
	case !had:
		return fmt.Sprintf("`%s` is new", name)
	case !has:
		return fmt.Sprintf("`%s` is not set any more", name)
	case strings.HasPrefix(before, "sha256:") || strings.HasPrefix(after, "sha256:"):
		return fmt.Sprintf("`%s` has changed", name)
	}
	return fmt.Sprintf("`%s` was %s, is %s", strings.TrimPrefix(name, "env."), before, after)
}

// promise names an output by how it was declared.
func promise(o graph.OutPort) string {
	text := fmt.Sprintf("%s many=%t optional=%t", o.Path, o.Many, o.Optional)
	if o.Directory { // the keys of files stay what they were before there were folders
		text += " directory"
	}
	return text
}

// Contents names files by what is in them; a hash that nobody has taken yet is
// no name.
func Contents(keys []string, known map[string]files.File) string {
	var list []string
	for _, key := range keys {
		f := known[key]
		if f.SHA256 == "" {
			return Unknown
		}
		list = append(list, f.Name+" "+f.SHA256)
	}
	return strings.Join(list, "\n")
}
