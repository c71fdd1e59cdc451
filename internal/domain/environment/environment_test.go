package environment_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/environment"
)

func TestRequirementsHaveOneSpelling(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"pandas":                               "pandas",
		"  Pandas == 2.2.* ":                   "pandas==2.2.*",
		"ruamel.yaml>=0.17,<1":                 "ruamel-yaml<1,>=0.17",
		"requests [security, SOCKS] (>=2.8.1)": "requests[security,socks]>=2.8.1",
		`tomli; python_version < "3.11"`:       `tomli ; python_version < "3.11"`,
		"torch==2.1+cpu":                       "torch==2.1+cpu",
		`a; (os_name == 'nt' or extra in "x y") and sys_platform not in "win"`: `a ; ( os_name == 'nt' or extra in "x y" ) and sys_platform not in "win"`,
	} {
		got, err := environment.ParseRequirement(text)
		if err != nil || got.String() != want {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
			continue
		}
		if again, err := environment.ParseRequirement(got.String()); err != nil || again.String() != want {
			t.Errorf("%q is %q the second time, %v", text, again, err)
		}
	}
}

func TestWhatIsNoRequirementIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "-e .", "--index-url=http://evil", "-r other.txt", "pandas --index-url http://evil", "pandas\n--index-url http://evil", "pandas\r-e .",
		"pandas @ https://evil/x.whl", "pandas@file:///etc", "https://evil/x.whl", "git+https://evil/x", "./x.whl", "../x", "/etc/passwd", `C:\x`, "x/y",
		"pandas # --hash", "pandas --hash=sha256:00", "pandas==1 -e .", "pandas;", "pandas; os.system('x')", `pandas; python_version < "3`, "pandas; __import__ == 'x'",
		`pandas; python_version < "$(id)"`, "pandas==", "pandas==-1", "pandas 2.2", "pandas==1.0 2.0", "pandas[a b]", "pandas[]]", "pandas[-e]", "_pandas", "pandas-", "pänd", "a\x00b", "a\u2028b",
		"pandas==1;;", "pandas; (os_name == 'x'", strings.Repeat("a", 257), "pandas==${HOME}", "%s", "'pandas'", "pandas`id`",
	} {
		if got, err := environment.ParseRequirement(text); err == nil {
			t.Errorf("%q is taken for %q", text, got)
		}
	}
}

const hash = "1111111111111111111111111111111111111111111111111111111111111111"

func TestALockSaysExactlyWhatIsInstalled(t *testing.T) {
	t.Parallel()
	text := "# python 3.12\nPandas==2.2.3 \\\n    --hash=sha256:" + hash + "\nnumpy==1.0 --hash=sha256:" + strings.Replace(hash, "1", "2", 1) + " --hash=sha256:" + hash + "\n"
	l, err := environment.ParseLock(text)
	if err != nil || l.Python != "3.12" || len(l.Packages) != 2 || l.Packages[0].Name != "numpy" || len(l.Packages[0].Hashes) != 2 {
		t.Fatalf("%+v, %v", l, err)
	}
	again, err := environment.ParseLock(l.String())
	if err != nil || again.String() != l.String() || again.Digest() != l.Digest() {
		t.Errorf("it reads as %q, %v", again.String(), err)
	}
	if a, b := (environment.Spec{Lock: text}), (environment.Spec{Lock: l.String()}); a.Key() != b.Key() {
		t.Error("two spellings of a lock have different keys")
	}
	for name, text := range map[string]string{
		"no head":         "pandas==1 --hash=sha256:" + hash,
		"nothing":         "# python 3.12\n",
		"no hash":         "# python 3.12\npandas==1\n",
		"no version":      "# python 3.12\npandas --hash=sha256:" + hash,
		"a range":         "# python 3.12\npandas>=1 --hash=sha256:" + hash,
		"an option":       "# python 3.12\n--index-url=http://evil --hash=sha256:" + hash,
		"another option":  "# python 3.12\npandas==1 --hash=sha256:" + hash + " --config-settings=x",
		"an address":      "# python 3.12\npandas@http://evil --hash=sha256:" + hash,
		"a weak hash":     "# python 3.12\npandas==1 --hash=md5:" + hash,
		"twice":           "# python 3.12\na_b==1 --hash=sha256:" + hash + "\na-b==2 --hash=sha256:" + hash,
		"an old python":   "# python 2.7\npandas==1 --hash=sha256:" + hash,
		"a python option": "# python 3.12 -e .\npandas==1 --hash=sha256:" + hash,
		"too large":       "# python 3.12\n" + strings.Repeat("#", environment.MaxLock),
	} {
		if _, err := environment.ParseLock(text); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestTheKeyIsThatOfTheWish(t *testing.T) {
	t.Parallel()
	a := environment.Spec{Python: "3.12", Pip: []string{"pandas == 2.2.*", "NumPy"}}
	b := environment.Spec{Python: "3.12", Pip: []string{"numpy", "pandas==2.2.*", "numpy"}}
	if a.Key() != b.Key() {
		t.Error("the same wish has two keys")
	}
	b.Python = "3.13"
	if a.Key() == b.Key() {
		t.Error("two wishes have one key")
	}
	if back, err := environment.Read(a.Canonical()); err != nil || back.Key() != a.Key() {
		t.Errorf("%+v, %v", back, err)
	}
}

func FuzzRequirement(f *testing.F) {
	for _, seed := range []string{"pandas==2.2.*", `a[b]; python_version < "3"`, "-e .", "a @ b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := environment.ParseRequirement(text)
		if err != nil {
			return
		}
		again, err := environment.ParseRequirement(r.String())
		if err != nil || again.String() != r.String() {
			t.Errorf("%q becomes %q, then %q, %v", text, r, again, err)
		}
		if strings.ContainsAny(r.String(), "\n\r\\#@/") || strings.HasPrefix(r.String(), "-") {
			t.Errorf("%q becomes %q", text, r)
		}
	})
}
