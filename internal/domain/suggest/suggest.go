// Package suggest reads how a step failed, and suggests what may help. It is a table
// of common causes: each rule knows the lines that a cause leaves behind. A rule that is
// not sure says nothing, because a wrong suggestion costs more time than none.
package suggest

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
)

// Failed is what is known of an attempt that failed.
type Failed struct {
	Node     *graph.Node // nil: a task of a pipeline, whose definition is not ours
	Code     lifecycle.ErrorCode
	ExitCode *int
	Lines    []string // the last that it wrote
	RAMGB    float64  // that it was given; 0: unknown
	RunRAMGB float64  // that the run has
}

// Suggestion is what may help, for people, and the edit that would do it.
type Suggestion struct {
	Code    string
	Message string
	Edit    *Edit // nil: none is known
}

// Edit gives a field of a step a value.
type Edit struct {
	Node  string
	Field string // such as resources.ramGb
	Value any
}

// The most that are suggested: the fourth is a guess.
const most = 3

// rules are in order: what is found by the error code or an unmistakable line comes
// before what another cause may have led to.
var rules = []struct {
	code string
	find func(Failed) (message string, edit *Edit)
}{
	{"windows_line_endings", windowsLines},
	{"wrong_language", wrongLanguage},
	{"wrong_shebang", wrongShebang},
	{"wrong_format", wrongFormat},
	{"out_of_memory", outOfMemory},
	{"disk_full", diskFull},
	{"time_limit", timeLimit},
	{"certificate", certificate},
	{"proxy", proxy},
	{"no_network", noNetwork},
	{"missing_module", missingModule},
	{"missing_program", missingProgram},
	{"missing_variable", missingVariable},
	{"missing_output", missingOutput},
	{"permission_denied", permissionDenied},
	{"missing_input", missingInput},
}

// For is what may help, the most likely first.
func For(f Failed) (list []Suggestion) {
	for _, r := range rules {
		if message, edit := r.find(f); message != "" && len(list) < most {
			list = append(list, Suggestion{r.code, message, edit})
		}
	}
	return list
}

// last is the last line that matches, with what its groups are; nil without one.
func (f Failed) last(pattern *regexp.Regexp) []string {
	for i := len(f.Lines) - 1; i >= 0; i-- {
		if m := pattern.FindStringSubmatch(f.Lines[i]); m != nil {
			return m
		}
	}
	return nil
}

// edit changes a field of the step, where there is one.
func (f Failed) edit(field string, value any) *Edit {
	if f.Node == nil {
		return nil
	}
	return &Edit{f.Node.ID, field, value}
}

var (
	carriageReturn = regexp.MustCompile(`\$'[^']*\\r'|^['’]?: (?:command )?not found$|\^M: bad interpreter|env: .*\\r['’]`)

	// Words that begin lines of other languages, when bash takes them for programs.
	notBash = regexp.MustCompile("(?:line \\d+|: \\d+): (?:(?:import|from|def|library)(?:\\(.*)?: (?:command )?not found|`(?:import|from|def|print|library) ?[(\\w])")
	isR     = regexp.MustCompile(`\blibrary\(|\w <- `)

	badInterpreter = regexp.MustCompile(`(\S+): (?:bad interpreter|cannot execute: required file not found)|env: ['‘"]?([^'’":]+)['’"]?: No such file or directory`)
	execFormat     = regexp.MustCompile(`(\S+): (?:cannot execute binary file|Exec format error)|Exec format error`)
)

func windowsLines(f Failed) (string, *Edit) {
	if f.Node != nil && strings.Contains(f.Node.Command, "\r\n") {
		return "The command has Windows line endings, which the interpreter reads as part of the words: remove them.",
			f.edit("command", strings.ReplaceAll(f.Node.Command, "\r\n", "\n"))
	}
	if f.last(carriageReturn) == nil {
		return "", nil
	}
	return `A script has Windows line endings. Convert it before it runs, with: sed -i 's/\r$//' SCRIPT`, nil
}

func wrongLanguage(f Failed) (string, *Edit) {
	if f.last(notBash) == nil || f.Node == nil || f.Node.Interpreter != "bash" && f.Node.Interpreter != "sh" {
		return "", nil
	}
	language, interpreter := "Python", "python3"
	if isR.MatchString(f.Node.Command) {
		language, interpreter = "R", "Rscript"
	}
	return fmt.Sprintf("The command is written in %s, but %s runs it: set the interpreter to %s.", language, f.Node.Interpreter, interpreter), f.edit("interpreter", interpreter)
}

func wrongShebang(f Failed) (string, *Edit) {
	m := f.last(badInterpreter)
	if m == nil || f.last(carriageReturn) != nil {
		return "", nil
	}
	if program := m[2]; program != "" {
		return fmt.Sprintf("The first line of a script asks for %s, which this step does not have: name a program that it has, or add it with conda or an image.", program), f.addProgram(program)
	}
	return "The first line of a script names an interpreter that is not there, or ends with a Windows line ending. Begin the script with #!/usr/bin/env and the name of the program, or start it as: bash SCRIPT", nil
}

