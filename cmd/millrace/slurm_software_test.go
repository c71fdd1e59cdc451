package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/engine/executor/environments/indextest"
	"github.com/millrace/millrace/internal/git/gittest"
)

// A task on a cluster has the code and the environment that it has beside its
// server, and makes the same of them.
func TestTasksOnSlurmHaveTheirCodeAndEnvironment(t *testing.T) {
	t.Parallel()
	indextest.NeedUV(t)
	x := indextest.New(t)
	x.AddWheel("greeter", "1.1", map[string]string{
		"greeter.py": "import words\ndef main(): print('hello ' + words.WORD)\n", "greeter-1.1.dist-info/entry_points.txt": "[console_scripts]\ngreet = greeter:main\n",
	}, "words>=2")
	x.AddWheel("words", "2.5", map[string]string{"words.py": "WORD = 'world'\n"})
	r := gittest.New(t)
	r.Write("analysis/greet.sh", "greet; python -c 'import words; print(words.WORD)'; cat \"$SOURCE_DIR/data\"")
	r.Write("analysis/data", "of the commit\n")
	commit := r.Commit()
	definition := fmt.Sprintf(`{"source":{"git":%q,"path":"analysis"},"nodes":[{"id":"a","environment":{"pip":["greeter"]},"scatter":{"over":"[1,2]"},"outputs":{"o":{"path":"o"}},
		"command":"(echo $ITEM; sh $SOURCE_DIR/greet.sh) > o; cat o; touch $SOURCE_DIR/new $VIRTUAL_ENV/new 2>/dev/null || true"},
		{"id":"b","command":"cat $INPUT_in > all; env | grep -c VIRTUAL_ENV >> all || true","outputs":{"all":{"path":"all"}}}],
		"edges":[{"id":"e","source":"a","sourceHandle":"o","target":"b","targetHandle":"in"}]}`, r.Serve())
	made := func(s *server) map[string]string {
		t.Helper()
		_, cookie, _ := s.signUp("ada")
		w := s.want(201, "POST", "/api/workflows", fmt.Sprintf(`{"name":"w","definition":%s}`, definition), "Cookie", cookie)["id"].(string)
		run := s.endedFor(cookie, s.beginRun(cookie, fmt.Sprintf(`{"workflowId":%q}`, w)))
		if run["status"] != "completed" || run["commit"] != commit || !strings.Contains(run["logs"].(string), "hello world\nworld\nof the commit\n") {
			t.Fatalf("%v: %v at %v\n%s", run["status"], run["errorMessage"], run["commit"], run["logs"])
		}
		return s.made(cookie, run["id"].(string))
	}
	settings := []string{"--fetch-allow-private", "--pip-index-url", x.URL, "--data"}
	there := made(onSlurm(t, t.TempDir(), append(settings, t.TempDir())...))
	here := made(start(t, append(settings, t.TempDir())...))
	if diff := cmp.Diff(here, there); diff != "" || len(there) != 3 {
		t.Errorf("%d outputs: %s", len(there), diff)
	}
}
