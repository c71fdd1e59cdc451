package environments_test

import (
	"bytes"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/internal/domain/environment"
	"github.com/millrace/millrace/internal/domain/fault"
	build "github.com/millrace/millrace/internal/engine/executor/environments"
	"github.com/millrace/millrace/internal/engine/executor/environments/channeltest"
	"github.com/millrace/millrace/internal/engine/executor/environments/indextest"
	"github.com/millrace/millrace/internal/engine/executor/environments/machine"
)

// onMachine opens a store that asks what pip and conda are told by variables.
func onMachine(t *testing.T, variables map[string]string) fixture {
	t.Helper()
	return open(t, func(c *build.Config) {
		c.AllowPrivate, c.Indexes, c.Channels, c.Tools = false, []string{build.AsMachine}, []string{build.AsMachine}, channeltest.Tools()
		c.Machine = machine.Machine{Root: t.TempDir(), Env: func(name string) string { return variables[name] }}
	})
}

func TestTheIndexOfPipIsUsedAlsoInAPrivateNetwork(t *testing.T) {
	t.Parallel()
	own, public := indextest.New(t), indextest.New(t)
	own.AddWheel("corp", "1.0", nil, "helper")
	public.AddWheel("corp", "99.0", nil)
	public.AddWheel("helper", "3.0", nil)
	f := onMachine(t, map[string]string{"PIP_INDEX_URL": public.URL, "PIP_EXTRA_INDEX_URL": own.URL})
	if _, err := f.root(t, "a", pip("corp")); err != nil {
		t.Fatal(err)
	}
	known, err := f.records.EnvironmentBuild(t.Context(), "a", pip("corp").Key())
	lock, lockErr := environment.ParseLock(known.Lock)
	if err != nil || lockErr != nil || len(lock.Packages) != 2 || lock.Packages[0].Version != "1.0" {
		t.Errorf("the lock is %q, %v %v", known.Lock, err, lockErr)
	}
}

