package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// computed is a run whose one step made a file under a key.
func computed(t *testing.T, db *DB, team ids.Team, key string) (runs.Run, runs.Output) {
	t.Helper()
	r := started(t, db, team, `{}`)
	o := runs.Output{Key: "teams/x/runs/" + string(r.ID) + "/out", Node: "n", Port: "p", Name: "out", Size: 10, Mark: "m", SHA256: "sum"}
	o.Blob = o.Key
	a := runs.Attempt{Node: "n", Number: 1, Fence: "f", State: runs.AttemptSucceeded, CacheKey: key, Parts: []byte(`{"of":"` + key + `"}`), Outputs: 1, StartedAt: august, EndedAt: august}
	step := runs.Step{Nodes: []runs.Node{{ID: "n", Name: "n", State: lifecycle.NodeSucceeded}}, Attempts: []runs.Attempt{a}, Outputs: []runs.Output{o}}
	must(t, db.EndRun(t.Context(), r.ID, r.Fence, runs.Ending{Status: lifecycle.Completed, Last: &step}, august))
	return r, o
}

// What was computed is found as long as all of it is there, by its own team.
func TestWhatWasComputedIsFoundWhileItIsThere(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		other, _ := newTeam(t, db)
		find := func(team ids.Team, key string, of ids.Run) string {
			t.Helper()
			list, ok, err := db.Computed(ctx, team, key, of)
			must(t, err)
			if !ok {
				return ""
			}
			return list[0].Key
		}
		first, made := computed(t, db, team, "k")
		newer, next := computed(t, db, team, "k")
		computed(t, db, team, "")
		for _, tt := range []struct {
			name, got, want string
		}{
			{"the newest", find(team, "k", ""), next.Key},
			{"of one run", find(team, "k", first.ID), made.Key},
			{"another key", find(team, "other", ""), ""},
			{"no key", find(team, "", ""), ""},
			{"another team's", find(other, "k", ""), ""},
			{"of a run that made something else", find(team, "k", "run_other"), ""},
		} {
			if tt.got != tt.want {
				t.Errorf("%s: %q, want %q", tt.name, tt.got, tt.want)
			}
		}
		if parts, err := db.LastParts(ctx, team, first.Workflow, "n", 0); err != nil || string(parts) != `{"of":""}` {
			t.Errorf("%s, %v", parts, err)
		}
		if parts, err := db.LastParts(ctx, other, first.Workflow, "n", 0); err != nil || parts != nil {
			t.Errorf("%s, %v", parts, err)
		}
		if _, err := db.DeleteFile(ctx, team, next.Key); err != nil {
			t.Fatal(err)
		}
		if got := find(team, "k", ""); got != made.Key {
			t.Errorf("after the newest was deleted: %q", got)
		}
		if nodes, err := db.NodesWithoutOutputs(ctx, newer.ID); err != nil || !nodes["n"] {
			t.Errorf("%v, %v", nodes, err)
		}
		if nodes, err := db.NodesWithoutOutputs(ctx, first.ID); err != nil || len(nodes) != 0 {
			t.Errorf("%v, %v", nodes, err)
		}
		if kept, err := db.KeptShards(ctx, newer.ID); err != nil || kept["n"] != 0 {
			t.Errorf("kept shards after a file was deleted: %v, %v", kept, err)
		}
		if kept, err := db.KeptShards(ctx, first.ID); err != nil || kept["n"] != 1 {
			t.Errorf("kept shards: %v, %v", kept, err)
		}
		if files, err := db.FilesMade(ctx, newer.ID); err != nil || files["n"] != 1 {
			t.Errorf("%v, %v", files, err)
		}
		// Used again the bytes are those of both; of what was deleted in that moment nothing is made.
		r := started(t, db, team, `{}`)
		again := func(blob string) error {
			o := runs.Output{Key: fmt.Sprint("teams/x/again of ", blob), Node: "n", Port: "p", Name: "out", Size: 10, Blob: blob, Reused: true}
			return db.Advance(ctx, r.ID, r.Fence, runs.Step{Outputs: []runs.Output{o}}, august)
		}
		if err := again(next.Key); !errors.Is(err, runs.ErrOutputsDeleted) {
			t.Error(err)
		}
		must(t, again(made.Key))
		pending, err := db.DeleteFile(ctx, team, made.Key)
		if err != nil || len(pending) != 0 {
			t.Errorf("bytes that another run uses go: %v, %v", pending, err)
		}
		theirs := started(t, db, other, `{}`)
		o := runs.Output{Key: "theirs", Node: "n", Port: "p", Name: "out", Blob: made.Key, Reused: true}
		if err := db.Advance(ctx, theirs.ID, theirs.Fence, runs.Step{Outputs: []runs.Output{o}}, august); !errors.Is(err, runs.ErrOutputsDeleted) {
			t.Errorf("by another team: %v", err)
		}
	})
}

// What an object elsewhere is made of is learnt for one version of it, by one team.
func TestWhatIsLearntOfAnObject(t *testing.T) {
	t.Parallel()
	eachLedger(t, func(t *testing.T, db *DB) {
		ctx := t.Context()
		team, _ := newTeam(t, db)
		other, _ := newTeam(t, db)
		object := addresses.Object{Address: addresses.Address{URL: "s3://lab/a"}, Endpoint: "https://s3.example.org", Size: 5, ETag: "v1"}
		r := newRun(team)
		r.Addresses = []addresses.Object{object, {Address: addresses.Address{URL: "s3://lab/b"}, Size: -1}}
		must(t, db.SubmitRun(ctx, r, 0, nil))
		if before, err := db.Learn(ctx, team, r.ID, object, "sum", august); err != nil || before != "" {
			t.Errorf("%q, %v", before, err)
		}
		if before, err := db.Learn(ctx, team, r.ID, object, "another", august); err != nil || before != "sum" { // the bytes changed meanwhile
			t.Errorf("%q, %v", before, err)
		}
		if _, err := db.Learn(ctx, team, r.ID, addresses.Object{Address: addresses.Address{URL: "s3://lab/none"}}, "x", august); !fault.Is(err, fault.KindNotFound) {
			t.Error(err)
		}
		if list, err := db.AddressesOf(ctx, team, r.ID); err != nil || len(list) != 2 || list[0].Learnt+list[1].Learnt != "sum" {
			t.Errorf("%+v, %v", list, err)
		}
		if list, err := db.AddressesOf(ctx, other, r.ID); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
		variant := func(change func(*addresses.Object)) addresses.Object {
			o := object
			change(&o)
			return o
		}
		ask := []addresses.Object{
			object, object, variant(func(o *addresses.Object) { o.ETag = "v2" }), variant(func(o *addresses.Object) { o.Size = 6 }),
			variant(func(o *addresses.Object) { o.Endpoint = "https://evil.example.org" }), variant(func(o *addresses.Object) { o.ETag = "" }),
		}
		must(t, db.LearntHashes(ctx, team, ask))
		var got string
		for _, o := range ask {
			got += "[" + o.Learnt + "]"
		}
		if got != "[another][another][][][][]" {
			t.Error(got)
		}
		theirs := []addresses.Object{object}
		must(t, db.LearntHashes(ctx, other, theirs))
		if theirs[0].Learnt != "" {
			t.Error("another team knows it")
		}
	})
}
