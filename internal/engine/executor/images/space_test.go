package images_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/engine/executor/images"
	"github.com/millrace/millrace/internal/waittest"
)

// disk is one that fills and empties as a test wants. It counts who asks.
type disk struct {
	low, nearlyNone atomic.Bool
	asked           atomic.Int64
}

func (d *disk) Low() bool        { d.asked.Add(1); return d.low.Load() || d.nearlyNone.Load() }
func (d *disk) NearlyNone() bool { return d.nearlyNone.Load() }

// root pulls an image.
func root(t *testing.T, s store, ref string) error {
	t.Helper()
	digest, err := s.Resolve(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	_, _, release, err := s.Root(t.Context(), ref, digest)
	if err == nil {
		release()
	}
	return err
}

func TestPullWaitsForSpaceOnTheDisk(t *testing.T) {
	t.Parallel()
	d := &disk{}
	d.low.Store(true)
	h, s := newHub(t), open(t, images.Config{AllowPrivate: true, Disk: d})
	ref := h.push(t, "lab/tool:1", image(t, nil, layer(t, file{name: "v", text: "1"})))
	done := make(chan error, 1)
	go func() { done <- root(t, s, ref) }()
	if !waittest.Until(func() bool { return d.asked.Load() > 2 }) {
		t.Error("the pull does not wait")
	}
	if n := h.asked("/blobs/"); n > 0 {
		t.Errorf("%d layers are fetched", n)
	}
	d.low.Store(false)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestPullGivesWayWhenTheDiskIsNearlyFull(t *testing.T) {
	t.Parallel()
	d := &disk{}
	h, s := newHub(t), open(t, images.Config{AllowPrivate: true, Disk: d})
	ref := h.push(t, "lab/tool:1", image(t, nil, layer(t, file{name: "v", text: "1"})))
	h.stepIn(func(_ http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		d.nearlyNone.Store(true)
		<-r.Context().Done()
		return true
	})
	if err := root(t, s, ref); err == nil || fault.KindOf(err) != fault.KindInternal || !strings.Contains(err.Error(), "disk is nearly full") {
		t.Fatalf("it ends with %v, which is not ours", err)
	}
	if left := hidden(t, s); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	h.stepIn(nil)
	d.nearlyNone.Store(false)
	if err := root(t, s, ref); err != nil {
		t.Error("once there is space again: ", err)
	}
}

// An image that does not fit on the disk is not at fault: the error says that the
// disk is full.
func TestPullThatFillsTheDiskIsNotTheImagesFailure(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	mount := func(flags uintptr, size string) error { return syscall.Mount("tmpfs", folder, "tmpfs", flags, size) }
	if err := mount(0, "size=2m"); err != nil {
		t.Skip("no file system can be mounted here: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
	random := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for range 1 << 18 {
		fmt.Fprintf(&text, "%016x", random.Uint64())
	}
	h, s := newHub(t), open(t, images.Config{AllowPrivate: true, Folder: filepath.Join(folder, "images")})
	ref := h.push(t, "lab/tool:1", image(t, nil, layer(t, file{name: "v", text: text.String()})))
	err := root(t, s, ref)
	if known, ok := err.(*fault.Error); !ok || known.Code != "disk_full" {
		t.Errorf("it ends with %v", err)
	}
	if err := mount(syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	if err := root(t, s, ref); err != nil {
		t.Error("once there is space: ", err)
	}
}
