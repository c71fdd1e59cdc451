package graph

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// example is a definition that uses everything there is.
const example = `{
  "version": 1,
  "parameters": {"minQuality": {"type": "integer", "default": 20, "minimum": 0, "title": "Minimum quality"}},
  "inputs": {"reads": {"type": "files", "required": true, "description": "FASTQ"}, "adapters": {"type": "file", "required": false}},
  "nodes": [{
    "id": "trim", "name": "Trim reads", "type": "task", "position": {"x": 0, "y": 0},
    "image": "quay.io/biocontainers/fastp:0.23.4", "interpreter": "bash",
    "command": "fastp -q \"$PARAM_minQuality\" -i \"$ITEM\" -o trimmed.fq",
    "inputs": {"adapters": {"from": "inputs.adapters", "optional": true}},
    "outputs": {"trimmed": {"path": "trimmed.fq"}, "plots": {"path": "plots/*.png", "many": true, "optional": true}},
    "env": {"LC_ALL": "C"}, "resources": {"vcpu": 2, "ramGb": 8},
    "retries": {"max": 2, "backoffSeconds": 10, "factor": 2, "maxBackoffSeconds": 600, "on": ["error", "timeout", "oom"], "memoryFactor": 1.5},
    "timeoutSeconds": 3600, "when": "params.minQuality > 0",
    "scatter": {"over": "inputs.reads", "maxParallel": 20}, "cache": true, "allowFailure": false
  }, {"id": "align", "name": "Align", "type": "task", "position": {"x": 320, "y": 0}, "command": "cat $INPUT_reads > out.bam", "outputs": {"bam": {"path": "out.bam"}}}],
  "edges": [{"id": "e1", "source": "trim", "sourceHandle": "trimmed", "target": "align", "targetHandle": "reads"}],
  "outputs": {"bam": {"from": "align.bam"}}
}`

func parsed(t testing.TB, src string) *Graph {
	t.Helper()
	g, problems := Parse([]byte(src))
	if len(problems) > 0 {
		t.Fatalf("refused: %v", problems)
	}
	return g
}

func TestTheWholeVocabularyIsAccepted(t *testing.T) {
	t.Parallel()
	g := parsed(t, example)
	if problems := g.Incomplete(); len(problems) > 0 {
		t.Errorf("incomplete: %v", problems)
	}
	trim, _ := g.Node("trim")
	if trim.Scatter.Over != "inputs.reads" || trim.Retries.Max != 2 || trim.Resources.RAMGB != 8 || !trim.Cache {
		t.Errorf("read wrongly: %+v", trim)
	}
	if port, ok := trim.Output("plots"); !ok || !port.Many || !port.Optional {
		t.Errorf("plots: %+v", port)
	}
	if g.NodeCount() != 2 || len(g.Incoming("align")) != 1 || !g.Incoming("align")[0].Carries() {
		t.Error("the edge is lost")
	}
}

func TestWhatIsLeftOutHasItsDefault(t *testing.T) {
	t.Parallel()
	n := parsed(t, `{"nodes":[{"id":"a"}]}`).Nodes[0]
	want := &Node{
		ID: "a", Name: "a", Type: Task, Interpreter: "bash",
		Resources: Resources{VCPU: 1}, Retries: defaultRetries(),
	}
	if d := cmp.Diff(want, n); d != "" {
		t.Error(d)
	}
}

// task is a definition of one node with these fields besides its id.
func task(fields string) string { return `{"nodes":[{"id":"a",` + fields + `}]}` }

// pair is a definition of two nodes, the first with an output, and this edge.
func pair(edge string) string {
	return `{"nodes":[{"id":"a","outputs":{"o":{"path":"o"}}},{"id":"b"},{"id":"n","type":"note"}],"edges":[` + edge + `]}`
}

