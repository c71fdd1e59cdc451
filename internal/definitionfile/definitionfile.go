// Package definitionfile reads a file that holds a workflow's definition, in YAML or
// JSON: the server reads those of repositories, and the command line those of people.
// A stranger may have written one, so what it unfolds to is bounded while it is read.
package definitionfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"
	"strings"
)

// Names are those that such a file has in a repository; the first that is there counts.
var Names = []string{"millrace.yaml", "millrace.json"}

// MaxBytes is how large such a file may be.
const MaxBytes = 8 << 20

// maxYAML is how large one in YAML may be, which takes a hundred times its size
// in memory to read.
const maxYAML = 1 << 20

// File is what one says.
type File struct {
	Name        string // of the workflow; empty: it says none
	Description string
	License     string
	Definition  []byte // JSON, not checked
	Exported    bool   // it is a workflow with a name and what else people say of it, and not a definition alone
}

// IsYAML reports whether a file is read as YAML. The ending of its name decides, and
// for a name without one that is known, how the text begins.
func IsYAML(name string, text []byte) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml":
		return true
	case ".json":
		return false
	}
	text = bytes.TrimSpace(text)
	return len(text) > 0 && text[0] != '{' && text[0] != '['
}

// Read reads a definition, or a workflow as it is exported: its name, its
// description, its license and its definition. What it says of a mistake is for people.
func Read(name string, text []byte) (File, error) {
	if IsYAML(name, text) {
		if len(text) > maxYAML {
			return File{}, errors.New("it has more than 1 MB: write it as JSON, which may have 8 MB")
		}
		var err error
		if text, err = fromYAML(text); err != nil {
			return File{}, err
		}
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(text, &top); err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return File{}, errors.New("it is not an object with `nodes`")
		}
		return File{}, atLine(text, err)
	}
	definition, wrapped := top["definition"]
	if !wrapped {
		return File{Definition: text}, nil
	}
	f := File{Definition: definition, Exported: true}
	for field, to := range map[string]*string{"name": &f.Name, "description": &f.Description, "license": &f.License} {
		if v, ok := top[field]; ok && json.Unmarshal(v, to) != nil {
			return f, errors.New("its `" + field + "` is not text")
		}
	}
	return f, nil
}

func atLine(text []byte, err error) error {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		line := 1 + bytes.Count(text[:min(int(e.Offset), len(text))], []byte("\n"))
		return problem("line %d: %s", line, strings.TrimPrefix(e.Error(), "json: "))
	}
	return errors.New("it is not JSON")
}
