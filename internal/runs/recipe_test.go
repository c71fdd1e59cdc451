package runs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/folders"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/store/storetest"
)

// A step is done again with the files that it had, or it is said why not: none is
// replaced by what is there now.
func TestAStepIsDoneAgainWithWhatItHad(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		all := b.kept()
		ctx := t.Context()
		var recipe runs.Recipe
		var refused error
		b.Service = runs.NewService(runs.Options{
			Store: b.db, Details: b.db, Shards: b.db, Logs: b.db, Submit: b.db, Known: b.db, Kept: b.db, Objects: all, Engine: b.work, Catalog: credits.DefaultCatalog(), Now: b.clock.Now,
			Recipes: func(r runs.Run, a runs.Attempt, made []runs.Output) (runs.Recipe, error) {
				if a.Number != 2 || a.Node != "b" || len(made) == 0 || len(r.Definition) == 0 {
					t.Errorf("asked about attempt %d of %s, with %d files", a.Number, a.Node, len(made))
				}
				return recipe, refused
			},
		})
		r := b.start(b.owner, b.workflow(`{"nodes":[{"id":"a","command":"true","outputs":{"o":{"path":"o"},"f":{"path":"f","directory":true}}},{"id":"b","command":"true"}],"edges":[{"id":"e","source":"a","target":"b"}]}`))
		key := fmt.Sprintf("teams/%s/runs/%s/a/", b.owner.Team, r.ID)
		file := b.put(all, key+"o", "text")
		sum := folders.Hash([]byte("x"))
		m, err := folders.New([]folders.Entry{{Path: "x", Size: 1, SHA256: sum}})
		if err != nil {
			t.Fatal(err)
		}
		folder, data := b.put(all, key+"f", string(m.Text())), b.put(all, key+"f.data", "x")
		folder.Folder = &runs.Folder{Data: data.Key, Mark: data.Mark, Files: 1, Bytes: 1, SHA256: sum}
		file.Node, file.Port, folder.Node, folder.Port = "a", "o", "a", "f"
		now := b.clock.Now()
		b.carryOut(r.ID, lifecycle.Completed, runs.Step{
			Outputs: []runs.Output{file, folder},
			Attempts: []runs.Attempt{
				{Node: "a", Number: 1, Fence: "f", State: runs.AttemptSucceeded, Outputs: 2, StartedAt: now},
				{Node: "b", Number: 1, Fence: "f", State: runs.AttemptFailed, StartedAt: now},
				{Node: "b", Number: 2, Fence: "f", State: runs.AttemptSucceeded, StartedAt: now},
			},
		})
		reads := func(keys ...string) {
			recipe = runs.Recipe{Attempt: 2, Sources: []string{"a"}}
			for _, k := range keys {
				recipe.Files = append(recipe.Files, runs.RecipeFile{Path: "in/x/0/name", GivenFile: runs.GivenFile{Key: k}})
			}
		}
		reads(file.Key)
		got, err := b.Recipe(ctx, b.owner, r.ID, "b", 0, "https://here")
		if err != nil || len(got.Files) != 1 || got.Files[0].SHA256 != file.SHA256 || !strings.HasPrefix(got.Files[0].URL, "https://here/") || !got.Files[0].ExpiresAt.After(now) {
			t.Fatalf("%+v, %v", got, err)
		}
		refused = errors.New("cannot be read")
		if _, err := b.Recipe(ctx, b.owner, r.ID, "b", 0, ""); !errors.Is(err, refused) {
			t.Errorf("%v", err)
		}
		refused = nil
		viewer, mia := storetest.Join(t, b.db, b.owner, "bob", access.Viewer), storetest.Owner(t, b.db, "mia")
		for name, tt := range map[string]struct {
			as   access.Caller
			node string
			keys []string
			kind fault.Kind
			says string
		}{
			"a viewer":                {viewer, "b", []string{file.Key}, "", ""},
			"nothing":                 {b.owner, "b", nil, "", ""},
			"another team":            {mia, "b", nil, fault.KindNotFound, ""},
			"a step that there isn't": {b.owner, "c", nil, fault.KindNotFound, ""},
			"a file that is gone":     {b.owner, "b", []string{file.Key, "teams/x/none"}, fault.KindConflict, "its input name was deleted"},
			"an address":              {b.owner, "b", []string{"https://host.example/x?token=secret"}, fault.KindConflict, "which is not kept here"},
			"a folder":                {b.owner, "b", []string{folder.Key}, fault.KindConflict, "the step reads the folder"},
		} {
			reads(tt.keys...)
			_, err := b.Recipe(ctx, tt.as, r.ID, tt.node, 0, "https://here")
			storetest.Refused(t, name, err, tt.kind)
			if err != nil && (!strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := b.db.DeleteFile(ctx, b.owner.Team, file.Key); err != nil {
			t.Fatal(err)
		}
		reads() // and none of them is named any more
		_, err = b.Recipe(ctx, b.owner, r.ID, "b", 0, "https://here")
		if storetest.Refused(t, "a file of a step before was deleted", err, fault.KindConflict); err != nil && !strings.Contains(err.Error(), "1 files that it read from a were deleted") {
			t.Errorf("%v", err)
		}
	})
}
