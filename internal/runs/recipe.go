package runs

import (
	"context"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/pipeline"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// GivenFile is a file that a run was given or made.
type GivenFile struct {
	Key    string
	Name   string
	Size   int64
	SHA256 string // empty: not known, or the file is gone
	Gone   bool
	Blob   string // where its bytes are
	Folder bool

	Contents int64 // how many bytes it holds: of a folder, those of its files
}

func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Recipe is what a step was given and what it did with it, so that somebody can
// do it again on a machine of their own.
type Recipe struct {
	Attempt     int
	Interpreter string
	Command     string
	Image       string
	Env         map[string]string // paths in it begin with Folder
	Folder      string            // stands for wherever the recipe is followed
	Files       []RecipeFile      // to fetch
	Lists       map[string]string // to write, by path
	Sources     []string          // nodes whose outputs it reads
	Environment bool              // it has software of its own
	Code        *RecipeCode       // nil: it sees none
	Engine      pipeline.Engine   // whose pipeline it launches; empty: none
}

// RecipeCode is the code from Git that a step sees.
type RecipeCode struct {
	Git        string
	Commit     string
	Submodules bool
}

// RecipeFile is one to fetch.
type RecipeFile struct {
	Path string // below the folder
	GivenFile
	URL       string
	ExpiresAt time.Time
}

// Reproducer makes a recipe of a run's attempt, from the files that the run's
// nodes have made. Its files have a path and a key.
type Reproducer func(r Run, a Attempt, made []Output) (Recipe, error)

// Recipe says how to do again what a shard of a node did last.
func (s *Service) Recipe(ctx context.Context, caller access.Caller, id ids.Run, node string, shard int, base string) (Recipe, error) {
	r, err := s.Run(ctx, caller, id)
	if err != nil {
		return Recipe{}, err
	}
	attempt, err := s.kept.LastAttempt(ctx, caller.Team, id, node, shard)
	if err != nil {
		return Recipe{}, err
	}
	made, err := s.details.OutputsOf(ctx, id)
	if err != nil {
		return Recipe{}, err
	}
	release, err := s.memory.Reserve(len(r.Definition))
	if err != nil {
		return Recipe{}, err
	}
	defer release()
	recipe, err := s.recipes(r, attempt, made)
	if err != nil {
		return recipe, err
	}
	if err := s.checkInputsExist(ctx, id, recipe.Sources, made); err != nil {
		return recipe, err
	}
	keys := make([]string, len(recipe.Files))
	for i, f := range recipe.Files {
		keys[i] = f.Key
	}
	known, err := s.details.FilesAmong(ctx, caller.Team, keys)
	if err != nil {
		return recipe, err
	}
	until := s.now().Add(downloadLife)
	for i := range recipe.Files {
		f := &recipe.Files[i]
		given, there := known[f.Key]
		if addresses.Is(f.Key) {
			return recipe, fault.Conflict("the step reads %s, which is not kept here: it cannot be done again from here", addresses.Address{URL: f.Key}.Shown()).WithCode("input_elsewhere")
		}
		if !there {
			return recipe, fault.Conflict("the step cannot be done again: its input %s was deleted", baseName(f.Path)).WithCode("input_missing")
		}
		if given.Folder {
			return recipe, fault.Conflict("the step reads the folder %s, and only steps that read files can be done again from here", given.Name).WithCode("input_elsewhere")
		}
		f.GivenFile, f.ExpiresAt = given, until
		o := Output{Key: given.Key, Blob: given.Blob, Name: given.Name, ContentType: "application/octet-stream", Size: given.Size}
		if f.URL, err = s.objects.PresignOutput(ctx, o, until, base); err != nil {
			return recipe, err
		}
	}
	return recipe, nil
}

// checkInputsExist is a conflict if a file that one of the nodes made was deleted since:
// without it the step would be given something else.
func (s *Service) checkInputsExist(ctx context.Context, id ids.Run, nodes []string, made []Output) error {
	counts, err := s.kept.FilesMade(ctx, id)
	if err != nil {
		return err
	}
	for _, o := range made {
		counts[o.Node]--
	}
	for _, node := range nodes {
		if counts[node] > 0 {
			return fault.Conflict("the step cannot be done again: %d files that it read from %s were deleted", counts[node], node).WithCode("input_missing")
		}
	}
	return nil
}
