package environment_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/environment"
)

// sha is the n-th hash.
func sha(n int) string { return fmt.Sprintf("--hash=sha256:%064x", n) }

// lines writes n lines, each of which is told its number.
func lines(head string, n int, each string) string {
	var b strings.Builder
	b.WriteString(head + "\n")
	for i := range n {
		b.WriteString(strings.ReplaceAll(each, "#", fmt.Sprint(i)) + " " + sha(i) + "\n")
	}
	return b.String()
}

// As much as is allowed is taken, and one more is refused.
func TestALockHasBounds(t *testing.T) {
	t.Parallel()
	hashes := func(n int) string {
		text := "# python 3.12\npandas==1"
		for i := range n {
			text += " " + sha(i)
		}
		return text
	}
	for name, tt := range map[string]struct {
		text func(n int) string
		most int
		says string
	}{
		"packages":       {func(n int) string { return lines("# python 3.12", n, "p#==1") }, 5 * environment.MaxPackages, "has more than 1000 packages"},
		"conda packages": {func(n int) string { return lines("# conda linux-64", n, "c/noarch/p#-1-0.conda") }, 5 * environment.MaxPackages, "has more than 1000 packages"},
		"hashes":         {hashes, 500, "needs between 1 and 500 hashes"},
		"bytes": {func(n int) string {
			one := lines("# python 3.12", 1, "p==1")
			return one + "#" + strings.Repeat(" ", n-len(one)-1)
		}, environment.MaxLock, "is larger than 512 KB"},
	} {
		if _, err := environment.ParseLock(tt.text(tt.most)); err != nil {
			t.Errorf("%s: %d are refused: %v", name, tt.most, err)
		}
		if _, err := environment.ParseLock(tt.text(tt.most + 1)); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %d: %v", name, tt.most+1, err)
		}
	}
}

// A lock is the same however an editor wrote it: its line ends, order, spaces
// and remarks say nothing.
func TestALockIsReadHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	python := "# python 3.12\nnumpy==1.0 \\\n    " + sha(1) + " \\\n    " + sha(2) + "\npandas==2.2.3 \\\n    " + sha(3) + "\n"
	conda := "# conda linux-64\nc/linux-64/a-1-0.conda " + sha(1) + "\nd/noarch/b-1-0.tar.bz2 " + sha(2) + "\n"
	for _, text := range []string{python, conda} {
		want, err := environment.ParseLock(text)
		if err != nil || want.String() != text {
			t.Fatalf("%v: %s", err, want)
		}
		body := strings.SplitAfterN(text, "\n", 2)
		for name, other := range map[string]string{
			"line ends of Windows": strings.ReplaceAll(text, "\n", "\r\n"),
			"no last line end":     strings.TrimSuffix(text, "\n"),
			"remarks":              body[0] + "# a remark\n\n   \n" + body[1] + "  # another\n",
			"spaces":               strings.ReplaceAll(body[0], "\n", "  \n") + strings.ReplaceAll(body[1], " --hash", "   --hash"),
		} {
			got, err := environment.ParseLock(other)
			if err != nil || got.Digest() != want.Digest() {
				t.Errorf("%s: %v: %q", name, err, got.String())
			}
		}
	}
	if got, err := environment.ParseLock("# python 3.12\nB==1 " + sha(1) + " " + sha(1) + "\na_.-c==1 " + sha(2)); err != nil || got.String() != "# python 3.12\na-c==1 \\\n    "+sha(2)+"\nb==1 \\\n    "+sha(1)+"\n" {
		t.Errorf("%v: %s", err, got)
	}
}

func TestTheHeadOfALockSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	for head, ok := range map[string]bool{
		"# python 3.8": true, "# python 3.99": true, "# conda linux-64": true, "# conda linux-aarch64": true, "# conda linux-ppc64le": true,
		"# python 3.7": false, "# python 3.100": false, "# python 3": false, "# python 4.0": false, "# python": false, "#python 3.12": false, "# Python 3.12": false,
		"# conda": false, "# conda osx-64": false, "# conda linux-64 linux-64": false, "# conda ../linux-64": false, "# conda linux-" + strings.Repeat("a", 21): false, "": false, "\ufeff# python 3.12": false,
	} {
		body := "a==1 " + sha(1)
		if strings.HasPrefix(head, "# conda") {
			body = "c/noarch/a-1-0.conda " + sha(1)
		}
		if _, err := environment.ParseLock(head + "\n" + body); (err == nil) != ok {
			t.Errorf("%q: %v", head, err)
		}
	}
	if _, conda := (environment.Spec{Lock: "# conda linux-64\nb/noarch/z-1-0.conda " + sha(1) + "\na/noarch/y-1-0.conda " + sha(2) + "\nb/noarch/x-1-0.conda " + sha(3)}).IsConda(); !conda {
		t.Error("a lock of conda packages is taken for another")
	}
	channels, _ := (environment.Spec{Lock: "# conda linux-64\nb/noarch/z-1-0.conda " + sha(1) + "\na/noarch/y-1-0.conda " + sha(2) + "\nb/noarch/x-1-0.conda " + sha(3)}).IsConda()
	if strings.Join(channels, " ") != "b a" {
		t.Errorf("its channels are %q", channels)
	}
	if channels, conda := (environment.Spec{Pip: []string{"a"}}).IsConda(); conda || len(channels) > 0 {
		t.Error("packages of Python are taken for others")
	}
}

