package environment_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/domain/environment"
)

func TestACondaPackageHasOneSpelling(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"samtools":                   "samtools",
		" Samtools ":                 "samtools",
		"samtools *":                 "samtools",
		"samtools=1.20":              "samtools 1.20.*",
		"samtools=1.20.*":            "samtools 1.20.*",
		"samtools 1.20.*":            "samtools 1.20.*",
		"samtools 1.20*":             "samtools 1.20.*",
		"samtools==1.20":             "samtools ==1.20",
		"samtools == 1.20":           "samtools ==1.20",
		"samtools 1.20":              "samtools ==1.20",
		"samtools =1.20":             "samtools 1.20.*",
		"samtools>=1.2,<2":           "samtools <2,>=1.2",
		"samtools >=1.2, <2":         "samtools <2,>=1.2",
		"samtools >= 1.2":            "samtools >=1.2",
		"samtools>=1.2.*":            "samtools >=1.2",
		"samtools 1.2|1.4.*":         "samtools 1.4.*|==1.2",
		"samtools!=1.3.*":            "samtools !=1.3.*",
		"samtools=1.20=h50ea8bc_0":   "samtools ==1.20 h50ea8bc_0",
		"samtools==1.20=h50ea8bc_0":  "samtools ==1.20 h50ea8bc_0",
		"samtools 1.20 h50*":         "samtools ==1.20 h50*",
		"samtools >=1.2,<2 h50*":     "samtools <2,>=1.2 h50*",
		"pytorch * cuda*":            "pytorch * cuda*",
		"pytorch * *":                "pytorch * *",
		"_libgcc_mutex=0.1=main":     "_libgcc_mutex ==0.1 main",
		"perl-html-parser~=3.8":      "perl-html-parser ~=3.8",
		"ca-certificates=2024!1.0+a": "ca-certificates 2024!1.0+a.*",
	} {
		m, err := environment.ParseMatchSpec(text)
		if err != nil || m.String() != want {
			t.Errorf("%q is %q, %v; want %q", text, m, err, want)
		}
		if again, err := environment.ParseMatchSpec(m.String()); err != nil || again != m {
			t.Errorf("%q read again is %q, %v", want, again, err)
		}
	}
}

func TestWhatIsNoCondaPackageIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " ", "-c", "--channel=evil", "-c evil samtools", "evil::samtools", "evil/linux-64::samtools", "https://evil.example/samtools-1-0.conda", "file:///etc/passwd", "samtools @ https://evil.example/x",
		"./samtools-1-0.conda", "../x", "/etc/passwd", `C:\x`, "samtools[channel=evil]", "samtools[url='https://evil.example/x']", "samtools[version='>=1']", "samtools>=1,", "samtools=", "samtools==", "samtools<>1", "samtools>=1 build extra",
		"samtools\nnumpy", "samtools\x00", "sämtools", "samtools # comment", "samtools=1.20=", "samtools=1.20=a b", "samtools ^1.2", "samtools 1.2;x", "samtools=1.20=^h.*$", "samtools (>=1)", "*", "*samtools", "samtools=1..*x", "samtools $(touch x)", "samtools|numpy", strings.Repeat("a", 257),
	} {
		if m, err := environment.ParseMatchSpec(text); err == nil {
			t.Errorf("%q is taken for %q", text, m)
		}
	}
}

func TestALockOfCondaPackages(t *testing.T) {
	t.Parallel()
	hash := " --hash=sha256:" + strings.Repeat("a", 64)
	good := "# conda linux-64\nbioconda/linux-64/samtools-1.20-h50ea8bc_0.tar.bz2" + hash + "\nconda-forge/noarch/a-b-1.0-py_0.conda" + hash + "\n"
	lock, err := environment.ParseLock(good)
	if err != nil || lock.Packages[0].Name != "a-b" || lock.Packages[1].Version != "1.20" || lock.Platform != "linux-64" {
		t.Fatalf("%+v, %v", lock, err)
	}
	if again, err := environment.ParseLock(lock.String()); err != nil || again.Digest() != lock.Digest() {
		t.Errorf("read again it is %+v, %v", again, err)
	}
	for _, line := range []string{
		"https://evil.example/linux-64/a-1-0.conda" + hash, "evil/../linux-64/a-1-0.conda" + hash, "c/osx-64/a-1-0.conda" + hash, "c/linux-64/../a-1-0.conda" + hash, "c/linux-64/a-1-0.zip" + hash,
		"c/linux-64/a-1-0.conda", "c/linux-64/a-1-0.conda --hash=md5:1", "c/linux-64/a-1-0.conda" + hash + hash, "c/linux-64/a.conda" + hash, "@EXPLICIT", "a==1" + hash, "c/linux-64/a-1-0.conda" + hash + "\nd/linux-64/a-2-0.conda" + hash,
	} {
		if _, err := environment.ParseLock("# conda linux-64\n" + line + "\n"); err == nil {
			t.Errorf("%q is taken", line)
		}
	}
}

func TestCondaAndPipDoNotMix(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spec  environment.Spec
		field string
	}{
		"both":                    {environment.Spec{Conda: []string{"a"}, Pip: []string{"b"}}, "pip"},
		"an interpreter":          {environment.Spec{Conda: []string{"a"}, Python: "3.12"}, "python"},
		"channels of pip":         {environment.Spec{Pip: []string{"a"}, Channels: []string{"conda-forge"}}, "channels"},
		"the address of a one":    {environment.Spec{Conda: []string{"a"}, Channels: []string{"https://evil.example/c"}}, "channels"},
		"a channel twice":         {environment.Spec{Conda: []string{"a"}, Channels: []string{"c", "c"}}, "channels"},
		"a package twice":         {environment.Spec{Conda: []string{"a=1", "a 1.*"}}, "conda"},
		"a lock beside":           {environment.Spec{Conda: []string{"a"}, Lock: "# conda linux-64\nc/noarch/a-1-0.conda --hash=sha256:" + strings.Repeat("a", 64)}, "lock"},
		"too many":                {environment.Spec{Conda: make([]string, environment.MaxPackages+1)}, "conda"},
		"more channels than room": {environment.Spec{Conda: []string{"a"}, Channels: make([]string, environment.MaxChannels+1)}, "channels"},
	} {
		if _, wrong := tt.spec.Checked(); len(wrong) != 1 || wrong[0].Field != tt.field {
			t.Errorf("%s: %v", name, wrong)
		}
	}
	good, wrong := environment.Spec{Conda: []string{"b", "a=1"}, Channels: []string{"z", "a"}}.Checked()
	if len(wrong) > 0 || good.Canonical() != `{"conda":["a 1.*","b"],"channels":["z","a"]}` {
		t.Errorf("%s, %v", good.Canonical(), wrong)
	}
}
