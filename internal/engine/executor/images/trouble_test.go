package images_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor/images"
)

func TestARefusalSaysWhatToDo(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	ref := h.push(t, "lab/tool:1", image(t, nil, layer(t, file{name: "v", text: "1"})))
	const nobody = "127.0.0.1:1"
	for label, tt := range map[string]struct {
		config images.Config
		ref    string
		want   []string
	}{
		"no such tag":          {images.Config{AllowPrivate: true}, h.host + "/lab/tool:2", []string{h.host, "404", "check the name and the tag"}},
		"no such image":        {images.Config{AllowPrivate: true}, h.host + "/lab/other", []string{"404", "check the name"}},
		"nobody there":         {images.Config{AllowPrivate: true}, nobody + "/lab/tool", []string{"no registry is reachable at " + nobody, "refused", "sha256"}},
		"no such host":         {images.Config{AllowPrivate: true}, "registry.invalid/lab/tool", []string{"no registry is reachable at registry.invalid", "looking up"}},
		"a private network":    {images.Config{}, ref, []string{"private network", "--fetch-allow-private"}},
		"not an allowed one":   {images.Config{AllowPrivate: true, Registries: []string{"quay.io", "ghcr.io"}}, ref, []string{"quay.io, ghcr.io", "--image-registries"}},
		"docker, by its name":  {images.Config{AllowPrivate: true, Registries: []string{"quay.io"}}, "debian", []string{"images from docker.io are not allowed"}},
		"an auth file is lost": {images.Config{AllowPrivate: true, AuthFile: "/nowhere"}, ref, []string{"--image-auth-file"}},
	} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			_, err := open(t, tt.config).Resolve(t.Context(), tt.ref)
			if !fault.Is(err, fault.KindUnavailable) {
				t.Fatal(err)
			}
			for _, word := range tt.want {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("it says %q, without %q", err, word)
				}
			}
		})
	}
}

func TestAnAllowedRegistryIsUsed(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	s := open(t, images.Config{AllowPrivate: true, Registries: []string{"quay.io", strings.ToUpper(h.host)}})
	get(t, s, h.push(t, "lab/tool:1", image(t, nil, layer(t, file{name: "v", text: "1"}))))
}

