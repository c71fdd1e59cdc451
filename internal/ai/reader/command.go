package reader

import (
	"fmt"
	"strings"
)

// command is what a task runs. Nothing of it is the paper's own text but the
// version, which is letters, digits and dots. Where the lexicon knows how a
// tool is called, it is called so; where it does not, or where people use the
// tool by hand, the task is a sketch that says what to write and fails until
// somebody has.
func command(u use) (text string, sketch bool) {
	t := u.tool
	var b strings.Builder
	fmt.Fprintf(&b, "# %s with %s.", t.kind.title, t.name)
	if u.version != "" {
		fmt.Fprintf(&b, " The paper used version %s.", u.version)
	}
	b.WriteString("\n")
	for _, p := range t.kind.inputs {
		if !p.optional {
			fmt.Fprintf(&b, ": \"${INPUT_%s:?Nothing came in by the port %s: %s}\"\n", p.name, p.name, lexicon().holdings[p.holds].description)
		}
	}
	way, what, _ := strings.Cut(t.how, " ")
	if way == "$" {
		b.WriteString(what + "\n")
		return b.String(), false
	}
	b.WriteString(sketchOf(t, way, what))
	return b.String(), true
}

// sketchOf is a task for somebody to complete.
func sketchOf(t *tool, way, what string) string {
	task := "This task is a sketch: write here how " + t.name + " is used" + leaves(t.kind) + "."
	switch way {
	case "R":
		return fmt.Sprintf("Rscript - <<'R'\nlibrary(%s)\nstop(\"%s\")\nR\n", what, task)
	case "py":
		return fmt.Sprintf("python3 - <<'PY'\nimport %s\nraise SystemExit(\"%s\")\nPY\n", what, task)
	case "matlab":
		return fmt.Sprintf("matlab -batch 'error(\"%s\")'\n", strings.ReplaceAll(task, "'", "’"))
	case "prog":
		return fmt.Sprintf("command -v %s >/dev/null || { echo \"%s is not on this machine: choose an image that holds it.\" >&2; exit 127; }\necho \"%s\" >&2\nexit 1\n", what, what, task)
	}
	return fmt.Sprintf("echo \"%s is a program for the screen: do this by hand%s, or write here what does it instead.\" >&2\nexit 1\n", t.name, leaves(t.kind))
}

// leaves says which files are expected of a task.
func leaves(k *kind) string {
	var files []string
	for _, p := range k.outputs {
		files = append(files, p.path)
	}
	if len(files) == 0 {
		return ""
	}
	return ", and leave " + strings.Join(files, " and ")
}