func wrongFormat(f Failed) (string, *Edit) {
	if f.last(execFormat) == nil {
		return "", nil
	}
	return "A program was built for another kind of machine, or is a script without a first line such as #!/bin/bash. Use a build for this machine's processor.", nil
}

var noMemory = regexp.MustCompile(`\bMemoryError\b|[Cc]annot allocate memory|std::bad_alloc|java\.lang\.OutOfMemoryError|cannot allocate vector of size|Unable to allocate .* for an array|^Killed$`)

func outOfMemory(f Failed) (string, *Edit) {
	killed := f.Code == lifecycle.OutOfMemory
	if !killed && (f.last(noMemory) == nil || f.Code != lifecycle.NodeFailedCode) {
		return "", nil
	}
	if f.RAMGB <= 0 {
		return "The step needs more memory than it has: give it more.", nil
	}
	had, set := fmt.Sprintf("%.3g GB", f.RAMGB), moreMemory(f.RAMGB)
	said := "The step needs more than its " + had + " of memory: "
	if killed {
		said = "Killed at " + had + ": "
	}
	if f.RunRAMGB > 0 && set > f.RunRAMGB {
		return said + "start the run with a larger size, or split the work.", nil
	}
	return said + fmt.Sprintf("set %.3g GB.", set), f.edit("resources.ramGb", set)
}

// moreMemory is half as much again, as a round number.
func moreMemory(gb float64) float64 {
	if more := gb * 1.5; more > 2 {
		return math.Ceil(more)
	}
	return math.Ceil(gb*6) / 4
}

var noSpace = regexp.MustCompile(`No space left on device|Disk quota exceeded|File size limit exceeded|\[Errno 28\]`)

func diskFull(f Failed) (string, *Edit) {
	if f.Code != lifecycle.DiskFull && f.last(noSpace) == nil {
		return "", nil
	}
	return "The step wrote more than there is room for. Remove files that are not needed while it runs, write compressed files, or split the work over more items.", nil
}

func timeLimit(f Failed) (string, *Edit) {
	switch {
	case f.Code == lifecycle.PlanTimeLimit:
		return "The run took as long as the team's plan allows. Split the work, or choose a larger size.", nil
	case f.Code != lifecycle.NodeTimeout || f.Node == nil || f.Node.Timeout <= 0:
		return "", nil
	}
	set := min(f.Node.Timeout*2, longestTimeout)
	return fmt.Sprintf("The step reached its time limit of %s: set %s.", f.Node.Timeout, set), f.edit("timeoutSeconds", set.Seconds())
}

// longestTimeout is the most that a definition may ask for.
const longestTimeout = 366 * 24 * time.Hour

var (
	untrusted   = regexp.MustCompile(`(?i)certificate[ _]verify[ _]failed|SSL certificate problem|certificate signed by unknown authority|unable to get local issuer certificate|self[- ]signed certificate`)
	viaProxy    = regexp.MustCompile(`ProxyError|Could not resolve proxy|Proxy Authentication Required|Tunnel connection failed|CONNECT tunnel failed`)
	unreachable = regexp.MustCompile(`Could not resolve host|Temporary failure in name resolution|Name or service not known|Network is unreachable|unable to resolve host address|nodename nor servname|no such host\b|cannot open URL|Could(?: not|n't) connect to server`)
)

func certificate(f Failed) (string, *Edit) {
	if f.last(untrusted) == nil {
		return "", nil
	}
	return "The step does not trust the certificate of a server. If your organization has its own authority, add its certificate to the step, and name the file in SSL_CERT_FILE and REQUESTS_CA_BUNDLE.", nil
}

func proxy(f Failed) (string, *Edit) {
	if f.last(viaProxy) == nil {
		return "", nil
	}
	return "The step could not get through a proxy. Fetch the data as an input by its address instead, or ask the operator which proxy tasks can use.", nil
}

func noNetwork(f Failed) (string, *Edit) {
	if f.last(unreachable) == nil || f.last(viaProxy) != nil {
		return "", nil
	}
	return "Steps have no network unless the operator allows it. Give the step the data as an input: an input can be an address, which the server fetches.", nil
}

var (
	pythonModule = regexp.MustCompile(`(?:ModuleNotFoundError|ImportError): No module named ['"]?([A-Za-z_]\w*)`)
	rPackage     = regexp.MustCompile(`there is no package called ['‘"“]([A-Za-z][A-Za-z0-9.]*)['’"”]`)
	perlModule   = regexp.MustCompile(`Can't locate ([A-Za-z]\w*(?:/\w+)*)\.pm in @INC`)
)

func missingModule(f Failed) (string, *Edit) {
	if m := f.last(pythonModule); m != nil {
		name := python(m[1])
		return fmt.Sprintf("No module named %s: add %s to this step's packages.", m[1], name.pip), f.addPackage(name.pip, name.conda)
	}
	if m := f.last(rPackage); m != nil {
		name := "r-" + strings.ToLower(m[1])
		if bioconductor[m[1]] {
			name = "bioconductor-" + strings.ToLower(m[1])
		}
		return fmt.Sprintf("R has no package %s: add %s to this step's conda packages, or use an image that has it.", m[1], name), f.addPackage("", name)
	}
	if m := f.last(perlModule); m != nil {
		name := "perl-" + strings.ToLower(strings.ReplaceAll(m[1], "/", "-"))
		return fmt.Sprintf("Perl has no module %s: add %s to this step's conda packages, or use an image that has it.", strings.ReplaceAll(m[1], "/", "::"), name), f.addPackage("", name)
	}
	return "", nil
}

