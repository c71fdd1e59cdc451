package local

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace/internal/engine/executor"
)

// plainCommand matches a command that means the same to every shell: words without
// anything to expand, redirect or put together.
var plainCommand = regexp.MustCompile(`^[A-Za-z0-9_./+-]+( +[A-Za-z0-9_./+,:=@%-]+)*$`)

// shellWords are words that a shell takes as its own. That true and false are
// among them makes no difference.
var shellWords = func() map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq(`. alias bg bind break builtin caller case cd command compgen complete compopt
		continue coproc declare dirs disown do done echo elif else enable esac eval exec exit export fc fg fi for function
		getopts hash help history if in jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly
		return select set shift shopt source suspend test then time times trap type typeset ulimit umask unalias unset
		until wait while`) {
		words[word] = true
	}
	return words
}()

// program is what a shell would put in its own place to run the command; the
// shell takes longer to start than many a program to end. A command that needs
// the shell has none.
func program(s executor.Spec, env map[string]string) (argv []string, ok bool) {
	shell := s.Interpreter == "bash" || s.Interpreter == "sh"
	if !shell || len(s.Command) > 1000 || !plainCommand.MatchString(s.Command) || env["BASH_ENV"] != "" {
		return nil, false
	}
	argv = strings.Fields(s.Command)
	if strings.Contains(argv[0], "/") || shellWords[argv[0]] {
		return nil, false
	}
	file, err := lookPath(argv[0], s, env)
	if err != nil || !executable(file) {
		return nil, false
	}
	argv[0] = file
	return argv, true
}

// executable reports whether the kernel can run a file; a shell would read one
// that it cannot.
func executable(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [4]byte
	n, _ := f.Read(head[:])
	return string(head[:n]) == "\x7fELF"
}

// sameInSandbox reports whether a program that was found on the host is the one
// that a sandbox without an image would find: nothing that comes before it in
// the path may be another folder there.
func sameInSandbox(file, path string) bool {
	for _, dir := range filepath.SplitList(path) {
		if !isProgramFolder(dir) {
			return false
		}
		if dir == filepath.Dir(file) {
			break
		}
	}
	target, err := filepath.EvalSymlinks(file)
	return err == nil && isProgramFolder(target)
}

// isProgramFolder reports whether a path leads to what every sandbox shows.
func isProgramFolder(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return path == filepath.Clean(path) && filepath.IsAbs(path) && slices.Contains(hostNames, first)
}
