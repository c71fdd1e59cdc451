package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/millrace/millrace/internal/cli/screen"
)

// completionCommand prints a script that completes commands in a shell.
type completionCommand struct {
	Shell string   `arg:"" enum:"bash,zsh,fish,words" help:"bash, zsh or fish."`
	Words []string `arg:"" optional:"" passthrough:"" hidden:"" help:"Words typed so far; what the scripts ask with."`
}

// The scripts ask the program itself, so they never go stale.
var completionScripts = map[string]string{
	"bash": `# source <(millrace completion bash)
_millrace() {
  local IFS=$'\n'
  COMPREPLY=($(millrace completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _millrace millrace
`,
	"zsh": `#compdef millrace
# source <(millrace completion zsh)
_millrace() {
  local -a found
  found=("${(@f)$(millrace completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ -n "$found" ]] && compadd -a found || _files
}
compdef _millrace millrace
`,
	"fish": `# millrace completion fish | source
complete -c millrace -a '(set -l typed (commandline -opc)[2..-1] (commandline -ct); millrace completion words -- $typed 2>/dev/null)'
`,
}

// Run prints a script, or for a script what may come next.
func (c *completionCommand) Run(w screen.Console, parsed *kong.Context) error {
	if c.Shell != "words" {
		_, err := fmt.Fprint(w.Out, completionScripts[c.Shell])
		return err
	}
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	for _, word := range completions(parsed.Model.Node, words) {
		w.Say("%s", word)
	}
	return nil
}

// completions are the commands or flags that the last word may become.
func completions(node *kong.Node, words []string) []string {
	flags := node.Flags
	for _, word := range words[:len(words)-1] {
		for _, child := range node.Children {
			if child.Name == word || slices.Contains(child.Aliases, word) {
				node, flags = child, append(flags[:len(flags):len(flags)], child.Flags...)
				break
			}
		}
	}
	if node.DefaultCmd != nil {
		flags = append(flags[:len(flags):len(flags)], node.DefaultCmd.Flags...)
	}
	last, all := words[len(words)-1], []string{}
	offer := func(word string, hidden bool) {
		if !hidden && strings.HasPrefix(word, last) {
			all = append(all, word)
		}
	}
	if strings.HasPrefix(last, "-") {
		for _, f := range flags {
			offer("--"+f.Name, f.Hidden)
		}
		return all
	}
	for _, child := range node.Children {
		offer(child.Name, child.Hidden)
	}
	for _, p := range node.Positional {
		for word := range strings.SplitSeq(p.Tag.Enum, ",") {
			if word != "" {
				offer(word, word == "words")
			}
		}
	}
	return all
}