func TestPrivateRegistriesOpenToTheAuthFile(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	ref := h.push(t, "lab/tool:1", image(t, nil, layer(t, file{name: "v", text: "1"})))
	h.stepIn(func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, _ := r.BasicAuth(); user == "ada" && password == "wonder" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="lab"`)
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"errors":[{"code":"UNAUTHORIZED","message":"sign in"}]}`)
		return true
	})
	auth := filepath.Join(t.TempDir(), "auth.json")
	text := fmt.Sprintf(`{"auths":{%q:{"auth":"YWRhOndvbmRlcg=="}}}`, h.host)
	if err := os.WriteFile(auth, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	get(t, open(t, images.Config{AllowPrivate: true, AuthFile: auth}), ref)
	if err := os.WriteFile(auth, []byte(`{"auths":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := refuse(t, open(t, images.Config{AllowPrivate: true, AuthFile: auth}), ref); !strings.Contains(got, "401") || !strings.Contains(got, "sign in") {
		t.Errorf("it says %q", got)
	}
}

func TestWhatFailsForAMomentIsTriedAgain(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), open(t, images.Config{AllowPrivate: true})
	i := image(t, nil, layer(t, file{name: "v", text: "1"}))
	m, err := i.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	ref := h.push(t, "lab/tool:1", i)
	var mu sync.Mutex
	failed := map[string]int{}
	h.stepIn(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if failed[r.URL.Path]++; failed[r.URL.Path] > 2 {
			return false
		}
		if strings.Contains(r.URL.Path, m.Layers[0].Digest.Hex) { // breaks off in the middle
			w.Header().Set("Content-Length", fmt.Sprint(m.Layers[0].Size))
			fmt.Fprint(w, "abc")
			return true
		}
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return true
	})
	root, _ := get(t, s, ref)
	if got := read(t, root, "v"); got != "1" {
		t.Errorf("it is %q", got)
	}
}

func TestWhoStopsWaitingDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), open(t, images.Config{AllowPrivate: true})
	ref := h.push(t, "lab/tool:1", image(t, nil, layer(t, file{name: "v", text: "1"})))
	digest, err := s.Resolve(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	reached, gate := make(chan struct{}, 9), make(chan struct{})
	h.stepIn(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/blobs/") {
			reached <- struct{}{}
			select {
			case <-gate:
			case <-r.Context().Done():
			}
		}
		return false
	})
	first, leave := context.WithCancel(t.Context())
	ends := make(chan error, 2)
	wait := func(ctx context.Context) {
		_, _, release, err := s.Root(ctx, ref, digest)
		if err == nil {
			release()
		}
		ends <- err
	}
	go wait(first)
	<-reached
	go wait(t.Context())
	leave()
	if err := <-ends; err == nil {
		t.Error("the first has not left")
	}
	close(gate)
	if err := <-ends; err != nil {
		t.Errorf("the second: %v", err)
	}
}

func TestTheOldestImagesMakeRoom(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	var inUse []string
	clock := time.Now()
	s := open(t, images.Config{AllowPrivate: true, MaxTotal: 5 << 20, InUse: func() ([]string, error) { return inUse, nil }})
	s.Now = func() time.Time { clock = clock.Add(time.Minute); return clock }
	pull := func(n int) (root string, release func()) {
		ref := h.push(t, fmt.Sprintf("lab/tool:%d", n), image(t, nil, layer(t, file{name: "v", text: strings.Repeat(fmt.Sprint(n), 1<<20)})))
		digest, err := s.Resolve(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		root, _, release, err = s.Root(t.Context(), ref, digest)
		if err != nil {
			t.Fatal(err)
		}
		return root, release
	}
	there := func(root string) bool { _, err := os.Stat(root); return err == nil }

	held, hold := pull(0) // by this process
	defer hold()
	task, release := pull(1) // by a task that an earlier server started
	inUse = append(inUse, task)
	release()
	fresh, release := pull(2)
	release()
	stale, release := pull(3)
	release()
	_, release = pull(2) // used again
	release()
	_, release = pull(4)
	release()
	if !there(held) || !there(task) || !there(fresh) {
		t.Errorf("gone: held %v, of a task %v, used lately %v", !there(held), !there(task), !there(fresh))
	}
	if there(stale) {
		t.Error("the one that was not used for longest is still there")
	}
	inUse = nil
	_, release = pull(5)
	release()
	if there(task) || !there(held) {
		t.Error("the task's has not made room when it was done")
	}
}

// killedFolder and killedRef tell the test program to pull until it is killed.
const (
	killedFolder = "MILLRACE_TEST_IMAGES_FOLDER"
	killedRef    = "MILLRACE_TEST_IMAGES_REF"
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(killedFolder); folder != "" {
		s, err := images.Open(images.Config{Folder: folder, AllowPrivate: true})
		if err == nil {
			var digest string
			team := s.For("team_1")
			if digest, err = team.Resolve(context.Background(), os.Getenv(killedRef)); err == nil {
				_, _, _, err = team.Root(context.Background(), os.Getenv(killedRef), digest)
			}
		}
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestAPullThatIsKilledLeavesNoHalfImage(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	folder := filepath.Join(t.TempDir(), "images")
	top := layer(t, file{name: "top", text: "top"})
	ref := h.push(t, "lab/tool:1", image(t, nil, layer(t, many(50, "base/%d")...), top))
	digest, err := top.Digest()
	if err != nil {
		t.Fatal(err)
	}
	reached := make(chan struct{}, 1)
	h.stepIn(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, digest.Hex) {
			reached <- struct{}{}
			<-r.Context().Done()
		}
		return false
	})
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), killedFolder+"="+folder, killedRef+"="+ref)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-reached:
	case <-time.After(time.Minute):
		line, _ := bufio.NewReader(out).ReadString('\n')
		t.Fatalf("it never came to its second layer: %s", line)
	}
	s := open(t, images.Config{Folder: folder, AllowPrivate: true})
	if err := s.Clean(); err != nil || len(hidden(t, s)) != 1 {
		t.Errorf("while it is at work: %v, %v", err, hidden(t, s))
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	if whole, _ := os.ReadDir(filepath.Join(folder, "sha256")); len(whole) != 1 || !strings.HasPrefix(whole[0].Name(), ".") {
		t.Errorf("it left %v", whole)
	}
	if err := s.Clean(); err != nil || len(hidden(t, s)) != 0 {
		t.Errorf("after it was killed: %v, %v", err, hidden(t, s))
	}
	h.stepIn(nil)
	root, _ := get(t, s, ref)
	if got := read(t, root, "base/49") + read(t, root, "top"); got != "xtop" {
		t.Errorf("the next pull gives %q", got)
	}
}
