package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/git/gittest"
)

// A workflow that follows Git is the team's like any other: it is exported, and a
// backup follows on. Nobody draws in it, whatever their client sends.
func TestAWorkflowThatFollowsGitIsKeptAndNotDrawnIn(t *testing.T) {
	t.Parallel()
	r := gittest.New(t)
	r.Write("millrace.yaml", followedFile)
	r.Write("count.sh", "echo one")
	first := r.Commit()
	address := r.Serve()
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	s := start(t, "--data", dir, "--fetch-allow-private")
	token, cookie, _ := s.signUp("ada")
	as := []string{"Authorization", bearer(token)}
	made := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"git":{"git":%q}}`, address), as...)
	at := "/api/workflows/" + made["id"].(string)
	w := shared{id: made["id"].(string), token: token}

	c := newEditors(t)
	for _, who := range []string{"ada", "eve"} {
		c.open(who, s, s.roomToken(w))
		c.wait(who, "provider.synced && doc.getMap('nodes').has('count')")
	}
	c.add("ada", "smuggled")
	c.run("ada", "awareness.setLocalStateField('cursor', {x: 7, y: 7})") // is heard after what was drawn
	c.wait("eve", "[...awareness.getStates().values()].some((s) => s.cursor?.x === 7)")
	if got := s.want(200, "GET", at, "", as...); nodesOf(got) != "count" || got["revision"] != 1.0 {
		t.Errorf("somebody drew: %v", got["definition"])
	}

	exported := s.want(200, "GET", "/api/account/data", "", as...)
	list, _ := exported["workflows"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["git"].(map[string]any)["commit"] != first {
		t.Errorf("exported are %v", list)
	}

	if out, err := millrace(t, "backup", "--data", dir, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	r.Write("millrace.yaml", strings.ReplaceAll(followedFile, "id: count", "id: counted"))
	second := r.Commit()
	again := start(t, "--data", copied, "--public-urls", s.base, "--fetch-allow-private")
	token = again.want(200, "POST", "/auth/token", "", "Cookie", cookie)["token"].(string)
	as = []string{"Authorization", bearer(token)}
	if got := again.want(200, "GET", at, "", as...); got["git"].(map[string]any)["commit"] != first {
		t.Errorf("in the backup it is at %v", got["git"])
	}
	if got := again.want(200, "POST", at+"/refresh", "", as...); got["git"].(map[string]any)["commit"] != second || nodesOf(got) != "counted" {
		t.Errorf("the backup followed on to %v", got["git"])
	}
}
