package workflows

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace/internal/definitionfile"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/workflows/pipelinefile"
)

// folder is that of a repository which a workflow follows, at a commit.
type folder struct {
	repositories Repositories
	team         ids.Team
	from         source.Source
	commit       string
}

// read reads the first of several files; without a name there is none of them.
func (f folder) read(ctx context.Context, names []string, most int64) (name string, text []byte, err error) {
	if len(names) == 0 {
		return "", nil, nil
	}
	name, text, err = f.repositories.File(ctx, f.team, f.from, f.commit, FileWanted{Names: names, MaxBytes: most})
	known, foreseen := errors.AsType[*fault.Error](err)
	switch {
	case errors.Is(err, ErrNoFile):
		return "", nil, nil
	case !foreseen || known.Kind != fault.KindInvalid || known.Code != "":
		return name, text, err
	}
	return name, nil, f.without(known.Message)
}

func (f folder) without(what string) error {
	return gitProblem("git", fmt.Sprintf("%s at commit %s", what, short(f.commit))).WithCode("git_no_definition")
}

// definePipeline makes the definition of a repository that has none, but a pipeline
// of another engine.
func (s *Service) definePipeline(ctx context.Context, v *version, in folder) (err error) {
	var f pipelinefile.Files
	if f.Main, f.Code, err = in.read(ctx, pipelinefile.Main, pipelinefile.MaxBytes); err != nil {
		return err
	}
	if f.Main == "" {
		return in.without("there is no " + strings.Join(definitionfile.Names, " or ") + ", and no pipeline: " + strings.Join(pipelinefile.Main, ", "))
	}
	engine, name := pipelinefile.EngineOf(f.Main), ""
	if _, f.Settings, err = in.read(ctx, pipelinefile.SettingFiles(engine), pipelinefile.MaxBytes); err != nil {
		return err
	}
	if name, f.Parameters, err = in.read(ctx, pipelinefile.ParameterFiles(engine), pipelinefile.MaxBytes); err != nil {
		return err
	}
	read, err := s.memory.Reserve(len(f.Code) + len(f.Settings) + len(f.Parameters))
	if err != nil {
		return err
	}
	v.file, err = pipelinefile.Definition(f)
	read()
	return s.parse(v, in, name, err)
}

// containersUnused lists where a definition launches a pipeline whose containers are
// not used.
func containersUnused(definition []byte) (list []graph.Problem) {
	if !bytes.Contains(definition, []byte(`"`+pipelinefile.ContainersField+`"`)) {
		return nil
	}
	var d struct {
		Nodes []map[string]json.RawMessage `json:"nodes"`
	}
	if json.Unmarshal(definition, &d) != nil {
		return nil
	}
	for i, n := range d.Nodes {
		if string(n[pipelinefile.ContainersField]) == "true" {
			var id, called string
			_ = json.Unmarshal(n["id"], &id) // an odd one is a problem of its own
			_ = json.Unmarshal(n["name"], &called)
			list = append(list, graph.Problem{Path: fmt.Sprintf("nodes[%d]", i), Message: pipelinefile.NoContainers, Code: graph.ContainersUnused, Node: id, Subject: graph.Label(called, id), Warning: true})
		}
	}
	return list
}