var noProgram = regexp.MustCompile(`(?:^|: )([A-Za-z0-9][\w.+-]*): (?:command )?not found$|exec: "([^"]+)": executable file not found|FileNotFoundError: \[Errno 2\] No such file or directory: '([A-Za-z0-9][\w+-]*)'$`)

func missingProgram(f Failed) (string, *Edit) {
	m := f.last(noProgram)
	if m == nil || f.last(carriageReturn) != nil || f.last(notBash) != nil {
		return "", nil
	}
	program := m[1] + m[2] + m[3]
	if m[3] != "" && condaPackages[program] == "" { // Python says the same of files
		return "", nil
	}
	if program == "python" && f.Node != nil && f.Node.Image == "" {
		return "python: command not found: this machine calls it python3. Write python3, or add python to the step's conda packages.", f.addProgram(program)
	}
	return program + ": command not found: use conda or an image.", f.addProgram(program)
}

var noVariable = regexp.MustCompile(`: (\w+): (?:unbound variable|parameter not set)|KeyError: '((?:INPUT|PARAM|SECRET)_\w+)'`)

func missingVariable(f Failed) (string, *Edit) {
	m := f.last(noVariable)
	if m == nil {
		return "", nil
	}
	name := m[1] + m[2]
	for prefix, what := range map[string]string{"INPUT_": "an input", "PARAM_": "a parameter", "SECRET_": "a secret"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" {
			return fmt.Sprintf("The step has no variable %s: give it %s called %s.", name, what, strings.TrimSuffix(rest, "_LIST")), nil
		}
	}
	return fmt.Sprintf("The variable %s has no value. Declare it under the step's variables, or write ${%[1]s:-} where it may be empty.", name), nil
}

// addProgram adds the package that has a program, where it is known.
func (f Failed) addProgram(program string) *Edit { return f.addPackage("", condaPackages[program]) }

// addPackage adds a package to those that the step asks for: to those of conda where it
// has some or there is no other, else to those of pip. The software of an image or a lock
// is not added to.
func (f Failed) addPackage(pip, conda string) *Edit {
	if f.Node == nil || f.Node.Image != "" {
		return nil
	}
	e := f.Node.Environment
	if e == nil {
		e = &environment.Spec{}
	}
	switch {
	case e.Lock != "" || pip == "" && conda == "":
		return nil
	case len(e.Conda) > 0 || pip == "" && len(e.Pip) == 0:
		return f.addTo("conda", e.Conda, conda)
	case pip == "":
		return nil // pip and conda exclude each other
	}
	return f.addTo("pip", e.Pip, pip)
}

func (f Failed) addTo(field string, packages []string, name string) *Edit {
	if name == "" || len(packages) >= environment.MaxPackages {
		return nil
	}
	return f.edit("environment."+field, append(packages[:len(packages):len(packages)], name))
}

func missingOutput(f Failed) (string, *Edit) {
	if f.Code != lifecycle.OutputMissing {
		return "", nil
	}
	return "The command ended well, but wrote another file than the step declares. Compare the path of the output with the name that the command writes; paths are relative to the folder in which it starts.", nil
}

var denied = regexp.MustCompile(`(?:^|[\s:'"])(\.?/?[\w./-]+)['"]?: Permission denied`)

func permissionDenied(f Failed) (string, *Edit) {
	m := f.last(denied)
	switch {
	case m == nil:
		return "", nil
	case f.ExitCode != nil && *f.ExitCode == 126:
		return fmt.Sprintf("%s may not be executed. Start it with its interpreter, such as: bash %[1]s", m[1]), nil
	}
	return fmt.Sprintf("The step may not write %s. Write below the folder in which it starts, or below $TMPDIR; inputs cannot be changed, copy them first.", m[1]), nil
}

var noFile = regexp.MustCompile(`(?:^|[\s:])['"‘]?([^\s:'"‘’]+)['"’]?: No such file or directory$|No such file or directory: ['"]([^'"]+)['"]`)

func missingInput(f Failed) (string, *Edit) {
	if f.Code == lifecycle.InputMissing {
		return "A file that the run was given has been deleted. Upload it again, or start the run with another one.", nil
	}
	m := f.last(noFile)
	if program, _ := missingProgram(f); m == nil || program != "" || f.last(badInterpreter) != nil || f.last(carriageReturn) != nil {
		return "", nil
	}
	said := fmt.Sprintf("There is no file %s where the step runs: it starts in an empty folder.", m[1]+m[2])
	if f.Node != nil && len(f.Node.Inputs) > 0 {
		name := f.Node.Inputs[0].Name
		return said + fmt.Sprintf(" The path of an input is in a variable, such as $INPUT_%s.", name), nil
	}
	return said + " Declare the file as an input of the step.", nil
}
