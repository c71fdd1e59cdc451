package channels_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace/internal/engine/executor/environments/channels"
)

const hash = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func record(name string, more string) string {
	return `"` + name + `-1-0.conda":{"name":"` + name + `","version":"1","build":"0","build_number":0,"subdir":"noarch","depends":[],"sha256":"` + hash + `"` + more + `}`
}

func TestAPathOfAChannelStaysWithItsHost(t *testing.T) {
	t.Parallel()
	var told http.Header
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told = r.Header.Clone()
		_, _ = w.Write([]byte("{}"))
	}))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusFound))
	defer server.Close()
	c, err := channels.New([]string{server.URL + "/t/password/own"}, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Reach(t.Context()); err != nil || told == nil || told.Get("Referer") != "" {
		t.Errorf("the other host is told %v, %v", told, err)
	}
}

func TestAChannelThatFailsForAMomentIsAskedAgain(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int32{http.StatusServiceUnavailable: 3, http.StatusForbidden: 1} {
		var asked atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) < 3 {
				w.WriteHeader(status)
			}
		}))
		defer server.Close()
		c, err := channels.New([]string{server.URL + "/own"}, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Reach(t.Context()); asked.Load() != want || (err == nil) != (want == 3) {
			t.Errorf("%d: it is asked %d times, %v", status, asked.Load(), err)
		}
	}
}

// packages is what is left of what a channel says.
func packages(t *testing.T, says string, hidden ...string) (map[string]any, error) {
	t.Helper()
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed)
	if err == nil {
		_, err = z.Write([]byte(says))
	}
	if err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/own/noarch/repodata.json.zst" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(packed.Bytes())
	}))
	defer server.Close()
	c, err := channels.New([]string{server.URL + "/own/"}, true)
	if err != nil {
		t.Fatal(err)
	}
	hide := map[string]bool{}
	for _, name := range hidden {
		hide[name] = true
	}
	var out bytes.Buffer
	if _, err := c.Packages(t.Context(), "own", "noarch", hide, &out); err != nil {
		return nil, err
	}
	var left map[string]map[string]any
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(out.Bytes(), &whole); err != nil {
		t.Fatalf("it wrote %s, %v", out.Bytes(), err)
	}
	delete(whole, "repodata_version")
	text, _ := json.Marshal(whole)
	if err := json.Unmarshal(text, &left); err != nil {
		t.Fatal(err)
	}
	return left["packages.conda"], nil
}

func TestWhatAChannelSaysIsWrittenAnew(t *testing.T) {
	t.Parallel()
	says := `{"info":{"base_url":"https://elsewhere.example/"},"other":[{"a":[1,{}]},2],"packages.conda":{` +
		strings.Join([]string{record("a", `,"url":"https://elsewhere.example/","noarch":"python"`), record("b", ""), `"c-1-0.conda":null`, `"../d-1-0.conda":{}`, record("e", `,"sha256":"x"`)}, ",") +
		`},"packages.conda":{` + record("f", "") + `}}`
	left, err := packages(t, says, "b")
	if err != nil || len(left) != 1 || left["a-1-0.conda"] == nil {
		t.Fatalf("%v, %v", left, err)
	}
	kept := left["a-1-0.conda"].(map[string]any)
	if kept["noarch"] != "python" || kept["url"] != nil {
		t.Errorf("it is %v", kept)
	}
}

func TestWhatAChannelSaysIsBounded(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"a large record": `{"packages.conda":{` + record("a", `,"license":"`+strings.Repeat("x", 3<<20)+`"`) + `}}`,
		"a large name":   `{"` + strings.Repeat("x", 3<<20) + `":1}`,
		"a deep one":     `{"other":` + strings.Repeat("[", 1000),
		"many spaces":    `{"packages.conda":` + strings.Repeat(" ", 3<<20) + `{}}`,
		"no object":      `[]`,
		"an end":         `{"packages.conda":{`,
		"no text":        "\x00\xff",
	} {
		if left, err := packages(t, says); err == nil {
			t.Errorf("%s: %v", name, left)
		}
	}
}

func TestAChannelIsNamedByItsAddress(t *testing.T) {
	t.Parallel()
	for _, wrong := range [][]string{{"conda-forge"}, {"file:///etc/conda"}, {"https://conda.example.org"}, {"https://conda.example.org/Upper"}, {"https://a.example/x", "https://b.example/x"}, {"https://a.example/x?y=1"}} {
		if _, err := channels.New(wrong, false); err == nil {
			t.Errorf("%v are taken", wrong)
		}
	}
	c, err := channels.New([]string{"https://user:word@conda.example.org/t/token/conda-forge/", "https://conda.example.org/bioconda"}, false)
	if err != nil || strings.Join(c.Names(), " ") != "conda-forge bioconda" || !c.Has("bioconda") || c.Has("token") {
		t.Errorf("%v, %v", c, err)
	}
}
