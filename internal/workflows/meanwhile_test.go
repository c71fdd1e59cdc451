package workflows_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/store/storetest"
	"github.com/millrace/millrace/internal/workflows"
)

// Who changes one field keeps what somebody else makes of another meanwhile, also
// where a definition goes into a document first.
func TestSavingADefinitionUndoesNothingElse(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		for name, tt := range map[string]struct {
			mine, theirs workflows.Edit
			want         string
		}{
			"name and description": {workflows.Edit{Name: text("mine")}, workflows.Edit{Description: text("theirs")}, "mine theirs []"},
			"name and tags":        {workflows.Edit{Name: text("mine")}, workflows.Edit{Tags: []string{"theirs"}}, "mine  [theirs]"},
			"description and name": {workflows.Edit{Description: text("mine")}, workflows.Edit{Name: text("theirs")}, "theirs mine []"},
			"tags and all":         {workflows.Edit{Tags: []string{"mine"}}, workflows.Edit{Name: text("a"), Description: text("b")}, "a b [mine]"},
			"the same field":       {workflows.Edit{Name: text("mine")}, workflows.Edit{Name: text("theirs")}, "mine  []"}, // the last one wins
		} {
			w := b.create(b.owner)
			b.GoLive(meanwhile{b.live(w), func() {
				if _, err := b.Update(ctx, b.owner, w.ID, tt.theirs); err != nil {
					t.Error(err)
				}
			}})
			tt.mine.Definition = steps(3)
			now, err := b.Update(ctx, b.owner, w.ID, tt.mine)
			if got := fmt.Sprintf("%s %s %v", now.Name, now.Description, now.Tags); err != nil || got != tt.want || now.NodeCount != 3 {
				t.Errorf("%s: %q with %d nodes, want %q: %v", name, got, now.NodeCount, tt.want, err)
			}
			b.GoLive(nil)
		}
	})
}

func TestAFolderIsMovedByWhoMayAndOnlyToWhereItCanBe(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		in := func(folder string) workflows.Workflow {
			t.Helper()
			w, err := b.Create(ctx, b.owner, workflows.New{Name: "w", Folder: folder})
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		top, below, beside := in("lab"), in("lab/rna"), in("labs")
		viewer := storetest.Join(t, b.db, b.owner, "bob", access.Viewer)
		for name, tt := range map[string]struct {
			as       access.Caller
			from, to string
			kind     fault.Kind
		}{
			"a viewer":       {viewer, "lab", "other", fault.KindForbidden},
			"another team":   {storetest.Owner(t, b.db, "mia"), "lab", "other", fault.KindNotFound},
			"from nowhere":   {b.owner, "", "other", fault.KindInvalid},
			"none there":     {b.owner, "la", "other", fault.KindNotFound},
			"a control":      {b.owner, "lab", "a\x00b", fault.KindInvalid},
			"an empty level": {b.owner, "lab", "a//b", fault.KindInvalid},
			"too deep":       {b.owner, "lab", strings.Repeat("a/", 40) + "a", fault.KindInvalid},
		} {
			n, err := b.RenameFolder(ctx, tt.as, tt.from, tt.to)
			storetest.Refused(t, name, err, tt.kind)
			if n != 0 {
				t.Errorf("%s: %d moved", name, n)
			}
		}
		if n, err := b.RenameFolder(ctx, b.owner, " lab ", "core/lab"); err != nil || n != 2 {
			t.Errorf("%d moved, %v", n, err)
		}
		for w, want := range map[*workflows.Workflow]string{&top: "core/lab", &below: "core/lab/rna", &beside: "labs"} {
			if now, err := b.Workflow(ctx, b.owner, w.ID); err != nil || now.Folder != want {
				t.Errorf("%q, want %q: %v", now.Folder, want, err)
			}
		}
		if n, err := b.RenameFolder(ctx, b.owner, "core/lab", ""); err != nil || n != 2 {
			t.Errorf("to the top: %d moved, %v", n, err)
		}
		if now, err := b.Workflow(ctx, b.owner, below.ID); err != nil || now.Folder != "rna" {
			t.Errorf("%q, %v", now.Folder, err)
		}
	})
}