// What an index names elsewhere is refused as ever.
func TestNothingButTheIndexOfPipMayBePrivate(t *testing.T) {
	t.Parallel()
	links, renames, other := indextest.New(t), indextest.New(t), indextest.New(t)
	wheel := indextest.Wheel("linked", "1.0", nil)
	other.AddFile("linked", "linked-1.0-py3-none-any.whl", wheel)
	address := strings.TrimSuffix(other.URL, "/simple/") + "/files/linked/linked-1.0-py3-none-any.whl"
	links.AddLink("linked", address, wheel)
	renames.AddLink("linked", strings.Replace(address, "127.0.0.1", "localhost", 1), wheel)
	away := httptest.NewServer(http.RedirectHandler(other.URL+"linked/", http.StatusFound))
	t.Cleanup(away.Close)
	for name, index := range map[string]string{"a link": links.URL, "a link by another name": renames.URL, "a redirect": away.URL} {
		f := onMachine(t, map[string]string{"PIP_INDEX_URL": index})
		f.FailAtOnce()
		if _, err := f.root(t, "a", pip("linked")); !fault.Is(err, fault.KindUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The doctor says where the files of such an index are.
	links.AddLink("pip", address, wheel)
	f := onMachine(t, map[string]string{"PIP_INDEX_URL": links.URL})
	host := strings.TrimPrefix(strings.TrimSuffix(other.URL, "/simple/"), "http://")
	if err := build.Check(t.Context(), f.Config); err == nil || !strings.Contains(err.Error(), "its files are at "+host) || !strings.Contains(err.Error(), "--fetch-allow-private") {
		t.Errorf("the doctor says %v", err)
	}
	if asked := other.Asked(); len(asked) > 0 {
		t.Errorf("another host is asked for %v", asked)
	}
}

func TestAFailureNamesNoAddress(t *testing.T) {
	t.Parallel()
	x, closed := indextest.New(t), httptest.NewServer(nil)
	closed.Close()
	x.AddWheel("one", "1.0", nil)
	failing := indextest.New(t)
	failing.Fail(http.StatusInternalServerError)
	secret := func(address string) string {
		return strings.Replace(strings.TrimSuffix(address, "/simple/"), "http://", "http://user:secret@", 1) + "/token-secret/simple/"
	}
	for name, tt := range map[string]struct {
		index   string
		private bool
		spec    environment.Spec
		says    string
	}{
		"it refuses":    {secret(closed.URL), true, pip("one"), "the package index cannot be reached: it refuses connections"},
		"it is private": {secret(x.URL), false, pip("one"), "--fetch-allow-private"},
		"it fails":      {secret(failing.URL), true, pip("one"), "the package index answered 500"},
		"another hash":  {x.URL, true, environment.Spec{Lock: "# python 3.11\none==1.0 --hash=sha256:" + strings.Repeat("0", 64) + "\n"}, "Hash mismatch"},
	} {
		f := open(t, func(c *build.Config) { c.AllowPrivate = tt.private }, tt.index)
		f.FailAtOnce()
		_, err := f.root(t, "a", tt.spec)
		if !fault.Is(err, fault.KindUnavailable) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		known, recordErr := f.records.EnvironmentBuild(t.Context(), "a", tt.spec.Key())
		if recordErr != nil {
			t.Fatal(recordErr)
		}
		u, urlErr := url.Parse(tt.index)
		if urlErr != nil {
			t.Fatal(urlErr)
		}
		for _, word := range []string{u.Host, u.Port(), "secret", base64.RawURLEncoding.EncodeToString([]byte("http://" + u.Host))[:20]} {
			if text := err.Error() + known.Error + known.Log; strings.Contains(text, word) {
				t.Errorf("%s: %q is in %s", name, word, text)
			}
		}
	}
}

// What conda is told of is used, and nothing else may be in a private network.
func TestTheChannelsOfCondaAreUsedAlsoInAPrivateNetwork(t *testing.T) {
	t.Parallel()
	x := indextest.New(t)
	channeltest.NeedTool(t, x)
	own, other := channeltest.New(t, "own"), channeltest.New(t, "own")
	own.Add(channeltest.Package{Name: "word", Version: "1.0"})
	other.Add(channeltest.Package{Name: "word", Version: "1.0"})
	away := httptest.NewServer(http.RedirectHandler(other.URL+"/noarch/repodata.json", http.StatusFound))
	t.Cleanup(away.Close)
	for _, tt := range []struct {
		variables map[string]string
		built     bool
	}{
		{map[string]string{"CONDA_CHANNELS": own.URL}, true},
		{map[string]string{"CONDA_CHANNELS": "own", "CONDA_CHANNEL_ALIAS": strings.TrimSuffix(own.URL, "own")}, true},
		{map[string]string{"CONDA_CHANNELS": away.URL + "/own"}, false},
	} {
		tt.variables["PIP_INDEX_URL"] = x.URL
		f := onMachine(t, tt.variables)
		if root, err := f.root(t, "a", conda("word")); (err == nil) != tt.built {
			t.Errorf("%v: %s, %v", tt.variables, root, err)
		}
	}
	if asked := other.Asked(); len(asked) > 0 {
		t.Errorf("another host is asked for %v", asked)
	}
}

// A name without an address is where conda takes it to be.
func TestCondasOwnPlaceOfAChannelIsKnown(t *testing.T) {
	t.Parallel()
	x := indextest.New(t)
	channeltest.NeedTool(t, x)
	f := onMachine(t, map[string]string{"CONDA_CHANNELS": "conda-forge,defaults,https://conda.example.org/own", "PIP_INDEX_URL": x.URL})
	if problem := f.ProblemWith(environment.Spec{Conda: []string{"one"}, Channels: []string{"conda-forge"}}); problem != "" {
		t.Error(problem)
	}
	if problem := f.ProblemWith(environment.Spec{Conda: []string{"one"}, Channels: []string{"defaults"}}); !strings.Contains(problem, "use one of conda-forge, own,") {
		t.Error(problem)
	}
	before := f.Unplaced()
	if err := f.PlaceChannels(t.Context()); err != nil || len(before) != 1 || len(f.Unplaced()) > 0 {
		t.Errorf("without an address are %v, and then %v, %v", before, f.Unplaced(), err)
	}
}

// Only the tool knows where a channel without an address is. Where it cannot be had, nobody can
// ask the channel.
func TestTheDoctorFindsOutWhereChannelsAre(t *testing.T) {
	t.Parallel()
	f := onMachine(t, map[string]string{"CONDA_CHANNELS": "conda-forge", "PIP_INDEX_URL": indextest.New(t).URL})
	if err := build.CheckConda(t.Context(), f.Config); err == nil || !strings.Contains(err.Error(), "the tool for conda packages") {
		t.Errorf("the doctor says %v", err)
	}
	f.UV = "/no/such/uv"
	if err := build.CheckConda(t.Context(), f.Config); err == nil || !strings.Contains(err.Error(), "uv (pip install uv)") {
		t.Errorf("without uv the doctor says %v", err)
	}
}

func TestWithoutChannelsTheSettingIsNamed(t *testing.T) {
	t.Parallel()
	indextest.NeedUV(t)
	for name, variables := range map[string]map[string]string{
		"nothing":           {},
		"conda's own":       {"CONDA_CHANNELS": "defaults"},
		"with a password":   {"CONDA_CHANNELS": "https://user:secret@conda.example.org/own"},
		"with a token":      {"CONDA_CHANNELS": "https://conda.example.org/t/secret/own"},
		"not of a channel":  {"CONDA_CHANNELS": "https://conda.example.org/secret?a=b"},
		"something unnamed": {"CONDA_CHANNELS": "https://conda.example.org/Secret"},
	} {
		variables["PIP_INDEX_URL"] = "https://packages.example.org/simple/"
		f := onMachine(t, variables)
		problem := f.ProblemWith(conda("one"))
		if !strings.Contains(problem, "--conda-channels") || strings.Contains(problem, "example.org") || f.ProblemWith(pip("one")) != "" {
			t.Errorf("%s: teams read %q", name, problem)
		}
		if err := build.CheckConda(t.Context(), f.Config); err == nil || !strings.Contains(err.Error(), "--conda-channels") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the operator reads %v", name, err)
		}
	}
}

// Without any configuration pip asks an index of its own.
func TestPipsOwnIndexIsKnown(t *testing.T) {
	t.Parallel()
	f := onMachine(t, nil)
	own, err := f.OwnIndex(t.Context())
	u, urlErr := url.Parse(own)
	if err != nil || urlErr != nil || u.Scheme != "https" || u.User != nil || !strings.Contains(u.Path, "simple") {
		t.Errorf("it is %q, %v %v", own, err, urlErr)
	}
	if problem := f.Problem(); problem != "" {
		t.Error(problem)
	}
}

// A machine that kills uv, or cannot start it, is not the author's to mend.
func TestAUVThatIsKilledIsAFailureOfThePlatform(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]fault.Kind{
		"#!/bin/sh\nkill -KILL $$":    fault.KindInternal,
		"#!/no/such/interpreter":      fault.KindInternal,
		"#!/bin/sh\necho '# nothing'": fault.KindUnavailable,
	} {
		uv := filepath.Join(t.TempDir(), "uv")
		syscall.ForkLock.RLock() // until a process that is started meanwhile executes its program, it has the file open
		err := os.WriteFile(uv, []byte(script), 0o700)
		syscall.ForkLock.RUnlock()
		if err != nil {
			t.Fatal(err)
		}
		f := open(t, func(c *build.Config) {
			c.UV, c.Indexes = uv, []string{build.AsMachine}
			c.Machine = machine.Machine{Root: t.TempDir(), Env: func(string) string { return "" }}
		})
		_, err = f.root(t, "a", pip("one"))
		if fault.KindOf(err) != want || (want == fault.KindUnavailable) != strings.Contains(err.Error(), "--pip-index-url") {
			t.Errorf("%q: %v", script, err)
		}
	}
}

// The operator reads the file and the line, teams that there is something to read.
func TestWhatPipCannotBeToldIsSaidToTheOperator(t *testing.T) {
	t.Parallel()
	indextest.NeedUV(t)
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "etc"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "etc", "pip.conf"), []byte("[global]\nindex-url = https://user:secret@packages.example.org/simple\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	change := func(c *build.Config) {
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
		c.Indexes, c.Machine = []string{build.AsMachine}, machine.Machine{Root: root, Env: func(string) string { return "" }}
	}
	f := open(t, change)
	if problem := f.Problem(); !strings.Contains(problem, "millrace admin doctor") || !strings.Contains(problem, "--pip-index-url") || strings.Contains(problem, "packages.example.org") || strings.Contains(problem, root) {
		t.Errorf("teams read %q", problem)
	}
	if err := build.Check(t.Context(), f.Config); err == nil || !strings.Contains(err.Error(), root+"/etc/pip.conf names an address with credentials") || strings.Contains(err.Error(), "secret") {
		t.Errorf("the operator reads %v", err)
	}
	if !strings.Contains(log.String(), "pip.conf names an address with credentials") || strings.Contains(log.String(), "secret") {
		t.Errorf("the log says %s", log.String())
	}
}
