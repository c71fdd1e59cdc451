package pipelines

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/executor/command"
)

// Program is an engine on this machine.
type Program struct {
	folder string // that holds it, with bin below; empty: it is among the machine's programs
	call   string // the words that call it, below the folder
}

// Programs are the engines that the tasks of a worker can call.
type Programs struct {
	found map[pipeline.Engine]Program
	// Plugin is the logger plugin of Snakemake: Python files, by name.
	Plugin fs.FS
}

// Find looks for engines: in a folder that the operator names, or else among the
// programs of the machine. missing says of each that is not there what to do.
func Find(folders map[pipeline.Engine]string, plugin fs.FS) (p Programs, missing map[pipeline.Engine]error) {
	p, missing = Programs{found: map[pipeline.Engine]Program{}, Plugin: plugin}, map[pipeline.Engine]error{}
	for _, e := range pipeline.Engines {
		one, err := find(e, folders[e])
		if err != nil {
			missing[e] = err
			continue
		}
		p.found[e] = one
	}
	return p, missing
}

// Engines are those that were found, divided by spaces.
func (p Programs) Engines() string {
	var list []string
	for _, e := range pipeline.Engines {
		if _, ok := p.found[e]; ok {
			list = append(list, string(e))
		}
	}
	return strings.Join(list, " ")
}

// Missing are the engines that were not found.
func (p Programs) Missing() (list []pipeline.Engine) {
	for _, e := range pipeline.Engines {
		if _, ok := p.found[e]; !ok {
			list = append(list, e)
		}
	}
	return list
}

func find(e pipeline.Engine, folder string) (Program, error) {
	p := Program{folder: folder, call: "bin/" + string(e)}
	if folder == "" {
		return p, amongPrograms(e)
	}
	if !filepath.IsAbs(folder) || strings.ContainsAny(folder, " \t\n*?[\"'\\$") {
		return p, fmt.Errorf("--%s must be an absolute path of plain characters, not %q", e, folder)
	}
	if e == pipeline.Snakemake { // its own script names the folder that it was installed in
		p.call = "bin/python -m snakemake"
		if found, _ := filepath.Glob(filepath.Join(folder, "lib", "python3*", "site-packages", "snakemake")); len(found) == 0 {
			return p, fmt.Errorf("there is no Snakemake in %s: %s", folder, pipeline.Install(e))
		}
	}
	if _, err := exec.LookPath(filepath.Join(folder, strings.Fields(p.call)[0])); err != nil {
		return p, fmt.Errorf("there is no %s in %s: %s", e.Title(), folder, pipeline.Install(e))
	}
	return p, nil
}

// amongPrograms looks where tasks look.
func amongPrograms(e pipeline.Engine) error {
	for _, dir := range filepath.SplitList(command.Path) {
		if info, err := os.Stat(filepath.Join(dir, string(e))); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return nil
		}
	}
	return fmt.Errorf("%s is not installed: %s", e.Title(), pipeline.Install(e))
}

const (
	parametersFile = ".parameters.json" // no port is called that
	pluginFolder   = ".plugins"

	// EventsFile is where a command reports its steps, among its temporary files.
	EventsFile = "millrace-events"
)

// Lack reports whether a step launches an engine that was not found.
func (p Programs) Lack(g *graph.Graph) bool {
	return slices.ContainsFunc(g.Order(), func(n *graph.Node) bool {
		_, ok := p.found[pipeline.LaunchedBy(n)]
		return !ok && pipeline.LaunchedBy(n) != ""
	})
}

// AddFiles brings a task the files that its command mentions, and returns the variables
// that name them. The values are a JSON object, which few commands need: a run may be
// scattered over thousands of them.
func AddFiles(spec *executor.Spec, n *graph.Node, places executor.Places, values func() []byte) (map[string]string, error) {
	variables := map[string]string{}
	if pipeline.Mentions(n, pipeline.ParametersVariable) {
		text, err := parameters(values())
		if err != nil {
			return nil, err
		}
		spec.Inputs = append(spec.Inputs, executor.Input{Path: parametersFile, Text: text})
		variables[pipeline.ParametersVariable] = path.Join(places.Inputs, parametersFile)
	}
	if pipeline.Mentions(n, pipeline.EventsVariable) {
		variables[pipeline.EventsVariable] = path.Join(places.Temp, EventsFile)
	}
	return variables, nil
}

// AddTo brings a task all that its command mentions, an engine too.
func (p Programs) AddTo(spec *executor.Spec, n *graph.Node, places executor.Places, values func() []byte) (map[string]string, error) {
	variables, err := AddFiles(spec, n, places, values)
	engine := pipeline.LaunchedBy(n)
	if err != nil || engine == "" {
		return variables, err
	}
	program, ok := p.found[engine]
	if !ok {
		// Another worker took the run, so that one has it: no failure of the pipeline's.
		return nil, fmt.Errorf("%s is not installed on this worker: %s", engine.Title(), pipeline.Install(engine))
	}
	if program.folder != "" && (n.Environment != nil || n.Image != "") {
		return nil, fault.Invalid("a step that launches %s on this worker cannot have an `environment` or an `image`: it sees the folder of the engine (--%s) in its place", engine.Title(), engine)
	}
	variables[engine.Variable()] = program.place(spec, places)
	if engine == pipeline.Snakemake && p.Plugin != nil {
		variables["PYTHONPATH"] = strings.TrimSuffix(path.Join(places.Inputs, pluginFolder)+":"+n.Env["PYTHONPATH"], ":")
		return variables, p.addPlugin(spec)
	}
	return variables, nil
}

// place shows a task the folder of a program, and returns the words that call it.
func (p Program) place(spec *executor.Spec, places executor.Places) string {
	if p.folder == "" {
		return path.Base(p.call)
	}
	if places.Environment == "" { // without a sandbox a task sees the folder where it is
		return path.Join(p.folder, p.call)
	}
	spec.Environment = p.folder
	return path.Join(places.Environment, p.call)
}

func (p Programs) addPlugin(spec *executor.Spec) error {
	return fs.WalkDir(p.Plugin, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(p.Plugin, name)
		spec.Inputs = append(spec.Inputs, executor.Input{Path: path.Join(pluginFolder, name), Text: text})
		return err
	})
}
