package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var (
	shellToken = regexp.MustCompile(`#[^\n]*|[;|&()\n]+|[<>]+|(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\;|&()<>])+`)
	shellQuote = regexp.MustCompile(`'([^']*)'|"((?:\\.|[^"\\])*)"`)
	shellFence = regexp.MustCompile("(?ms)^ *```(?:sh)?\n(.*?)^ *```$")
	anyFence   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	sentence   = regexp.MustCompile("`(millrace [^`]+)`")
	maybe      = strings.NewReplacer("[flags…]", "", " …", "", "[", "", "]", "") // says on a page that more may follow, or less
)

// shellCommands are the commands of shell text as their words, without redirections.
func shellCommands(text string) (list [][]string) {
	var words []string
	redirected := false
	for _, token := range shellToken.FindAllString(strings.ReplaceAll(text, "\\\n", " ")+"\n", -1) {
		switch {
		case token[0] == '#':
		case strings.ContainsAny(token[:1], ";|&()\n"):
			if len(words) > 0 {
				list = append(list, words)
			}
			words, redirected = nil, false
		case strings.ContainsAny(token[:1], "<>"):
			redirected = true
		case redirected:
			redirected = false
		default:
			words = append(words, shellQuote.ReplaceAllString(token, "$1$2"))
		}
	}
	return list
}

func TestShellCommandsAreFound(t *testing.T) {
	t.Parallel()
	const text = "a 'b c' d='e f' # g\nh <i >j \"k | l\"; m | n <(o p) && q \\\n  r#s\n"
	var got []string
	for _, words := range shellCommands(text) {
		got = append(got, strings.Join(words, ","))
	}
	if want := "a,b c,d=e f h,k | l m n o,p q,r#s"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// forget has a parser forget what the last command set.
func forget(part kong.Visitable, next kong.Next) error {
	switch part := part.(type) {
	case *kong.Flag:
		part.Set = false
	case *kong.Value:
		part.Set = false
	}
	return next(nil)
}

// The program takes each of its commands that a page has, with the flags there. Within a
// sentence a command may lack what it requires.
func TestEveryCommandOnAPageIsOneOfTheProgram(t *testing.T) {
	t.Parallel()
	helped := false
	parser, err := console{out: io.Discard, errOut: io.Discard}.parser(func(int) { helped = true })
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	check := func(page, text string, lacks *regexp.Regexp) {
		for _, words := range shellCommands(maybe.Replace(text)) {
			if words[0] != "millrace" {
				continue
			}
			found++
			helped = false
			_ = kong.Visit(parser.Model, forget)
			if _, err := parser.Parse(words[1:]); err != nil && !helped && !lacks.MatchString(err.Error()) {
				t.Errorf("%s: %s: %v", page, strings.Join(words, " "), err)
			}
		}
	}
	readersFile := regexp.MustCompile(`no such file`)
	leftOut := regexp.MustCompile(`no such file|^expected |^missing |expected .* but got `)
	for _, pattern := range []string{"README.md", "CONTRIBUTING.md", "docs/*.md", "docs/operating/*.md", "clients/*/README.md", "examples/*.md"} {
		pages, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(pages) == 0 {
			t.Fatal(pattern, err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, lines := range shellFence.FindAllSubmatch(text, -1) {
				check(page, string(lines[1]), readersFile)
			}
			for _, line := range sentence.FindAllSubmatch(anyFence.ReplaceAll(text, nil), -1) {
				check(page, string(line[1]), leftOut)
			}
		}
	}
	if found < 200 {
		t.Errorf("only %d commands are found", found)
	}
}
