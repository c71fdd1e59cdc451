// Package recipe says what a step of a run was given and what it did with it,
// in the same words as the engine when it stages a task, so that the step can be
// repeated on another machine.
package recipe

import (
	"encoding/json"
	"path"
	"slices"
	"strconv"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/pipelines"
	"github.com/millrace/millrace/internal/engine/produced"
	"github.com/millrace/millrace/internal/engine/taskenv"
	"github.com/millrace/millrace/internal/runs"
)

// Folder stands in variables for wherever the recipe is followed.
const Folder = "/.millrace-reproduce"

const (
	inputFolder = "in"
	itemFolder  = ".item" // no port is called that
	tempFolder  = "tmp"
	codeFolder  = "source"
)

var _ runs.Reproducer = Of

// Of makes the recipe of an attempt.
func Of(r runs.Run, a runs.Attempt, outputs []runs.Output) (runs.Recipe, error) {
	g, wrong := graph.Parse(r.Definition)
	if len(wrong) > 0 {
		return runs.Recipe{}, fault.Conflict("the definition of this run cannot be read any more: %s", wrong[0].Message)
	}
	n, err := nodeOf(g, a.Node)
	if err != nil {
		return runs.Recipe{}, err
	}
	values, wrong := g.CheckParameters(r.Parameters)
	if len(wrong) > 0 {
		return runs.Recipe{}, fault.Conflict("the parameters of this run cannot be read any more: %s", wrong[0].Message)
	}
	c := builder{produced: produced.Files{}, recipe: runs.Recipe{
		Attempt: a.Number, Interpreter: n.Interpreter, Command: n.Command, Image: n.Image, Folder: Folder, Lists: map[string]string{},
	}}
	if err := json.Unmarshal(r.Inputs, &c.inputs); err != nil {
		return runs.Recipe{}, err
	}
	for _, o := range outputs {
		c.produced.Add(o)
		c.outputs = append(c.outputs, o)
	}
	task := taskenv.Task{
		Run: r.ID, Node: n, Attempt: a.Number, Values: values, VCPU: taskenv.VCPUOf(n, r.Size), RAMGB: float64(a.Memory) / (1 << 30),
		Inputs: map[string][]string{}, Lists: map[string]string{}, Progress: path.Join(Folder, tempFolder, taskenv.ProgressFile),
		Shard: n.Scatter != nil, Index: a.Shard,
	}
	for port, keys := range c.inputKeys(g, n) {
		paths := c.addFiles(keys, port)
		list := path.Join(inputFolder, port+".list")
		c.recipe.Lists[list] = string(taskenv.Lines(paths))
		task.Inputs[port], task.Lists[port] = paths, path.Join(Folder, list)
	}
	if task.Shard {
		c.item(&task, a.Item)
	}
	if err := c.mentioned(&task); err != nil {
		return runs.Recipe{}, err
	}
	if g.Source != nil && n.UsesSource() && r.Commit != "" {
		task.Source = path.Join(Folder, codeFolder, g.Source.Path)
		c.recipe.Code = &runs.RecipeCode{Git: g.Source.Git, Commit: r.Commit, Submodules: g.Source.Submodules}
	}
	c.recipe.Environment = n.Environment != nil
	c.recipe.Env = task.Environment()
	return c.recipe, nil
}

func nodeOf(g *graph.Graph, id string) (*graph.Node, error) {
	for _, n := range g.Order() {
		if n.ID == id {
			return n, nil
		}
	}
	return nil, fault.NotFound("the run has no step %q", id)
}

// builder gathers what goes into a recipe.
type builder struct {
	inputs   map[string][]string
	produced produced.Files
	outputs  []runs.Output
	recipe   runs.Recipe
}

// inputKeys are the keys that come into each port, in edge and shard order.
func (c *builder) inputKeys(g *graph.Graph, n *graph.Node) map[string][]string {
	ports := map[string][]string{}
	for _, in := range n.Inputs {
		ports[in.Name] = append([]string{}, c.inputs[in.From]...)
	}
	for _, e := range g.Incoming(n.ID) {
		if e.Carries() {
			c.recipe.Sources = append(c.recipe.Sources, e.Source)
			ports[e.TargetHandle] = append(ports[e.TargetHandle], c.produced.Keys(e.Source, e.SourceHandle)...)
		}
	}
	return ports
}

// addFiles has files fetched into a folder as <index>/<name>, and returns their
// paths as the command sees them.
func (c *builder) addFiles(keys []string, folder string) []string {
	paths := make([]string, len(keys))
	for i, key := range keys {
		place := path.Join(inputFolder, folder, strconv.Itoa(i), taskenv.StagedName(c.nameOf(key)))
		c.recipe.Files = append(c.recipe.Files, runs.RecipeFile{Path: place, GivenFile: runs.GivenFile{Key: key}})
		paths[i] = path.Join(Folder, place)
	}
	return paths
}

// nameOf is what a file is called: an output's own name, or the end of an
// upload's key.
func (c *builder) nameOf(key string) string {
	for _, o := range c.outputs {
		if o.Key == key {
			return o.Name
		}
	}
	return path.Base(key)
}

// mentioned brings along what a command reads only where it mentions it.
func (c *builder) mentioned(task *taskenv.Task) (err error) {
	var spec executor.Spec
	places := executor.Places{Inputs: path.Join(Folder, inputFolder), Temp: path.Join(Folder, tempFolder)}
	if task.Launch, err = pipelines.AddFiles(&spec, task.Node, places, task.Values.JSON); err != nil {
		return err
	}
	if c.recipe.Engine = pipeline.LaunchedBy(task.Node); c.recipe.Engine != "" {
		task.Launch[c.recipe.Engine.Variable()] = string(c.recipe.Engine) // as it is in a PATH
	}
	for _, in := range spec.Inputs {
		c.recipe.Lists[path.Join(inputFolder, in.Path)] = string(in.Text)
	}
	return nil
}

// item gives a shard its value; one that is a file of the run is brought along.
func (c *builder) item(task *taskenv.Task, raw string) {
	var value any
	_ = json.Unmarshal([]byte(raw), &value) // what cannot be read is no text
	text, isText := value.(string)
	if !isText {
		task.Item = raw
		return
	}
	task.Item = text
	_, isFile := c.produced.Find(text)
	for _, keys := range c.inputs {
		isFile = isFile || slices.Contains(keys, text)
	}
	if isFile {
		task.Item = c.addFiles([]string{text}, itemFolder)[0]
	}
}
