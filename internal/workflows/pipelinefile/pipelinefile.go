// Package pipelinefile makes a definition of a repository that holds a pipeline of
// Nextflow or Snakemake: one step that launches it, and parameters from what the
// pipeline says of itself. Whoever may push to the repository has written that, so
// it is believed nothing: what cannot be a parameter is left out, and its values
// reach the engine in a file, never as words of a command.
package pipelinefile

import (
	"encoding/json"
	"regexp"

	"github.com/millrace/millrace/internal/definitionfile"
	"github.com/millrace/millrace/internal/domain/pipeline"
)

// Main are the files by which a pipeline is known; the first that is there counts.
var Main = []string{"main.nf", "Snakefile", "workflow/Snakefile"}

// EngineOf is the engine that reads one of them.
func EngineOf(main string) pipeline.Engine {
	if main == Main[0] {
		return pipeline.Nextflow
	}
	return pipeline.Snakemake
}

// MaxBytes is how large each of the files may be that are read here.
const MaxBytes = 1 << 20

// ParameterFiles are those that say which parameters there are; the first counts.
func ParameterFiles(e pipeline.Engine) []string {
	if e == pipeline.Nextflow {
		return []string{"nextflow_schema.json"}
	}
	return []string{"config/config.yaml", "config.yaml", "config/config.yml", "config.yml"}
}

// SettingFiles are those that may ask for containers, beside the main one.
func SettingFiles(e pipeline.Engine) []string {
	if e == pipeline.Nextflow {
		return []string{"nextflow.config"}
	}
	return nil
}

// Files are what is read of a repository; those that are not there are empty.
type Files struct {
	Main       string // its name
	Code       []byte // of the main file
	Settings   []byte
	Parameters []byte
}

// Definition is the workflow that launches a pipeline. What it says of a mistake is
// for people.
func Definition(f Files) (definitionfile.File, error) {
	engine := EngineOf(f.Main)
	read := fromConfig
	if engine == pipeline.Nextflow {
		read = fromSchema
	}
	p := &parameters{}
	if len(f.Parameters) > 0 {
		if err := read(f.Parameters, p); err != nil {
			return definitionfile.File{}, err
		}
	}
	head := map[string]any{
		"id": pipeline.Head, "name": engine.Title(), "command": commands[engine],
		"inputs":  map[string]any{"files": map[string]any{"from": "inputs.files", "optional": true}},
		"outputs": map[string]any{"results": map[string]any{"path": "results", "directory": true, "optional": true}},
	}
	if asksForContainers(engine, f) {
		head[ContainersField] = true
	}
	definition, err := json.Marshal(map[string]any{
		"version": 1, "parameters": p.byName(), "nodes": []any{head},
		"inputs": map[string]any{"files": map[string]any{
			"type": "files", "required": false, "description": "The pipeline finds them in the folder inputs, by their names: inputs/samples.csv.",
		}},
	})
	return definitionfile.File{Definition: definition}, err
}

// commands launch a pipeline in a copy of its repository: engines write beside
// their files. All values come from the file of parameters.
var commands = map[pipeline.Engine]string{
	pipeline.Snakemake: prepare + `$SNAKEMAKE_PROGRAM --cores "$VCPU" --configfile "$PARAMS_FILE" --logger millrace --logger-millrace-events-file "$EVENTS_FILE"
`,
	pipeline.Nextflow: prepare + `cat > "$EVENTS_FILE.config" <<'END'
` + traceSettings + `END
$NEXTFLOW_PROGRAM run main.nf -offline -ansi-log false -params-file "$PARAMS_FILE" -c "$EVENTS_FILE.config" -with-trace "$EVENTS_FILE" -with-dag "$EVENTS_FILE.dot"
`,
}

// traceSettings have Nextflow write what is shown of its tasks. A script has lines
// of its own: the word after it is the end of the row.
const traceSettings = `trace.raw = true
trace.sep = '\t'
trace.overwrite = true
trace.fields = 'task_id,hash,native_id,process,name,status,exit,attempt,submit,start,complete,realtime,%cpu,peak_rss,cpus,memory,disk,time,container,queue,workdir,read_bytes,write_bytes,hostname,script,error_action'
dag.overwrite = true
`

const prepare = `cp -R "$SOURCE_DIR/." .
chmod -R u+w .
mkdir -p inputs
twice=$(sed 's|.*/||' "$INPUT_files_LIST" | sort | uniq -d | tr '\n' ' ')
if [ -n "$twice" ]; then
  echo "Two input files have the same name, and the pipeline finds them by their names: $twice" >&2
  exit 1
fi
while IFS= read -r file; do ln -sf "$file" inputs/; done < "$INPUT_files_LIST"
`

// ContainersField notes in the step that launches a pipeline that the pipeline asks
// for containers.
const ContainersField = "x-containers"

// NoContainers is what people read of such a pipeline before they start it.
const NoContainers = "This pipeline asks for containers, which cannot be started inside a task. Its processes run with the programs that are installed on the machine."

var containers = map[pipeline.Engine]*regexp.Regexp{
	pipeline.Snakemake: regexp.MustCompile(`(?m)^[ \t]*(container|containerized|singularity)[ \t]*:`),
	pipeline.Nextflow:  regexp.MustCompile(`(?m)\b(docker|singularity|apptainer|podman|charliecloud|shifter|sarus)(\.enabled\b|[ \t]*\{)|^[ \t]*(process\.)?container[ \t]*[='"({]`),
}

// asksForContainers reports whether a pipeline does, as far as its main files tell.
func asksForContainers(e pipeline.Engine, f Files) bool {
	return containers[e].Match(f.Code) || containers[e].Match(f.Settings)
}
