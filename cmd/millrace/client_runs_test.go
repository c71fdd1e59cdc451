package main

import (
	"archive/zip"
	"path/filepath"
	"testing"
)

// ran has somebody run a workflow to its end, under a name, and keeps its id.
func (p *person) ran(definition, keep string, flags string) {
	p.t.Helper()
	p.kept["DEFINITION"] = written(p.t, "counted.json", definition)
	p.types(
		typed{command: "run ${DEFINITION} " + flags, prints: `\Arun_[0-9a-f]+\n\z`, keep: keep},
		typed{command: "runs watch ${" + keep + "} --json", prints: `"status": "completed"`},
	)
}

func findingCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "rita")
	p.ran(counted, "ONE", "--tag pilot --name first")
	p.ran(counted, "TWO", "--name pilot")
	p.types(
		typed{command: "runs --tag pilot", prints: `(?s)\AID[^\n]*\n${ONE} [^\n]*\n\z`},
		// A word that is asked for twice narrows twice.
		typed{command: "runs --tag pilot --search pilot --json", prints: `"id": "${ONE}"`},
		typed{command: "runs --tag pilot --search other", prints: ``},
		typed{command: "runs --search pilot --tag nothing", prints: ``},
		typed{command: "runs --tag x --search x", prints: ``},
		typed{command: "runs --started-by nobody --search nobody", prints: ``},
		typed{command: "runs --limit 0", status: 1, tells: `--limit must be at least 1`},
		typed{command: "runs --since yesterday", status: 1, tells: `duration`},
		typed{command: "runs --workflow nothing", status: 1, tells: `the team has no workflow "nothing": see millrace workflows list`},

		typed{command: "runs favorite ${TWO}", prints: `^${TWO} is a favorite$`},
		typed{command: "runs --favorite", prints: `(?s)\AID[^\n]*\n${TWO} [^\n]*\n\z`},
		typed{command: "runs star ${TWO} --remove", prints: `^${TWO} is not a favorite$`},
		typed{command: "runs --favorite", prints: ``},
		typed{command: "runs favorite run_nothing", status: 1, tells: `^millrace: `},
	)
	p.types(typed{command: "runs --tag pilot --search pilot", prints: `(?s)\AID[^\n]*\n${ONE} [^\n]*\n\z`})
}

func deletingCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "dora")
	p.ran(counted, "ONE", "")
	p.ran(counted, "TWO", "")
	p.types(
		typed{command: "runs cancel ${ONE}", prints: `^${ONE} had already ended: completed$`},
		typed{command: "runs cancel ${ONE} run_nothing ${TWO}", status: 1, prints: `\A${ONE} had already ended: completed\n\z`, tells: `run.*see millrace runs list`},
		typed{command: "runs delete ${ONE} run_nothing ${TWO}", status: 1, prints: `\Adeleted ${ONE}\n\z`, tells: `run.*see millrace runs list`},
		typed{command: "runs view ${ONE}", status: 1, tells: `see millrace runs list`},
		typed{command: "runs delete ${TWO} --json", prints: "\"id\": \"${TWO}\"\n\"deleted\": true"},
		typed{command: "runs", prints: ``},
	)
}

func crateCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "cora")
	p.ran(`{"nodes":[{"id":"a","command":"echo 42 > n.txt","outputs":{"n":{"path":"n.txt"}}}]}`, "RUN", "")
	to := filepath.Join(t.TempDir(), "paper.zip")
	p.kept["TO"] = to
	p.types(
		typed{command: "runs crate ${RUN} --to ${TO}", prints: `\A${TO}\n\z`},
		typed{command: "runs crate ${RUN} --to ${TO}", status: 1, tells: `already exists: replace it with --force`},
		typed{command: "runs crate ${RUN} --to ${TO} --force --json", prints: `"file": "${TO}"`},
		typed{command: "runs crate run_nothing --to ${TO}.2", status: 1, tells: `see millrace runs list`},
		typed{command: "runs crate ${RUN} --to ${TO}/below.zip", status: 1, tells: `below.zip`},
		typed{command: "runs environment ${RUN} a", status: 1, tells: `^millrace: `},
		typed{command: "runs environment ${RUN} a --lock --log", status: 1, tells: `can't be used together`},
		typed{command: "runs kept ${RUN}", prints: ``},
		typed{command: "runs kept ${RUN} a", status: 1, tells: `no folder of step a is kept: see millrace runs kept ${RUN}$`},
		typed{command: "runs retry ${RUN} --preview", prints: "^STEP +NAME +EXPECTED +WHY$\n^a "},
		typed{command: "runs retry ${RUN} --only nothing", status: 1, tells: `nothing`},
		typed{command: "runs compare ${RUN} ${RUN} --all", prints: "^output a.n n.txt +[0-9a-f]{12} +[0-9a-f]{12}$\n^1 outputs are the same, 0 differ, 0 are only in A, 0 only in B.$"},
		typed{command: "runs compare ${RUN} run_nothing", status: 1, tells: `^millrace: `},
	)
	files, err := filepath.Glob(to + "*")
	if err != nil || len(files) != 1 {
		t.Errorf("it leaves %v, %v", files, err)
	}
	z, err := zip.OpenReader(to)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	names := map[string]bool{}
	for _, f := range z.File {
		names[filepath.Base(f.Name)] = true
	}
	if !names["ro-crate-metadata.json"] || !names["n.txt"] {
		t.Errorf("it has %v", names)
	}
}

func moneyCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "uma")
	p.ran(counted, "RUN", "--tag plain")
	p.types(
		typed{command: "usage", prints: "^BY +NAME +RUNS +CREDITS$\n^workflow +counted +1 +(0\\.\\d+|under 0.0001)$"},
		typed{command: "usage --by tag,user --days 7", prints: "^tag +plain +1 \n^user +uma +1 "},
		typed{command: "usage --by tag --csv", prints: "^date,by,key,name,credits$\n^20\\d\\d-\\d\\d-\\d\\d,tag,plain,plain,0\\.\\d+$"},
		typed{command: "usage --json --days 90", prints: "\"days\": 90\n\"totalCredits\": 0\\.\\d+"},
		typed{command: "usage --days 5", status: 1, tells: `^millrace: `},
		typed{command: "usage --by colour", status: 1, tells: `--by must be one of "tag","workflow","user"`},
		typed{command: "executors", prints: "^NAME +KIND +FREE +CAPACITY +QUEUED +TYPICAL WAIT +PRICE$\n^local +local +\\d+ vCPU, \\d+ GB +64 vCPU, 256 GB +\\d+ .* × 1$"},
		typed{command: "executors --json", prints: `"vcpu": 64`},
		typed{command: "notifications", prints: `\AWHEN +TYPE +WHAT +WHERE\n\z`},
		typed{command: "notifications --all --read --json", prints: `"notifications": \[\]`},
		typed{command: "estimate nothing", status: 1, tells: `see millrace workflows list`},
		typed{command: "estimate counted --compute 2x8", prints: "^size +2x8$\n^allowed +yes$\n^typical run +"},
		typed{command: "estimate --compute 512x4096", prints: "^allowed +no$\n^reason +\\S+"},
	)
}

func comparingCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "kim")
	const twice = `{"parameters":{"n":{"type":"integer","default":1}},"nodes":[{"id":"a","command":"mkdir p q; echo same > p/x.txt; echo $PARAM_n > q/x.txt","outputs":{"o":{"path":"*/x.txt","many":true}}}]}`
	p.ran(twice, "ONE", "-p n=1")
	p.ran(twice, "TWO", "-p n=2")
	p.types(
		typed{command: "runs compare ${ONE} ${TWO}", prints: "^parameter n +1 +2$\n^1 outputs are the same, 1 differ, 0 are only in A, 0 only in B.$"},
		typed{command: "runs compare ${ONE} ${ONE}", prints: "^2 outputs are the same, 0 differ, 0 are only in A, 0 only in B.$"},
		typed{command: "runs compare ${ONE} ${TWO} --json", prints: "\"same\": 1\n\"different\": 1\n\"definitionChanges\": \\[\\]"},
		typed{command: "runs compare ${ONE}", status: 1, tells: `expected "<b>"`},
	)
}
