package definitions

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/api"
)

// ReadParameters turns name=value into JSON, as the workflow's schema wants it.
func (g Graph) ReadParameters(given []string) (api.Parameters, error) {
	if len(given) == 0 {
		return nil, nil //nolint:nilnil // no parameters is a value here
	}
	out := api.Parameters{}
	for _, text := range given {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("-p %s: enter name=value", text)
		}
		s, err := g.parameter(name)
		if err != nil {
			return nil, err
		}
		if out[name], err = s.Value(value); err != nil {
			return nil, fmt.Errorf("-p %s: %w", name, err)
		}
	}
	return out, nil
}

func (g Graph) parameter(name string) (Schema, error) {
	s, known := g.Parameters[name]
	if !known {
		return s, fmt.Errorf("the workflow has no parameter %q; %s", name, choices("it takes", slices.Sorted(maps.Keys(g.Parameters))))
	}
	return s, nil
}

func choices(verb string, names []string) string {
	if len(names) == 0 {
		return verb + " none"
	}
	return verb + " " + strings.Join(names, ", ")
}

// Value writes text as JSON of one of the schema's types; where several fit,
// text is the last.
func (s Schema) Value(text string) (json.RawMessage, error) {
	types := s.types()
	if len(types) == 0 {
		types = []string{"number", "boolean", "null", "array", "object", "string"}
	}
	for _, t := range types {
		if t != "string" && fits(t, text) {
			return json.RawMessage(strings.TrimSpace(text)), nil
		}
	}
	if slices.Contains(types, "string") {
		return json.Marshal(text)
	}
	return nil, fmt.Errorf("%q is not a valid %s", text, strings.Join(types, " or "))
}

// fits reports whether text is JSON of this type.
func fits(t, text string) bool {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return false
	}
	switch v := v.(type) {
	case float64:
		return t == "number" || t == "integer" && v == math.Trunc(v)
	case bool:
		return t == "boolean"
	case nil:
		return t == "null"
	case []any:
		return t == "array"
	case map[string]any:
		return t == "object"
	default:
		return false
	}
}

// ReadInputs turns name=file, name=folder, name=key or name=address into the run's inputs.
// upload sends local files and folders and gives their keys, once nothing is wrong with any
// of them; addresses are reached by a connection, if there is one.
func (g Graph) ReadInputs(given []string, connection string, upload func(paths []string) (keys []string, err error)) (api.RunInputs, error) {
	type source struct {
		input, value string
		local        bool
	}
	var sources []source
	var local []string
	count := map[string]int{}
	for _, text := range given {
		name, value, ok := strings.Cut(text, "=")
		if !ok || value == "" {
			return nil, fmt.Errorf("-i %s: enter name=file, name=key or name=s3://…", text)
		}
		in, known := g.Inputs[name]
		if !known {
			return nil, fmt.Errorf("the workflow has no input %q; %s", name, choices("it takes", slices.Sorted(maps.Keys(g.Inputs))))
		}
		paths, err := localFiles(value)
		if err != nil {
			return nil, fmt.Errorf("-i %s: %w", name, err)
		}
		if len(paths) == 0 {
			sources = append(sources, source{name, value, false})
		}
		for _, path := range paths {
			if err := in.takes(path); err != nil {
				return nil, fmt.Errorf("-i %s: %w", name, err)
			}
			sources = append(sources, source{name, path, true})
			local = append(local, path)
		}
		if count[name] += max(len(paths), 1); in.single() && count[name] > 1 {
			return nil, fmt.Errorf("-i %s: this input takes one %s", name, map[string]string{"file": "file", folderInput: "folder"}[in.Type])
		}
	}
	uploaded, err := upload(local)
	if err != nil {
		return nil, err
	}
	keys := map[string][]string{}
	for _, s := range sources {
		key := s.value
		if s.local {
			key, uploaded = uploaded[0], uploaded[1:]
		}
		keys[s.input] = append(keys[s.input], key)
	}
	return g.inputValues(keys, connection)
}

// folderInput is the type of an input that takes a folder.
const folderInput = "directory"

func (in Input) single() bool { return in.Type == "file" || in.Type == folderInput }

// takes refuses a local folder in place of a file, and the other way round.
func (in Input) takes(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir() && in.Type != folderInput:
		return fmt.Errorf("%s is a folder, and this input takes files: enter '%s', or declare the input with the type directory", path, filepath.Join(path, "*"))
	case !info.IsDir() && in.Type == folderInput:
		return fmt.Errorf("%s is a file, and this input takes a folder", path)
	}
	return nil
}