func TestAMalformedDefinitionIsRefusedWhereItIsWrong(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ src, path, says string }{
		"no JSON":                     {`{"nodes": [}`, "nodes[0]", "line 1"},
		"nothing":                     {``, "", "ends too early"},
		"two values":                  {`{} {}`, "", "follows the end"},
		"an array":                    {`[]`, "", "an object, not an array"},
		"null":                        {`null`, "", "not null"},
		"a key twice":                 {`{"nodes":[],"x-a":{"b":1,"b":2},"nodes":[]}`, "x-a.b", "twice"},
		"invalid UTF-8":               {"{\"x-a\":\"\xff\"}", "x-a", "UTF-8"},
		"a NUL":                       {`{"x-a":"\u0000"}`, "x-a", "NUL"},
		"a number beyond floats":      {`{"ui":{"a":[1e400]}}`, "ui.a[0]", "does not fit"},
		"a number lost to zero":       {`{"ui":1e-400}`, "ui", "does not fit"},
		"another version":             {`{"version":2}`, "version", "must be 1"},
		"a version in words":          {`{"version":"1"}`, "version", "must be 1"},
		"an unknown field":            {`{"nodez":[]}`, "nodez", `did you mean "nodes"?`},
		"nodes as an object":          {`{"nodes":{}}`, "nodes", "must be an array, not an object"},
		"edges as null":               {`{"edges":null}`, "edges", "must be an array, not null"},
		"inputs as an array":          {`{"inputs":[]}`, "inputs", "must be an object"},
		"a node that is none":         {`{"nodes":[1]}`, "nodes[0]", "not a number"},
		"a node without id":           {`{"nodes":[{}]}`, "nodes[0].id", "needs an id"},
		"an id with a dash":           {`{"nodes":[{"id":"a-b"}]}`, "nodes[0].id", "cannot be a name"},
		"an id that is too long":      {`{"nodes":[{"id":"` + strings.Repeat("a", 64) + `"}]}`, "nodes[0].id", "cannot be a name"},
		"an id twice":                 {`{"nodes":[{"id":"a"},{"id":"a"}]}`, "nodes[1].id", "`a` is already the id of \"a\""},
		"another node type":           {task(`"type":"robot"`), "nodes[0].type", "`task` or `note`"},
		"a typing slip":               {task(`"comand":"ls"`), "nodes[0].comand", `did you mean "command"?`},
		"a command as a number":       {task(`"command":1`), "nodes[0].command", "must be a string"},
		"a huge command":              {task(`"command":"` + strings.Repeat("a", maxCommand+1) + `"`), "nodes[0].command", "longer"},
		"a long name":                 {task(`"name":"` + strings.Repeat("ä", 201) + `"`), "nodes[0].name", "200 characters"},
		"a text on a task":            {task(`"text":"x"`), "nodes[0].text", "only a note"},
		"a command on a note":         {task(`"type":"note","command":"ls"`), "nodes[0].command", "never runs"},
		"a position without y":        {task(`"position":{"x":1}`), "nodes[0].position", "x and y"},
		"a position in words":         {task(`"position":{"x":"1","y":2}`), "nodes[0].position.x", "must be a number"},
		"an image and packages":       {task(`"image":"a","environment":{"pip":["x"]}`), "nodes[0].environment", "not both"},
		"packages as a text":          {task(`"environment":{"pip":{"a":"x"}}`), "nodes[0].environment.pip", "array"},
		"a package as a number":       {task(`"environment":{"pip":[1]}`), "nodes[0].environment.pip", "array of strings"},
		"an option as a package":      {task(`"environment":{"pip":["x","--pre"]}`), "nodes[0].environment.pip[1]", "option"},
		"a package twice":             {task(`"environment":{"pip":["a_b","A-B"]}`), "nodes[0].environment.pip[1]", "twice"},
		"too many packages":           {task(`"environment":{"pip":["x"` + strings.Repeat(`,"x"`, 200) + `]}`), "nodes[0].environment.pip[200]", "at most 200"},
		"a python that never was":     {task(`"environment":{"python":"3","pip":["x"]}`), "nodes[0].environment.python", "3.12"},
		"a lock that is none":         {task(`"environment":{"lock":"pandas"}`), "nodes[0].environment.lock", "begins with"},
		"a lock and packages":         {task(`"environment":{"lock":"# python 3.12\na==1 --hash=sha256:` + strings.Repeat("0", 64) + `","pip":["x"]}`), "nodes[0].environment.lock", "says everything"},
		"an unknown kind of packages": {task(`"environment":{"npm":["x"]}`), "nodes[0].environment.npm", "unknown field"},
		"an image with a space":       {task(`"image":"a b"`), "nodes[0].image", "is not an image"},
		"an image like a flag":        {task(`"image":"-v"`), "nodes[0].image", "is not an image"},
		"an image as an address":      {task(`"image":"docker://a/b"`), "nodes[0].image", "is not an image"},
		"an interpreter with a path":  {task(`"interpreter":"/bin/sh"`), "nodes[0].interpreter", "name of a program"},
		"an interpreter with options": {task(`"interpreter":"bash -x"`), "nodes[0].interpreter", "name of a program"},
		"a variable that is none":     {task(`"env":{"A-B":"x"}`), `nodes[0].env.A-B`, "cannot name a variable"},
		"a variable as a number":      {task(`"env":{"A":1}`), "nodes[0].env.A", "must be a string"},
		"no vcpu at all":              {task(`"resources":{"vcpu":0}`), "nodes[0].resources.vcpu", "above 0"},
		"memory in words":             {task(`"resources":{"ramGb":"8"}`), "nodes[0].resources.ramGb", "must be a number"},
		"half a gpu":                  {task(`"resources":{"gpu":0.5}`), "nodes[0].resources.gpu", "whole number"},
		"memory misspelt":             {task(`"resources":{"ramGB":8}`), "nodes[0].resources.ramGB", `did you mean "ramGb"?`},
		"too many retries":            {task(`"retries":{"max":101}`), "nodes[0].retries.max", "0 to 100"},
		"retries beyond integers":     {task(`"retries":{"max":9007199254740993}`), "nodes[0].retries.max", "whole number"},
		"a shrinking wait":            {task(`"retries":{"factor":0.5}`), "nodes[0].retries.factor", "from 1"},
		"shrinking memory":            {task(`"retries":{"memoryFactor":0.5}`), "nodes[0].retries.memoryFactor", "from 1"},
		"an unknown reason":           {task(`"retries":{"on":["error","luck"]}`), "nodes[0].retries.on[1]", "`oom`"},
		"a reason twice":              {task(`"retries":{"on":["oom","oom"]}`), "nodes[0].retries.on[1]", "twice"},
		"a timeout of nothing":        {task(`"timeoutSeconds":0`), "nodes[0].timeoutSeconds", "above 0"},
		"too many at once":            {task(`"scatter":{"over":"[1]","maxParallel":10001}`), "nodes[0].scatter.maxParallel", "1 to 10000"},
		"cache in words":              {task(`"cache":"yes"`), "nodes[0].cache", "true or false"},
		"an output that leaves":       {task(`"outputs":{"o":{"path":"../x"}}`), "nodes[0].outputs.o.path", "leaves the working folder"},
		"an output that comes back":   {task(`"outputs":{"o":{"path":"a/../x"}}`), "nodes[0].outputs.o.path", "leaves the working folder"},
		"an absolute output":          {task(`"outputs":{"o":{"path":"/x"}}`), "nodes[0].outputs.o.path", "relative"},
		"an output that is not clean": {task(`"outputs":{"o":{"path":"a//x"}}`), "nodes[0].outputs.o.path", "without"},
		"the folder itself":           {task(`"outputs":{"o":{"path":"."}}`), "nodes[0].outputs.o.path", "without"},
		"a pattern for one file":      {task(`"outputs":{"o":{"path":"*.txt"}}`), "nodes[0].outputs.o.path", "`many`"},
		"a folder of many":            {task(`"outputs":{"o":{"path":"a*","many":true,"directory":true}}`), "nodes[0].outputs.o.directory", "not both"},
		"a folder as a pattern":       {task(`"outputs":{"o":{"path":"a*","directory":true}}`), "nodes[0].outputs.o.path", "only an output with"},
		"a broken pattern":            {task(`"outputs":{"o":{"path":"[a","many":true}}`), "nodes[0].outputs.o.path", "not closed"},
		"a port with a bad name":      {task(`"outputs":{"a b":{"path":"x"}}`), `nodes[0].outputs["a b"]`, "cannot be a name"},
		"a port that is no object":    {task(`"inputs":{"i":"inputs.x"}`), "nodes[0].inputs.i", "must be an object"},
		"a port fed by a node":        {task(`"inputs":{"i":{"from":"b.out"}}`), "nodes[0].inputs.i.from", "`inputs.<name>`"},
		"a port fed by no input":      {task(`"inputs":{"i":{"from":"inputs.x"}}`), "nodes[0].inputs.i.from", `no input called "x"`},
		"another input type":          {`{"inputs":{"x":{"type":"folder"}}}`, "inputs.x.type", "`files` or `directory`"},
		"an output from no node":      {`{"outputs":{"x":{"from":"a.o"}}}`, "outputs.x.from", `no step with the id "a"`},
		"an output from no port":      {`{"nodes":[{"id":"a"}],"outputs":{"x":{"from":"a.o"}}}`, "outputs.x.from", `no output called "o"`},
		"an output from a node alone": {`{"nodes":[{"id":"a"}],"outputs":{"x":{"from":"a"}}}`, "outputs.x.from", "`<step>.<output>`"},
		"an edge that is none":        {`{"edges":[[]]}`, "edges[0]", "an object"},
		"an edge without id":          {pair(`{"source":"a","target":"b"}`), "edges[0].id", "needs its id"},
		"an edge id twice":            {pair(`{"id":"e","source":"a","target":"b"},{"id":"e","source":"a","target":"b"}`), "edges[1].id", "`e` is already the id of the line from \"a\" to \"b\""},
		"an edge to nowhere":          {pair(`{"id":"e","source":"a","target":"z"}`), "edges[0].target", `no step with the id "z"`},
		"an edge from nowhere":        {pair(`{"id":"e","source":"z","target":"a"}`), "edges[0].source", `no step with the id "z"`},
		"an edge to itself":           {pair(`{"id":"e","source":"a","target":"a"}`), "edges[0]", "back to itself"},
		"an edge to a note":           {pair(`{"id":"e","source":"a","target":"n"}`), "edges[0]", "note"},
		"half an edge of files":       {pair(`{"id":"e","source":"a","sourceHandle":"o","target":"b"}`), "edges[0].targetHandle", "both handles"},
		"an edge from no port":        {pair(`{"id":"e","source":"a","sourceHandle":"p","target":"b","targetHandle":"i"}`), "edges[0].sourceHandle", `no output called "p"`},
		"an edge with a label":        {pair(`{"id":"e","source":"a","target":"b","label":"x"}`), "edges[0].label", "unknown field"},
		"a cycle":                     {pair(`{"id":"e","source":"a","target":"b"},{"id":"f","source":"b","target":"a"}`), "edges[1]", "a → b → a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, problems := Parse([]byte(tt.src))
			if g != nil || len(problems) == 0 {
				t.Fatal("accepted")
			}
			wantProblem(t, problems, tt.path, tt.says)
		})
	}
}