func TestStepsAreFoundByTheirWords(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		make := func(as access.Caller, name, definition string) {
			t.Helper()
			b.clock.Pass(time.Second)
			if _, err := b.Create(ctx, as, workflows.New{Name: name, Definition: []byte(definition)}); err != nil {
				t.Fatal(err)
			}
		}
		make(b.owner, "rna", `{"nodes":[{"id":"align_reads","name":"Align","command":"x"},{"id":"memo","type":"note","name":"Align notes","text":"align"},{"id":"plot","command":"align"}]}`)
		make(b.owner, "dna", `{"nodes":[{"id":"a","name":"Align long reads","command":"x"}]}`)
		make(storetest.Owner(t, b.db, "mia"), "other", `{"nodes":[{"id":"align","command":"x"}]}`)
		for words, want := range map[string]string{
			"align": "dna.a rna.align_reads", "ALIGN": "dna.a rna.align_reads", "align long": "dna.a", "lign": "dna.a rna.align_reads", "plot": "rna.plot", "notes": "", "nothing": "",
		} {
			found, err := b.Steps(ctx, b.owner, words)
			var got []string
			for _, s := range found {
				got = append(got, s.WorkflowName+"."+s.Node)
			}
			if err != nil || strings.Join(got, " ") != want {
				t.Errorf("%q finds %v, want %q: %v", words, got, want, err)
			}
		}
		many := make
		var nodes []string
		for i := range 30 {
			nodes = append(nodes, fmt.Sprintf(`{"id":"many%d","command":"x"}`, i))
		}
		many(b.owner, "crowd", `{"nodes":[`+strings.Join(nodes, ",")+`]}`)
		if found, err := b.Steps(ctx, b.owner, "many"); err != nil || len(found) != 20 {
			t.Errorf("%d are found of a crowd, %v", len(found), err)
		}
		_, err := b.Steps(ctx, access.Caller{Team: b.owner.Team, Role: access.GuestEditor}, "align")
		storetest.Refused(t, "a guest", err, fault.KindForbidden)
	})
}

// What keeps a definition from running here is said, and is not kept with it.
func TestProblemsComeAndGoWithTheServer(t *testing.T) {
	each(t, func(t *testing.T, b *bench) {
		ctx := t.Context()
		const definition = `{"nodes":[{"id":"a","command":"x","environment":{"conda":["samtools=1.20"]}},{"id":"b","command":"x","secrets":["KEY"]},{"id":"c","command":"x","environment":{"python":"3.12","pip":["numpy"]}}]}`
		w, err := b.Create(ctx, b.owner, workflows.New{Name: "w", Definition: []byte(definition)})
		if err != nil {
			t.Fatal(err)
		}
		said := func() string {
			t.Helper()
			now, err := b.Workflow(ctx, b.owner, w.ID)
			if err != nil {
				t.Fatal(err)
			}
			problems, _, err := b.Validate(ctx, b.owner, []byte(definition))
			if err != nil || len(problems) != len(now.Problems) {
				t.Errorf("%d problems, and %d when it is checked: %v", len(now.Problems), len(problems), err)
			}
			var list []string
			for _, p := range now.Problems {
				list = append(list, p.Path)
			}
			return strings.Join(list, " ")
		}
		if got := said(); got != "nodes[1].secrets[0]" {
			t.Error(got)
		}
		b.SayNoEnvironments(func(s environment.Spec) string {
			if len(s.Conda) > 0 {
				return "this server has no conda"
			}
			return ""
		})
		if got := said(); got != "nodes[0].environment nodes[1].secrets[0]" {
			t.Error(got)
		}
		b.SayNoEnvironments(nil)
		if got := said(); got != "nodes[1].secrets[0]" {
			t.Error(got)
		}
		if problems, _, err := b.Validate(ctx, b.owner, []byte(`{"nodes":[{"id":"a","comand":"x"}]}`)); err != nil || len(problems) == 0 {
			t.Errorf("what cannot be saved: %v, %v", problems, err)
		}
	})
}
