package channels_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/engine/executor/environments/channels"
)

// host is a channel of one folder, whose list is not packed, that answers as a file
// server does.
type host struct {
	*httptest.Server
	mu       sync.Mutex
	list     string            // USER in it is whoever asks
	headers  map[string]string // of each answer
	statuses []int             // of each answer that was not "not found"
}

func newHost(t *testing.T, list string, headers map[string]string) *host {
	t.Helper()
	h := &host{list: list, headers: headers}
	h.Server = httptest.NewServer(http.HandlerFunc(h.serve))
	t.Cleanup(h.Close)
	return h
}

func (h *host) serve(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !strings.HasSuffix(r.URL.Path, "/noarch/repodata.json") {
		http.NotFound(w, r)
		return
	}
	for name, value := range h.headers {
		w.Header().Set(name, value)
	}
	modified, _ := http.ParseTime(h.headers["Last-Modified"])
	user, _, _ := r.BasicAuth()
	status := &recorded{ResponseWriter: w, status: http.StatusOK}
	http.ServeContent(status, r, "", modified, strings.NewReader(strings.ReplaceAll(h.list, "USER", user)))
	h.statuses = append(h.statuses, status.status)
}

func (h *host) change(list string, headers map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list, h.headers = list, headers
}

type recorded struct {
	http.ResponseWriter
	status int
}

func (r *recorded) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func keeping(t *testing.T, folder, address string) *channels.Channels {
	t.Helper()
	c, err := channels.New([]string{address}, true)
	if err == nil {
		err = c.Keep(folder, slog.New(slog.DiscardHandler), time.Now)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// has is what a channel has, as it is given to a solver.
func has(t *testing.T, c *channels.Channels) string {
	t.Helper()
	var out bytes.Buffer
	if _, err := c.Packages(t.Context(), "own", "noarch", nil, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func listOf(names ...string) string {
	var records []string
	for _, name := range names {
		records = append(records, record(name, ""))
	}
	return `{"packages.conda":{` + strings.Join(records, ",") + "}}\n"
}

func TestAListThatHasNotChangedIsNotFetchedAgain(t *testing.T) {
	t.Parallel()
	old := time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)
	older := time.Now().Add(-2 * time.Hour).UTC().Format(http.TimeFormat)
	for name, headers := range map[string][2]map[string]string{
		"tag":      {{"ETag": `"1"`}, {"ETag": `"2"`}},
		"weak tag": {{"ETag": `W/"1"`}, {"ETag": `W/"2"`}},
		"date":     {{"Last-Modified": older}, {"Last-Modified": old}},
		"both":     {{"ETag": `"1"`, "Last-Modified": old}, {"ETag": `"2"`, "Last-Modified": old}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, folder := newHost(t, listOf("a", "b"), headers[0]), t.TempDir()
			first := has(t, keeping(t, folder, h.URL+"/own"))
			if again := has(t, keeping(t, folder, h.URL+"/own")); again != first || !strings.Contains(first, "b-1-0.conda") {
				t.Errorf("it has %s, later %s", first, again)
			}
			h.change(listOf("c"), headers[1])
			if changed := has(t, keeping(t, folder, h.URL+"/own")); !strings.Contains(changed, "c-1-0.conda") || strings.Contains(changed, "a-1-0.conda") {
				t.Errorf("once it has changed it has %s", changed)
			}
			if len(h.statuses) != 3 || h.statuses[0] != 200 || h.statuses[1] != 304 || h.statuses[2] != 200 {
				t.Errorf("it answers %v", h.statuses)
			}
		})
	}
}

// What is read of a kept list is what is read of one that is sent.
func TestAKeptListIsReadAsItWasSent(t *testing.T) {
	t.Parallel()
	old := strings.ReplaceAll(record("c", ""), ".conda", ".tar.bz2")
	for name, list := range map[string]string{
		"both kinds":  `{"packages":{` + old + `},"packages.conda":{` + record("a", `,"depends":["b <2","x&y"]`) + "," + record("b", "") + `}}`,
		"other order": `{"packages.conda":{` + record("a", "") + `},"info":{},"packages":{` + old + `}}`,
		"one kind":    `{"packages":{` + old + `}}`,
		"nothing":     `{}`,
	} {
		h, folder := newHost(t, list, map[string]string{"ETag": `"1"`}), t.TempDir()
		direct, err := channels.New([]string{h.URL + "/own"}, true)
		if err != nil {
			t.Fatal(err)
		}
		has(t, keeping(t, folder, h.URL+"/own"))
		for _, hidden := range []map[string]bool{nil, {"a": true}, {"a": true, "b": true, "c": true}} {
			var want, got bytes.Buffer
			wantNames, err := direct.Packages(t.Context(), "own", "noarch", hidden, &want)
			if err != nil {
				t.Fatal(err)
			}
			names, err := keeping(t, folder, h.URL+"/own").Packages(t.Context(), "own", "noarch", hidden, &got)
			if err != nil || got.String() != want.String() || !maps.Equal(names, wantNames) || !json.Valid(got.Bytes()) {
				t.Errorf("%s without %v: %s, want %s, %v", name, hidden, &got, &want, err)
			}
		}
		if h.statuses[2] != http.StatusNotModified {
			t.Errorf("%s: it answers %v", name, h.statuses)
		}
	}
}

func TestAListThatCannotBeTrustedLaterIsNotKept(t *testing.T) {
	t.Parallel()
	for name, headers := range map[string]map[string]string{
		"nothing to ask by":   {},
		"not to be kept":      {"ETag": `"1"`, "Cache-Control": "private, no-store"},
		"changed just now":    {"Last-Modified": time.Now().UTC().Format(http.TimeFormat)},
		"a date of no answer": {"Last-Modified": "yesterday"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, folder := newHost(t, listOf("a"), headers), t.TempDir()
			has(t, keeping(t, folder, h.URL+"/own"))
			if entries, _ := os.ReadDir(folder); len(entries) > 0 {
				t.Errorf("%v are kept", entries)
			}
		})
	}
}

func TestAListIsOfOneAddressAndWhoeverAsks(t *testing.T) {
	t.Parallel()
	// A host that gives everybody another list, and says that they are the same.
	h, folder := newHost(t, listOf("of-USER"), map[string]string{"ETag": `"same"`}), t.TempDir()
	for _, address := range []string{"ada:one@HOST/own", "ada:two@HOST/own", "bob:one@HOST/own", "HOST/own", "ada:one@HOST/t/token/own"} {
		address = "http://" + strings.Replace(address, "HOST", strings.TrimPrefix(h.URL, "http://"), 1)
		user, _, _ := strings.Cut(strings.TrimPrefix(address, "http://"), ":")
		if !strings.Contains(address, "@") {
			user = ""
		}
		if got := has(t, keeping(t, folder, address)); user != "" && !strings.Contains(got, "of-"+user+"-1-0.conda") {
			t.Errorf("%s has %s", address, got)
		}
	}
	for _, status := range h.statuses {
		if status != http.StatusOK {
			t.Errorf("answers are %v: something was taken for another's", h.statuses)
		}
	}
}

func TestAListThatWasDamagedIsFetchedAnew(t *testing.T) {
	t.Parallel()
	h, folder := newHost(t, listOf("a"), map[string]string{"ETag": `"1"`}), t.TempDir()
	want := has(t, keeping(t, folder, h.URL+"/own"))
	for name, damage := range map[string]func(path string) error{
		"*.list": func(path string) error { return os.WriteFile(path, []byte(listOf("b")), 0o600) },
		"*.json": func(path string) error { return os.Truncate(path, 3) },
	} {
		files, err := filepath.Glob(filepath.Join(folder, name))
		if err != nil || len(files) != 1 {
			t.Fatalf("%s: %v, %v", name, files, err)
		}
		if err := damage(files[0]); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time from what was kept anew
			if got := has(t, keeping(t, folder, h.URL+"/own")); got != want {
				t.Errorf("%s: it has %s", name, got)
			}
		}
	}
	if len(h.statuses) != 5 || h.statuses[2] != 304 || h.statuses[4] != 304 {
		t.Errorf("it answers %v", h.statuses)
	}
}

