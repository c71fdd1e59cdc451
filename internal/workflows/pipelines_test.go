package workflows_test

import (
	"context"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/workflows"
)

// tree is a host whose repository has some files.
type tree map[string]string

func (tree) Latest(context.Context, ids.Team, source.Source) (string, error) { return firstCommit, nil }

func (t tree) File(_ context.Context, _ ids.Team, s source.Source, _ string, f workflows.FileWanted) (string, []byte, error) {
	if s.Path != "" {
		return "", nil, fault.Invalid("there is no folder %s", s.Path)
	}
	for _, name := range f.Names {
		if text, ok := t[name]; ok {
			return name, []byte(text), nil
		}
	}
	return "", nil, fault.Invalid("there is no %s", f.Names[0]).WithCause(workflows.ErrNoFile)
}

func TestARepositoryWithAPipelineIsAWorkflow(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		create := func(files tree, path string) (workflows.Workflow, error) {
			b.FollowGit(files, nil)
			return b.Create(t.Context(), b.owner, workflows.New{Git: &source.Source{Git: "https://example.org/lab/x.git", Path: path}})
		}
		w, err := create(tree{"Snakefile": "rule a:\n    container: 'x'\n", "config.yaml": "n: 1\n"}, "")
		if err != nil || w.Kind != pipeline.Snakemake || len(w.Problems) > 0 || len(w.Warnings) != 1 || !strings.Contains(string(w.Definition), firstCommit) {
			t.Errorf("made %+v: %v", w, err)
		}
		stored, err := b.Workflow(t.Context(), b.owner, w.ID)
		if err != nil || stored.Kind != pipeline.Snakemake || len(stored.Warnings) != 1 {
			t.Errorf("stored is %+v: %v", stored, err)
		}
		renamed, err := b.Update(t.Context(), b.owner, w.ID, workflows.Edit{Name: text("Mine")})
		if err != nil || renamed.Kind != pipeline.Snakemake {
			t.Errorf("renamed: %+v %v", renamed.Kind, err)
		}
		if _, err := create(tree{"README": "x"}, ""); !coded(err, "git_no_definition") || !strings.Contains(err.Error(), "main.nf") {
			t.Errorf("of nothing: %v", err)
		}
		if _, err := create(tree{"main.nf": "x"}, "elsewhere"); !coded(err, "git_no_definition") || !strings.Contains(err.Error(), "there is no folder elsewhere") {
			t.Errorf("of no folder: %v", err)
		}
		if _, err := create(tree{"main.nf": "x", "nextflow_schema.json": "{"}, ""); !coded(err, "git_invalid_definition") {
			t.Errorf("of no schema: %v", err)
		}
	})
}
