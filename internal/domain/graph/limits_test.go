package graph

import (
	"fmt"
	"strings"
	"testing"
)

// repeat writes n members or items, each of which is told its number.
func repeat(n int, each string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(each, "#", fmt.Sprint(i))
	}
	return strings.Join(all, ",")
}

// As much as is allowed is taken, and one more is refused where it stands.
func TestLimitsAtAndOneBeyond(t *testing.T) {
	t.Parallel()
	text := func(before string) func(int) string {
		return func(n int) string { return before + strings.Repeat("a", n) + closing(before) }
	}
	entries := func(before, each string) func(int) string {
		return func(n int) string { return before + repeat(n, each) + closing(before) }
	}
	number := func(before string) func(int) string {
		return func(n int) string { return before + fmt.Sprint(n) + closing(before) }
	}
	const node = `{"nodes":[{"id":"a",`
	for name, tt := range map[string]struct {
		src        func(n int) string
		most       int
		path, says string
	}{
		"nodes":              {entries(`{"nodes":[`, `{"id":"n#"}`), MaxNodes, "nodes", "there are 2001 steps; at most 2000 are allowed"},
		"edges":              {entries(`{"nodes":[{"id":"a"},{"id":"b"}],"edges":[`, `{"id":"e#","source":"a","target":"b"}`), MaxEdges, "edges", "there are 10001 lines; at most 10000 are allowed"},
		"parameters":         {entries(`{"parameters":{`, `"p#":{}`), maxEntries, "parameters", "there are 501 entries; at most 500 are allowed"},
		"inputs":             {entries(`{"inputs":{`, `"i#":{}`), maxEntries, "inputs", "at most 500"},
		"outputs":            {entries(`{"outputs":{`, `"o#":{}`), maxEntries, "outputs", "at most 500"},
		"ports":              {entries(`{"nodes":[{"id":"a","outputs":{`, `"o#":{"path":"o#"}`), maxEntries, "nodes[0].outputs", "at most 500"},
		"variables":          {entries(`{"nodes":[{"id":"a","env":{`, `"V#":"x"`), maxEntries, "nodes[0].env", "there are 501 variables; at most 500 are allowed"},
		"secrets":            {entries(`{"nodes":[{"id":"a","secrets":[`, `"S#"`), maxSecrets, "nodes[0].secrets", "there are 21 secrets; at most 20 are allowed"},
		"a command":          {text(node + `"command":"`), maxCommand, "nodes[0].command", "longer than 262144 bytes"},
		"a variable":         {text(node + `"env":{"A":"`), maxVariable, "nodes[0].env.A", "longer than 32768 bytes"},
		"a name":             {text(node + `"name":"`), maxLabel, "nodes[0].name", "longer than 200 characters"},
		"a note":             {text(node + `"type":"note","text":"`), maxProse, "nodes[0].text", "longer than 10000 bytes"},
		"a path":             {text(node + `"outputs":{"o":{"path":"`), maxPath, "nodes[0].outputs.o.path", "longer than 1024 bytes"},
		"an interpreter":     {text(node + `"interpreter":"`), maxName, "nodes[0].interpreter", "longer than 63 bytes"},
		"a description":      {text(`{"inputs":{"i":{"description":"`), maxProse, "inputs.i.description", "longer than 10000 bytes"},
		"the name of a port": {func(n int) string { return node + `"outputs":{"` + strings.Repeat("a", n) + `":{}}}]}` }, maxName, "", "cannot be a name"},
		"virtual CPUs":       {number(node + `"resources":{"vcpu":`), 4096, "nodes[0].resources.vcpu", "above 0 and at most 4096"},
		"memory":             {number(node + `"resources":{"ramGb":`), 1 << 20, "nodes[0].resources.ramGb", "above 0 and at most 1048576"},
		"GPUs":               {number(node + `"resources":{"gpu":`), 1024, "nodes[0].resources.gpu", "from 0 to 1024"},
		"retries":            {number(node + `"retries":{"max":`), 100, "nodes[0].retries.max", "from 0 to 100"},
		"the factor":         {number(node + `"retries":{"factor":`), 1000, "nodes[0].retries.factor", "from 1 to 1000"},
		"more memory":        {number(node + `"retries":{"memoryFactor":`), 1000, "nodes[0].retries.memoryFactor", "from 1 to 1000"},
		"a wait":             {number(node + `"retries":{"backoffSeconds":`), maxSeconds, "nodes[0].retries.backoffSeconds", "from 0 to 31622400"},
		"a long wait":        {number(node + `"retries":{"maxBackoffSeconds":`), maxSeconds, "nodes[0].retries.maxBackoffSeconds", "from 0 to 31622400"},
		"a timeout":          {number(node + `"timeoutSeconds":`), maxSeconds, "nodes[0].timeoutSeconds", "above 0 and at most 31622400"},
		"shards at once":     {number(node + `"scatter":{"over":"[1]","maxParallel":`), MaxShards, "nodes[0].scatter.maxParallel", "from 1 to 10000"},
		"a place":            {number(node + `"position":{"y":0,"x":`), 1_000_000_000, "nodes[0].position.x", "from -1000000000 to 1000000000"},
		"how deep it goes":   {func(n int) string { return `{"x-a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }, maxDepth - 1, "", "nested more than 64 deep"},
		"how much it holds":  {func(n int) string { return `{"x-a":` + list("1", n) + `}` }, maxValues - 2, "", "holds more than 400000 values"},
		"how large it is":    {func(n int) string { return `{}` + strings.Repeat(" ", n) }, maxBytes - 2, "", "larger than 16 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, problems := Parse([]byte(tt.src(tt.most))); len(problems) > 0 {
				t.Errorf("%d are refused: %v", tt.most, problems[0])
			}
			_, problems := Parse([]byte(tt.src(tt.most + 1)))
			if len(problems) == 0 || tt.path != "" && problems[0].Path != tt.path || !strings.Contains(problems[0].Message, tt.says) {
				t.Errorf("%d: %.300v", tt.most+1, problems)
			}
		})
	}
}

// closing is what ends a beginning: its text, if it is within one, and its brackets.
func closing(before string) (after string) {
	quoted := false
	for i := range len(before) {
		switch c := before[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			after = string(rune(c+2)) + after
		case c == '}' || c == ']':
			after = after[1:]
		}
	}
	if quoted {
		after = `"` + after
	}
	return after
}

// What is wrong beyond the five hundredth place is counted.
func TestProblemsAreCountedBeyondABound(t *testing.T) {
	t.Parallel()
	for wrong, last := range map[int]string{maxProblems: "needs an id", maxProblems + 1: "and 1 more problems", maxProblems + 777: "and 777 more problems"} {
		_, problems := Parse([]byte(`{"nodes":[` + repeat(wrong, `{}`) + `]}`))
		if n := min(wrong, maxProblems+1); len(problems) != n || !strings.Contains(problems[n-1].Message, last) {
			t.Errorf("%d: %d problems, the last %v", wrong, len(problems), problems[len(problems)-1])
		}
	}
}

func TestWhereAnOutputMayBe(t *testing.T) {
	t.Parallel()
	for path, says := range map[string]string{
		"out.bam": "", "a/b/c": "", "a b": "", "ü/ß": "", "-x": "", "...": "", "a..": "", "!a": "", "$HOME": "", "a:b": "",
		"../x": "leaves", "a/..": "leaves", "..": "leaves", "/x": "relative", "~": "relative", "~/x": "relative", "a//b": "without", "./a": "without", "a/": "without", ".": "without",
		`a\\b`: "must use `/`", `a\nb`: "line break", `a\rb`: "line break", "*": "`many`", "a?": "`many`", "[a]": "`many`",
	} {
		_, problems := Parse([]byte(task(`"outputs":{"o":{"path":"` + path + `"}}`)))
		if says == "" && len(problems) > 0 || says != "" && (len(problems) == 0 || !strings.Contains(problems[0].Message, says)) {
			t.Errorf("%s: %v, want %q", path, problems, says)
		}
	}
	for path, ok := range map[string]bool{"*": true, "a/*.txt": true, "[a-z]?": true, "[^a]": true, "[": false, "[]": false, "[a-]": false, "[^]": false, "a[": false, "x/[a": false, "../*": false, "*/..": false} {
		_, problems := Parse([]byte(task(`"outputs":{"o":{"many":true,"path":"` + path + `"}}`)))
		if (len(problems) == 0) != ok {
			t.Errorf("many of %s: %v", path, problems)
		}
	}
}

// A secret is named once, by a name, and a step that names none has none.
func TestSecretsAreNames(t *testing.T) {
	t.Parallel()
	for secrets, want := range map[string]string{
		`["A","b_1"]`: "", `[]`: "", `"A"`: "must be an array of names", `{"A":1}`: "must be an array of names", `null`: "must be an array of names",
		`["A","A"]`: "`A` occurs twice", `[""]`: "is no name of a secret", `["A B"]`: "is no name of a secret", `["1A"]`: "is no name of a secret", `[1]`: "is no name of a secret",
		`["A=B"]`: "is no name of a secret", `["A\n"]`: "is no name of a secret", `["É"]`: "is no name of a secret",
	} {
		g, problems := Parse([]byte(task(`"secrets":` + secrets)))
		if want == "" && (len(problems) > 0 || strings.Contains(secrets, "A") != (len(g.Nodes[0].Secrets) == 2)) {
			t.Errorf("%s: %v", secrets, problems)
		}
		if want != "" && (len(problems) == 0 || !strings.Contains(problems[0].Message, want)) {
			t.Errorf("%s: %v, want %q", secrets, problems, want)
		}
	}
	if !ValidName("_a1") || ValidName("a-b") || ValidName("") || ValidName("ä") {
		t.Error("names are told apart from others wrongly")
	}
}