func TestWhatCannotBeReadIsNotKept(t *testing.T) {
	t.Parallel()
	whole := listOf("a")
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"no list": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>sign in</html>")) },
		"a part": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(whole)))
			_, _ = w.Write([]byte(whole[:len(whole)-1])) // what is missing is no part of the text
		},
		"not changed": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, ".zst") {
					http.NotFound(w, r)
					return
				}
				w.Header().Set("ETag", `"1"`)
				answer(w, r)
			}))
			defer server.Close()
			folder := t.TempDir()
			_, err := keeping(t, folder, server.URL+"/own").Packages(t.Context(), "own", "noarch", nil, new(bytes.Buffer))
			if (err == nil) != (name == "a part") {
				t.Error(err)
			}
			if entries, _ := os.ReadDir(folder); len(entries) > 0 {
				t.Errorf("%v are kept", entries)
			}
		})
	}
}

func TestThatListsCannotBeKeptIsNoFailure(t *testing.T) {
	t.Parallel()
	h, folder := newHost(t, listOf("a"), map[string]string{"ETag": `"1"`}), filepath.Join(t.TempDir(), "lists")
	c := keeping(t, folder, h.URL+"/own")
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	if got := has(t, c); !strings.Contains(got, "a-1-0.conda") {
		t.Errorf("it has %s", got)
	}
}

func TestKeptListsAreBounded(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c := keeping(t, folder, "https://conda.example.org/own")
	place := func(name string, size int64, age time.Duration) {
		path, when := filepath.Join(folder, name), time.Now().Add(-age)
		f, err := os.Create(path)
		if err == nil {
			err = f.Truncate(size) // takes nothing of the disk
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil || os.Chtimes(path, when, when) != nil {
			t.Fatal(name, err)
		}
	}
	place("newest.list", 3<<30, time.Minute)
	place("older.list", 2<<30, 2*time.Minute)
	place("new-written", 1, time.Minute)
	place("new-left", 1, 2*time.Hour)
	if err := c.Clean(); err != nil {
		t.Fatal(err)
	}
	if left := names(t, folder); left != "new-written newest.list" {
		t.Errorf("%s are left", left)
	}
	for i := range 500 {
		place(strconv.Itoa(i)+".json", 1, time.Hour)
	}
	if err := c.Clean(); err != nil || len(strings.Fields(names(t, folder))) > 210 {
		t.Errorf("%s are left, %v", names(t, folder), err)
	}
}

func names(t *testing.T, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, entry := range entries {
		list = append(list, entry.Name())
	}
	return strings.Join(list, " ")
}