func wantProblem(t *testing.T, problems []Problem, path, says string) {
	t.Helper()
	for _, p := range problems {
		if p.Path == path && strings.Contains(p.Message, says) {
			return
		}
	}
	t.Errorf("want %q at %q, have %v", says, path, problems)
}

func TestWhatTheRulesAllowIsAccepted(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]string{
		"nothing at all":             `{}`,
		"version as 1.0":             `{"version":1.0}`,
		"own fields everywhere":      `{"x-a":1,"ui":[],"nodes":[{"id":"a","x-b":{},"ui":1,"retries":{"x-c":1},"outputs":{"o":{"path":"o","ui":2}}}]}`,
		"a note with a text":         `{"nodes":[{"id":"n","type":"note","text":"hello","name":"Remark"}]}`,
		"no command yet":             `{"nodes":[{"id":"a","command":""}]}`,
		"an edge that orders":        pair(`{"id":"e","source":"a","target":"b"}`),
		"handles that are null":      pair(`{"id":"e","source":"a","target":"b","sourceHandle":null,"targetHandle":null}`),
		"an undeclared target port":  pair(`{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"i"}`),
		"several edges into a port":  pair(`{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"i"},{"id":"f","source":"a","sourceHandle":"o","target":"b","targetHandle":"i"}`),
		"a fraction of a processor":  task(`"resources":{"vcpu":0.5,"ramGb":0.25,"gpu":0}`),
		"whole numbers with a point": task(`"retries":{"max":2.0,"backoffSeconds":0.5}`),
		"a dot in a file name":       task(`"outputs":{"o":{"path":"a/..b/.c"}}`),
		"an image by its digest":     task(`"image":"localhost:5000/a/b_c@sha256:` + strings.Repeat("ab", 32) + `"`),
		"an image by a short name":   task(`"image":"ubuntu"`),
		"another interpreter":        task(`"interpreter":"python3.12"`),
		"an id at its longest":       `{"nodes":[{"id":"_` + strings.Repeat("a", 62) + `"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parsed(t, src)
		})
	}
}

func TestAllProblemsComeAtOnce(t *testing.T) {
	t.Parallel()
	_, problems := Parse([]byte(`{"version":3,"nodes":[{"id":"a","cache":1},{"id":"a","when":"params.x"}],"edges":[{"id":"e","source":"a","target":"b"}],"wat":1}`))
	for path, says := range map[string]string{
		"version": "must be 1", "nodes[0].cache": "true or false", "nodes[1].id": "already",
		"nodes[1].when": `no parameter called "x"`, "edges[0].target": "no step", "wat": "unknown",
	} {
		wantProblem(t, problems, path, says)
	}
}

func TestTheListOfProblemsIsBounded(t *testing.T) {
	t.Parallel()
	_, problems := Parse([]byte(`{"nodes":[` + strings.Repeat(`{"b":1},`, 999) + `{}]}`))
	if len(problems) != maxProblems+1 || !strings.Contains(problems[maxProblems].Message, "and 1499 more") {
		t.Errorf("%d problems, the last %v", len(problems), problems[len(problems)-1])
	}
}

func TestTheLimitsHold(t *testing.T) {
	t.Parallel()
	many := func(n int, each string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, each, i)
		}
		return b.String()
	}
	for name, tt := range map[string]struct{ src, path, says string }{
		"nodes":      {`{"nodes":[` + many(MaxNodes+1, `{"id":"n%d"}`) + `]}`, "nodes", "at most 2000"},
		"edges":      {`{"nodes":[{"id":"a"},{"id":"b"}],"edges":[` + many(MaxEdges+1, `{"id":"e%d","source":"a","target":"b"}`) + `]}`, "edges", "at most 10000"},
		"parameters": {`{"parameters":{` + many(maxEntries+1, `"p%d":{}`) + `}}`, "parameters", "at most 500"},
		"ports":      {task(`"outputs":{` + many(maxEntries+1, `"p%d":{}`) + `}`), "nodes[0].outputs", "at most 500"},
		"variables":  {task(`"env":{` + many(maxEntries+1, `"p%d":""`) + `}`), "nodes[0].env", "at most 500"},
		"depth":      {strings.Repeat(`{"x-a":`, 65) + `1` + strings.Repeat(`}`, 65), "", "nested more than 64"},
		"brackets":   {strings.Repeat(`[`, 8<<20), "", "nested more than 64"},
		"values":     {`{"x-a":[` + strings.Repeat(`1,`, 4<<20) + `1]}`, "", "more than 400000 values"},
		"junk":       {strings.Repeat("junk", 2<<20), "", "not valid JSON"},
		"digits":     {`{"x-a":` + strings.Repeat("1", 8<<20) + `}`, "x-a", "longer than"},
		"bytes":      {`"` + strings.Repeat(" ", maxBytes) + `"`, "", "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, problems := Parse([]byte(tt.src))
			wantProblem(t, problems, tt.path, tt.says)
		})
	}
}