func (g Graph) inputValues(keys map[string][]string, connection string) (api.RunInputs, error) {
	out := api.RunInputs{}
	for name, list := range keys {
		values := make([]any, len(list))
		for i, key := range list {
			values[i] = key
			if isAddress(key) && connection != "" {
				values[i] = api.InputAddress{URL: key, Connection: &connection}
			}
		}
		var value any = values
		if g.Inputs[name].single() {
			value = values[0]
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		out[name] = text
	}
	return out, nil
}

func isAddress(value string) bool {
	return strings.HasPrefix(value, "s3://") || strings.HasPrefix(value, "https://") || strings.HasPrefix(value, "http://")
}

// localFiles are the files that value names, or none where it is a key of the
// team's, or an address. The shell does not expand a pattern behind name=, so we do.
func localFiles(value string) ([]string, error) {
	if isAddress(value) {
		return nil, nil
	}
	if _, err := os.Stat(value); err == nil {
		return []string{value}, nil
	}
	if strings.ContainsAny(value, "*?[") {
		found, err := filepath.Glob(value)
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("no file matches %s", value)
		}
		return found, err
	}
	if !strings.HasPrefix(value, "teams/") {
		return nil, fmt.Errorf("there is no local file %s, and no uploaded file with that key (see millrace files ls)", value)
	}
	return nil, nil
}

// ComputeFlags choose a size.
type ComputeFlags struct {
	Compute string `env:"-" placeholder:"VCPUxGB" help:"Size, such as 4x16: vCPUs and GB of memory, at least 4 GB per vCPU."`
	GPU     bool   `env:"-" name:"gpu" help:"The GPU preset: a T4, 4 vCPU, 16 GB."`
}

// Size is the size that was asked for: of its own, or by a name.
func (c ComputeFlags) Size() (*api.ComputeSize, *api.ResourceProfile, error) {
	var size *api.ComputeSize
	var profile *api.ResourceProfile
	if c.Compute != "" {
		cpu, ram, _ := strings.Cut(strings.ToLower(c.Compute), "x")
		v, cpuErr := strconv.Atoi(cpu)
		m, ramErr := strconv.Atoi(strings.TrimSuffix(ram, "gb"))
		if cpuErr != nil || ramErr != nil {
			return nil, nil, fmt.Errorf("--compute %s: enter vCPUs x GB, such as 4x16", c.Compute)
		}
		size = &api.ComputeSize{Vcpu: v, RAMGb: m}
	}
	if c.GPU {
		p := api.ResourceProfileGpu
		profile = &p
	}
	if size != nil && profile != nil {
		return nil, nil, fmt.Errorf("--compute and --gpu can't be combined: the preset is 4x16")
	}
	return size, profile, nil
}

// Varied turns name=a,b,c into the values that a parameter takes.
func (g Graph) Varied(given []string) (map[string][]json.RawMessage, error) {
	vary := map[string][]json.RawMessage{}
	for _, text := range given {
		name, list, ok := strings.Cut(text, "=")
		if !ok || list == "" {
			return nil, fmt.Errorf("--vary %s: enter name=value,value", text)
		}
		s, err := g.parameter(name)
		if err != nil {
			return nil, err
		}
		for more := true; more; {
			var value string
			value, list, more = s.cut(list)
			typed, err := s.Value(value)
			if err != nil {
				return nil, fmt.Errorf("--vary %s: %w", name, err)
			}
			vary[name] = append(vary[name], typed)
		}
	}
	return vary, nil
}

// cut takes the first of several values off. An array or object, where the parameter
// takes one, goes to its own end: it has commas, too.
func (s Schema) cut(list string) (value, rest string, more bool) {
	types := s.types()
	nested := len(types) == 0 || slices.Contains(types, "array") || slices.Contains(types, "object")
	if begun := strings.TrimSpace(list); nested && begun != "" && strings.ContainsRune("[{", rune(begun[0])) {
		var whole json.RawMessage
		decoder := json.NewDecoder(strings.NewReader(list))
		if decoder.Decode(&whole) == nil {
			behind := strings.TrimSpace(list[decoder.InputOffset():])
			if behind == "" || behind[0] == ',' {
				return string(whole), strings.TrimPrefix(behind, ","), behind != ""
			}
		}
	}
	return strings.Cut(list, ",")
}
