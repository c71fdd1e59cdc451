package main

import (
	"os"
	"path/filepath"
	"testing"
)

func workflowCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "wilma")
	p.kept["FILE"] = written(t, "counted.json", counted)
	p.kept["LIST"] = written(t, "list.json", `[]`)
	p.kept["OTHER"] = written(t, "other.json", `{"name":"Other","description":"Says\nso","definition":`+counted+`}`)
	p.kept["DIR"] = t.TempDir()
	p.types(
		typed{command: "workflows", prints: ``},
		typed{command: "workflows --json", prints: `\A\[\]\n\z`},
		typed{command: "workflows apply ${FILE} --json", prints: "\"revision\": 1\n\"name\": \"counted\""},
		typed{command: "workflows apply ${OTHER}", prints: `^created wf_[0-9a-f]+ Other \(revision 1\)$`},
		typed{command: "workflows apply ${LIST}", status: 1, tells: `list.json: it is not an object`},
		typed{command: "workflows apply ${DIR}", status: 1, tells: `is a directory`},
		typed{command: "workflows apply - --name piped", stdin: counted, prints: `^created wf_\S+ piped`},
		typed{command: "workflows apply -", stdin: counted, status: 1, tells: `set one with --name`},
		typed{command: "workflows apply -", stdin: ``, status: 1, tells: `-: line 1: unexpected end`},
		typed{command: "workflows get Other", prints: "^description +Says so$\n^n +integer +3$\n^reads +file +optional$\n^a$"},
		typed{command: "wf view Other --json", prints: `"description": "Says\\nso"`},

		typed{command: "workflows export Other -o ${DIR}/out.json", prints: ``},
		typed{command: "workflows export Other -o ${DIR}/no/out.json", status: 1, tells: `no such file or directory`},
		typed{command: "workflows export nothing", status: 1, tells: `see millrace workflows list`},
		typed{command: "workflows apply ${DIR}/out.json", prints: `^updated wf_\S+ Other \(revision 1\)$`},

		typed{command: "workflows move counted nothing Other --to RNA", status: 1, prints: `\Acounted is in RNA\n\z`, tells: `no workflow "nothing"`},
		typed{command: "workflows mv Other --to RNA/Deep --json", prints: `"folder": "RNA/Deep"`},
		typed{command: "workflows mv Other --to //", prints: `Other is in no folder`},
		typed{command: "workflows mv Other --to /RNA/Deep/", prints: `Other is in RNA/Deep$`},
		typed{command: "workflows mv Other --to RNA//Deep", status: 1, tells: `needs a name between slashes`},
		typed{command: "workflows mv Other", status: 1, tells: `missing flags: --to`},
		typed{command: "workflows --folder RNA", prints: "^counted +wf_\\S+ +RNA \n^Other +wf_\\S+ +RNA/Deep "},
		typed{command: "workflows --folder /RNA/Deep/", prints: `(?s)\ANAME[^\n]*\nOther [^\n]*\n\z`},
		typed{command: "workflows --folder RN", prints: `\ANAME[^\n]*\n\z`}, // no folder by half its name
		typed{command: "workflows rename-folder RNA DNA --json", prints: `"moved": 2`},
		typed{command: "workflows rename-folder DNA ''", prints: `2 workflows moved`},
		typed{command: "workflows --folder Deep", prints: `^Other +\S+ +Deep `},
		typed{command: "workflows rename-folder Deep Deeper", prints: `^1 workflow moved$`},

		typed{command: "workflows favorite counted nothing", status: 1, tells: `no workflow "nothing"`},
		typed{command: "workflows --favorite", prints: `\ANAME[^\n]*\n\z`}, // names are looked up first
		typed{command: "workflows favorite counted wf_nothing Other", status: 1, prints: `\Awf_\S+ is a favorite\n\z`, tells: `see millrace workflows list|no such`},
		typed{command: "workflows --favorite", prints: `(?s)\ANAME[^\n]*\n\* counted [^\n]*\n\z`},
		typed{command: "workflows star counted counted --remove --json", prints: "(?s)\"favorite\": false.*\"favorite\": false"},

		typed{command: "workflows refresh counted", status: 1, tells: `does not come from Git`},
		typed{command: "workflows detach counted", status: 1, tells: `use --yes`},
		typed{command: "workflows detach counted --yes", status: 1, tells: `^millrace: `},
		typed{command: "workflows create", status: 1, tells: `missing flags: --git`},
		typed{command: "workflows create --git nonsense", status: 1, tells: `^millrace: `},
		typed{command: "workflows create --git https://127.0.0.1:1/x.git --connection Lab", status: 1, tells: `no connection "Lab"`},

		typed{command: "workflows init --folder ${DIR} --from Other", prints: ``},
		typed{command: "workflows init --folder ${DIR}", status: 1, tells: `millrace.yaml already exists in .*: use --force to replace it`},
		typed{command: "workflows init --folder ${DIR}/gone", status: 1, tells: `no such file or directory`},
		typed{command: "workflows init --folder ${DIR} --from nothing --force", status: 1, tells: `no workflow "nothing"`},
		typed{command: "workflows push --folder ${DIR}/gone", status: 1, tells: `there is no millrace.yaml in .*: create one with millrace workflows init`},
		typed{command: "workflows push --folder ${DIR}", status: 1, tells: `not a git repository`},

		typed{command: "workflows delete piped", status: 1, tells: `cannot ask for confirmation here: use --yes`},
		typed{command: "workflows rm piped -y", prints: `^deleted wf_`},
		typed{command: "workflows rm piped -y", status: 1, tells: `no workflow "piped"`},
	)
	if text, err := os.ReadFile(filepath.Join(p.kept["DIR"], "millrace.yaml")); err != nil || len(text) == 0 {
		t.Errorf("%q, %v", text, err)
	}
}

func retryCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "rolf")
	const before = `{"parameters":{"share":{"type":"number","default":1.50},"n":{"type":"integer","default":3},"kept":{"type":"string","default":"as it was"},"old":{"type":"string","default":"x"}},"nodes":[{"id":"a","command":"echo $PARAM_n $PARAM_kept"}]}`
	const after = `{"parameters":{"share":{"type":"number","default":2},"n":{"type":"integer","default":4},"kept":{"type":"string","default":"y"},"fresh":{"type":"array","default":[]}},"nodes":[{"id":"a","command":"echo $PARAM_n $PARAM_kept"}]}`
	p.ran(before, "RUN", "-p kept=mine")
	p.kept["AFTER"] = written(t, "counted.json", after)
	p.types(
		typed{command: "workflows apply ${AFTER}", prints: `^updated`},
		typed{command: "runs retry ${RUN} -p n=9", prints: `\Arun_\S+\n\z`, keep: "NINE"},
		typed{command: "runs view ${NINE} --json", prints: "\"n\": 9\n\"kept\": \"mine\"\n\"old\": \"x\""},
		typed{command: "runs retry ${RUN} -p fresh=[1]", status: 1, tells: `no parameter "fresh"; it takes kept, n, old, share`},
		// As the workflow is now: what it asks for now can be given, what it does not is left
		// out, and what was only the default follows it.
		typed{command: "runs retry ${RUN} --current -p fresh=[1,2]", prints: `\Arun_\S+\n\z`, keep: "FRESH"},
		typed{command: "runs view ${FRESH} --json", prints: "(?s)\"fresh\": \\[\\s+1,\\s+2\\s+\\]\n\"kept\": \"mine\"\n\"n\": 4\n\"share\": 2,?$"},
		typed{command: "runs retry ${RUN} --current -p old=z", status: 1, tells: `no parameter "old"; it takes fresh, kept, n, share`},
		typed{command: "runs retry ${RUN} --current --preview", prints: `^a +a? +\S+ +`},
		typed{command: "runs retry ${RUN} --compute nonsense", status: 1, tells: `such as 4x16`},
		typed{command: "runs retry ${RUN} -p n=many", status: 1, tells: `-p n: "many" is not a valid integer`},
		typed{command: "runs retry run_nothing -p n=1", status: 1, tells: `see millrace runs list`},
		typed{command: "runs retry run_nothing", status: 1, tells: `see millrace runs list`},
		typed{command: "runs retry ${RUN} --only a --watch", prints: `^completed run_`},

		typed{command: "runs rename ${RUN} 'A name' --note 'and why' --tag one --tag two", prints: `^${RUN} is A name \[one\] \[two\]$`},
		typed{command: "runs rename ${RUN} --note ''", prints: `^${RUN} is A name \[one\] \[two\]$`},
		typed{command: "runs rename ${RUN} '' --no-tags", prints: `^${RUN} is –$`},
		typed{command: "runs rename ${RUN} --tag ''", status: 1, tells: `^millrace: `},
		typed{command: "runs rename ${RUN}", status: 1, tells: `nothing to change: set a name, --note, --tag or --no-tags`},
		typed{command: "runs rename run_nothing x", status: 1, tells: `see millrace runs list`},
	)
}

