package suggest_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/lifecycle"
	"github.com/millrace/millrace/internal/domain/suggest"
)

// What programs printed when they failed for a known cause, word for word.
func TestAFailureSuggestsItsFix(t *testing.T) {
	for name, tt := range map[string]struct {
		lines   string
		command string
		code    lifecycle.ErrorCode
		ram     float64
		change  func(*graph.Node)
		exit    int
		want    string // the code of the first suggestion
		says    string // a part of its message
		edit    string // as JSON; empty: none
	}{
		"a module of Python": {
			lines: "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\nModuleNotFoundError: No module named 'pandas'",
			want:  "missing_module", says: "No module named pandas: add pandas to this step's packages", edit: `["environment.pip",["pandas"]]`,
		},
		"a module whose package has another name": {
			lines:  "  File \"t.py\", line 4, in main\n    from sklearn.decomposition import PCA\nModuleNotFoundError: No module named 'sklearn'",
			change: func(n *graph.Node) { n.Environment = &environment.Spec{Pip: []string{"numpy==2.*"}} },
			want:   "missing_module", says: "add scikit-learn", edit: `["environment.pip",["numpy==2.*","scikit-learn"]]`,
		},
		"a module beside conda packages": {
			lines:  "ModuleNotFoundError: No module named 'cv2'",
			change: func(n *graph.Node) { n.Environment = &environment.Spec{Conda: []string{"python"}} },
			want:   "missing_module", says: "cv2", edit: `["environment.conda",["python","opencv"]]`,
		},
		"a module in an image": {
			lines: "ModuleNotFoundError: No module named 'pandas'", change: func(n *graph.Node) { n.Image = "python:3.12" },
			want: "missing_module", says: "pandas",
		},
		"a package of R": {
			lines: "Error in library(DESeq2) : there is no package called ‘DESeq2’\nExecution halted",
			want:  "missing_module", says: "bioconductor-deseq2", edit: `["environment.conda",["bioconductor-deseq2"]]`,
		},
		"a module of Perl": {
			lines: "Can't locate Bio/SeqIO.pm in @INC (you may need to install the Bio::SeqIO module) (@INC contains: /etc/perl /usr/share/perl5) at -e line 1.\nBEGIN failed--compilation aborted at -e line 1.",
			want:  "missing_module", says: "Bio::SeqIO", edit: `["environment.conda",["perl-bio-seqio"]]`,
		},
		"a program in bash": {
			lines: "bash: line 1: samtools: command not found", exit: 127,
			want: "missing_program", says: "samtools: command not found: use conda or an image", edit: `["environment.conda",["samtools"]]`,
		},
		"a program in dash": {
			lines: "d.sh: 1: fastqc: not found", exit: 127,
			want: "missing_program", says: "fastqc", edit: `["environment.conda",["fastqc"]]`,
		},
		"a program that nobody knows": {
			lines: "bash: line 3: our_tool: command not found", exit: 127,
			want: "missing_program", says: "our_tool",
		},
		"a program beside packages of pip": {
			lines: "bash: line 3: bwa: command not found", exit: 127,
			change: func(n *graph.Node) { n.Environment = &environment.Spec{Pip: []string{"numpy"}} },
			want:   "missing_program", says: "bwa",
		},
		"a program that Python starts": {
			lines: "    raise child_exception_type(errno_num, err_msg, err_filename)\nFileNotFoundError: [Errno 2] No such file or directory: 'bwa'",
			want:  "missing_program", says: "bwa", edit: `["environment.conda",["bwa"]]`,
		},
		"memory that the kernel took back": {
			code: lifecycle.OutOfMemory, ram: 8, exit: 137,
			want: "out_of_memory", says: "Killed at 8 GB: set 12 GB.", edit: `["resources.ramGb",12]`,
		},
		"memory that is all of the run's": {
			code: lifecycle.OutOfMemory, ram: 16, exit: 137,
			want: "out_of_memory", says: "start the run with a larger size",
		},
		"memory that Python was refused": {
			lines: "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\nMemoryError", ram: 0.5,
			want: "out_of_memory", says: "0.5 GB", edit: `["resources.ramGb",0.75]`,
		},
		"memory that R was refused": {
			lines: "Error: cannot allocate vector of size 7.5 Gb\nExecution halted", ram: 4,
			want: "out_of_memory", says: "set 6 GB", edit: `["resources.ramGb",6]`,
		},
		"the heap of Java": {
			lines: "Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space", ram: 4,
			want: "out_of_memory", says: "4 GB", edit: `["resources.ramGb",6]`,
		},
		"a full disk": {
			lines: "head: error writing 'standard output': No space left on device\ncat: write error: No space left on device",
			want:  "disk_full", says: "compressed",
		},
		"a step that was ended for its disk": {code: lifecycle.DiskFull, want: "disk_full", says: "room"},
		"a time limit": {
			code: lifecycle.NodeTimeout, change: func(n *graph.Node) { n.Timeout = 90 * time.Second },
			want: "time_limit", says: "1m30s: set 3m0s", edit: `["timeoutSeconds",180]`,
		},
		"a host whose name is not found": {
			lines: "curl: (6) Could not resolve host: ftp.example.org", exit: 6,
			want: "no_network", says: "an input can be an address",
		},
		"a host that Python looks for": {
			lines: "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>",
			want:  "no_network", says: "network",
		},
		"a certificate": {
			lines: "curl: (60) SSL certificate problem: self-signed certificate\nMore details here: https://curl.se/docs/sslcerts.html\n\ncurl failed to verify the legitimacy of the server",
			want:  "certificate", says: "SSL_CERT_FILE",
		},
		"a certificate in Python": {
			lines: "urllib.error.URLError: <urlopen error [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)>",
			want:  "certificate", says: "trust",
		},
		"a proxy": {
			lines: "curl: (56) CONNECT tunnel failed, response 407", exit: 56,
			want: "proxy", says: "proxy",
		},
		"Windows line endings of the command": {
			lines: "g.sh: line 3: syntax error near unexpected token `$'do\\r''\ng.sh: line 3: `for i in 1 2; do'", command: "set -e\r\nfor i in 1 2; do\r\ndone\r\n",
			want: "windows_line_endings", says: "remove them", edit: `["command","set -e\nfor i in 1 2; do\ndone\n"]`,
		},
		"Windows line endings of a script": {
			lines: "/usr/bin/env: ‘bash\\r’: No such file or directory\n/usr/bin/env: use -[v]S to pass options in shebang lines", exit: 127,
			want: "windows_line_endings", says: "sed -i",
		},
		"a first line that names what is not there": {
			lines: "bash: line 1: ./f.py: cannot execute: required file not found", exit: 127,
			want: "wrong_shebang", says: "#!/usr/bin/env",
		},
		"a first line that asks for a program": {
			lines: "env: ‘Rscript’: No such file or directory", exit: 127,
			want: "wrong_shebang", says: "Rscript", edit: `["environment.conda",["r-base"]]`,
		},
		"Python in bash": {
			lines: "bi.sh: line 1: import: command not found\nbi.sh: line 2: import: command not found\nbi.sh: line 3: syntax error near unexpected token `1'\nbi.sh: line 3: `print(1)'", command: "import os, sys\nimport numpy\nprint(1)\n", exit: 2,
			want: "wrong_language", says: "set the interpreter to python3", edit: `["interpreter","python3"]`,
		},
		"R in bash": {
			lines: "r.sh: line 1: syntax error near unexpected token `dplyr'\nr.sh: line 1: `library(dplyr)'", command: "library(dplyr)\nx <- 1\n", exit: 2,
			want: "wrong_language", says: "Rscript", edit: `["interpreter","Rscript"]`,
		},
		"a program for another machine": {
			lines: "bash: line 1: ./tool: cannot execute binary file: Exec format error", exit: 126,
			want: "wrong_format", says: "processor",
		},
		"a script without its right to run": {
			lines: "bash: line 1: ./p.sh: Permission denied", exit: 126,
			want: "permission_denied", says: "bash ./p.sh",
		},
		"a folder that is not the step's": {
			lines: "bash: line 1: /usr/share/x: Permission denied", exit: 1,
			want: "permission_denied", says: "/usr/share/x",
		},
		"a file that is not there": {
			lines: "cat: reads.fq: No such file or directory", exit: 1, change: func(n *graph.Node) { n.Inputs = []graph.InPort{{Name: "reads"}} },
			want: "missing_input", says: "$INPUT_reads",
		},
		"a file that Python opens": {
			lines: "FileNotFoundError: [Errno 2] No such file or directory: 'counts.csv'", exit: 1,
			want: "missing_input", says: "counts.csv",
		},
		"an output that was not written": {code: lifecycle.OutputMissing, want: "missing_output", says: "path of the output"},
		"an input that is not declared": {
			lines: "Traceback (most recent call last):\n  File \"<frozen os>\", line 679, in __getitem__\nKeyError: 'INPUT_reads'", exit: 1,
			want: "missing_variable", says: "an input called reads",
		},
		"a variable without a value": {
			lines: "bash: line 1: MISSING: unbound variable", exit: 1,
			want: "missing_variable", says: "MISSING",
		},
		// What has no known cause gets no suggestion.
		"an assertion":         {lines: "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\nAssertionError: the counts differ", exit: 1},
		"an error of syntax":   {lines: "  File \"<string>\", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax", exit: 1},
		"a segmentation fault": {lines: "bash: line 1:  6331 Segmentation fault      ./s", exit: 139},
		"nothing printed":      {exit: 1},
		"a warning on the way": {lines: "warning: no such option\nread 1,000 records, found 12 not found in the index\ndone with errors", exit: 3},
	} {
		t.Run(name, func(t *testing.T) {
			node := &graph.Node{ID: "align", Interpreter: "bash", Command: tt.command}
			if tt.change != nil {
				tt.change(node)
			}
			code := tt.code
			if code == "" {
				code = lifecycle.NodeFailedCode
			}
			list := suggest.For(suggest.Failed{Node: node, Code: code, ExitCode: &tt.exit, Lines: strings.Split(tt.lines, "\n"), RAMGB: tt.ram, RunRAMGB: 16})
			if tt.want == "" {
				if len(list) > 0 {
					t.Fatalf("suggests %+v", list)
				}
				return
			}
			if len(list) == 0 || list[0].Code != tt.want || !strings.Contains(list[0].Message, tt.says) {
				t.Fatalf("suggests %+v, wants %s with %q first", list, tt.want, tt.says)
			}
			if got := edit(t, list[0].Edit); got != tt.edit {
				t.Errorf("edits %s, wants %s", got, tt.edit)
			}
			if len(list) > 1 {
				t.Errorf("suggests also %+v", list[1:])
			}
		})
	}
}

func edit(t *testing.T, e *suggest.Edit) string {
	t.Helper()
	if e == nil {
		return ""
	}
	if e.Node != "align" {
		t.Errorf("edits step %q", e.Node)
	}
	text, err := json.Marshal([]any{e.Field, e.Value})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The definition of a pipeline's task is not ours to edit.
func TestATaskOfAPipelineGetsNoEdit(t *testing.T) {
	list := suggest.For(suggest.Failed{Code: lifecycle.NodeFailedCode, Lines: []string{".command.sh: line 2: samtools: command not found"}})
	if len(list) != 1 || list[0].Code != "missing_program" || list[0].Edit != nil {
		t.Errorf("suggests %+v", list)
	}
}