func TestTheFileOfACondaPackage(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"samtools-1.20-h50ea8bc_0.conda": "samtools 1.20 h50ea8bc_0", "a-b-c-1.0-0.tar.bz2": "a-b-c 1.0 0", "_x-1!2.0+a-py_0.conda": "_x 1!2.0+a py_0",
		"a-1.conda": "", "a-1-0.zip": "", "A-1-0.conda": "", "-1-0.conda": "", "a-1-0.conda.exe": "", "a-1-0.conda\n": "", "../a-1-0.conda": "", "a-1-0 .conda": "", "": "",
		strings.Repeat("a", environment.MaxRequirement) + "-1-0.conda": "",
	} {
		name, version, build, ok := environment.SplitCondaFile(file)
		if got := strings.TrimSpace(name + " " + version + " " + build); got != want || ok != (want != "") {
			t.Errorf("%.60q is %q, %v", file, got, ok)
		}
	}
	if got := (environment.File{Channel: "c", Folder: "noarch", Name: "a-1-0.conda"}).Path(); got != "c/noarch/a-1-0.conda" {
		t.Error(got)
	}
}

// The key of a wish is that of its one spelling, also where that is longer than
// what can be written.
func TestTheKeyIsThatOfTheOneSpelling(t *testing.T) {
	t.Parallel()
	var versions []string
	for i := range 62 {
		versions = append(versions, fmt.Sprint(100+i))
		for _, spec := range []environment.Spec{
			{Conda: []string{"a " + strings.Join(versions, "|")}},
			{Pip: []string{"A;" + strings.Repeat("(os_name=='x')or", i/4) + "os_name=='x'"}},
		} {
			checked, wrong := spec.Checked()
			if len(wrong) == 0 && (spec.Key() != checked.Key() || checked.Canonical() != spec.Canonical()) {
				t.Errorf("%s has another key than %s", spec.Canonical(), checked.Canonical())
			}
		}
	}
}

// All that is wrong with a wish is said, each where it stands.
func TestEverythingWrongIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	spec := environment.Spec{
		Python: "2.7 " + long, Lock: "nothing",
		Pip: []string{"pandas", "-e .", "Pandas", "a @ https://evil", ""}, Conda: []string{"c::d", "ok"}, Channels: []string{"Upper", "c", "c"},
	}
	checked, wrong := spec.Checked()
	want := []struct {
		field string
		item  int
		says  string
	}{
		{"python", -1, "is not a version of Python such as `3.12`"},
		{"lock", -1, "the lock begins with"},
		{"lock", -1, "a `lock` says everything"},
		{"pip", 1, "is an option of an installer"},
		{"pip", 2, "`Pandas` occurs twice"},
		{"pip", 3, "is an address"},
		{"pip", 4, "is empty"},
		{"conda", 0, "names a channel"},
		{"channels", 0, "is not the name of a channel"},
		{"channels", 2, "`c` occurs twice"},
	}
	if len(wrong) != len(want) {
		t.Fatalf("%d are wrong: %v", len(wrong), wrong)
	}
	for i, w := range want {
		if got := wrong[i]; got.Field != w.field || got.Item != w.item || !strings.Contains(got.Message, w.says) {
			t.Errorf("%d is %+v, want %+v", i, got, w)
		}
		if strings.Contains(wrong[i].Message, long) {
			t.Errorf("a long text is quoted whole: %s", wrong[i].Message)
		}
	}
	if strings.Join(checked.Pip, " ")+strings.Join(checked.Conda, " ")+strings.Join(checked.Channels, " ") != "pandasokc" {
		t.Errorf("left is %+v", checked)
	}
}

func TestListsHaveBounds(t *testing.T) {
	t.Parallel()
	names := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprint("p", i))
		}
		return list
	}
	for field, most := range map[string]int{"pip": environment.MaxPackages, "conda": environment.MaxPackages, "channels": environment.MaxChannels} {
		for _, n := range []int{most, most + 1} {
			spec := environment.Spec{}
			if field == "channels" {
				spec.Conda = []string{"a"}
			}
			*spec.List(field) = names(n)
			_, wrong := spec.Checked()
			if n == most && len(wrong) > 0 || n > most && (len(wrong) != 1 || wrong[0].Item != most || !strings.Contains(wrong[0].Message, fmt.Sprintf("at most %d are allowed", most))) {
				t.Errorf("%d of %s: %v", n, field, wrong)
			}
		}
	}
	if (&environment.Spec{}).List("npm") != nil {
		t.Error("there is a list that is not there")
	}
	for _, tt := range []struct {
		spec  environment.Spec
		empty bool
	}{{environment.Spec{}, true}, {environment.Spec{Python: "3.12", Channels: []string{"c"}}, true}, {environment.Spec{Pip: []string{"a"}}, false}, {environment.Spec{Conda: []string{"a"}}, false}, {environment.Spec{Lock: "x"}, false}} {
		if tt.spec.Empty() != tt.empty {
			t.Errorf("%+v", tt.spec)
		}
	}
	if _, err := environment.Read("{"); err == nil {
		t.Error("half a wish is read")
	}
}