func sweepCommands(t *testing.T, s *server) {
	p := s.newcomer(t, "swen")
	const varied = `{"parameters":{"n":{"type":"integer","default":1},"cuts":{"type":"array","default":[]}},"nodes":[{"id":"a","command":"echo \"$PARAM_cuts\" > o.txt","outputs":{"o":{"path":"o.txt"}}}]}`
	p.kept["FILE"] = written(t, "varied.json", varied)
	p.kept["READS"] = written(t, "reads.csv", "a\n")
	p.types(
		typed{command: "runs sweep", prints: ``},
		typed{command: "runs sweep --json", prints: `\A\[\]\n\z`},
		typed{command: "run ${FILE} --vary cuts=[1,2],[3] --vary n=1,2 --name Cuts", prints: `\Aswp_\S+\n\z`, keep: "SWEEP"},
		typed{command: "runs sweep", prints: `^${SWEEP} +varied +Cuts +(cuts n|n cuts) +4 +just now$`},
		typed{command: "runs sweep ${SWEEP} --json", prints: `"varied": \[`},
	)
	p.types(
		typed{command: "runs sweep ${SWEEP}", prints: "^RUN +# +(cuts +n|n +cuts) +STATUS +DURATION +CREDITS$\n\\[1,2\\]\n\\[3\\]"},
		typed{command: "runs sweep ${SWEEP} --csv", prints: `^run,number,name,status,`},
		typed{command: "runs sweep ${SWEEP} -o a.nothing", prints: "CREDITS +a.nothing$\n +–$"},
		typed{command: "runs sweep swp_nothing", status: 1, tells: `^millrace: `},
		typed{command: "runs sweep swp_nothing --csv", status: 1, tells: `^millrace: `},
		typed{command: "run ${FILE} --workflow-name more --vary n=1,2 --watch", status: 1, tells: `--watch follows one run`},
		typed{command: "workflows get more", status: 1, tells: `no workflow "more"`}, // nothing was made for it
		typed{command: "run varied --vary n=1,2 --max-credits 3", status: 1, tells: `--max-credits and --output-to are for one run`},
		typed{command: "run varied --vary n=1,2 --output-to s3://b/x/", status: 1, tells: `--max-credits and --output-to are for one run`},
		typed{command: "run varied --vary m=1", status: 1, tells: `no parameter "m"; it takes cuts, n`},
		typed{command: "run varied --vary n=1,x", status: 1, tells: `--vary n: "x" is not a valid integer`},
		typed{command: "run varied --vary cuts=[1,2", status: 1, tells: `--vary cuts: "\[1" is not a valid array`},
		typed{command: "run varied --executor nowhere", status: 1, tells: `^millrace: `},
		typed{command: "run varied --max-credits -- -1", status: 1, tells: `^millrace: `},
		typed{command: "run varied -i reads=${READS}", status: 1, tells: `no input "reads"; it takes none`},
		typed{command: "files --source upload", prints: ``}, // nothing was uploaded for it
	)
}
