package runimages

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/panics"
)

// registry is a store of images, each of which takes as long as it says.
type registry struct {
	takes   time.Duration
	resolve error
	fetch   error
	env     []string

	mu       sync.Mutex
	resolved []string
	fetched  []string
	released []string
}

func (r *registry) wait(ctx context.Context) error {
	select {
	case <-time.After(r.takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *registry) Resolve(ctx context.Context, ref string) (string, error) {
	r.mu.Lock()
	r.resolved = append(r.resolved, ref)
	r.mu.Unlock()
	return "digest of " + ref, errors.Join(r.wait(ctx), r.resolve)
}

func (r *registry) Root(ctx context.Context, ref, digest string) (string, []string, func(), error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fetched = append(r.fetched, ref+" as "+digest)
	r.mu.Unlock()
	err := errors.Join(r.wait(ctx), r.fetch)
	r.mu.Lock()
	if err != nil {
		return "", nil, nil, err
	}
	return "/roots/" + ref, r.env, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.released = append(r.released, ref)
	}, nil
}

// until waits for changes until something holds.
func until(all *Images, holds func() bool) {
	for !holds() {
		<-all.Changed()
	}
}

// However many steps name an image, it is looked up once, and is the same for all.
func TestAnImageIsResolvedAndFetchedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &registry{takes: time.Second}
		all := Open(t.Context(), r)
		if all.Image("a") != nil || !all.Fetched("a") {
			t.Error("an image that nobody has named")
		}
		for _, ref := range []string{"a", "a", "b"} {
			if all.Resolved(ref) {
				t.Error("it is known at once what it is")
			}
		}
		until(all, func() bool { return all.Resolved("a") && all.Resolved("b") })
		for range 2 {
			if all.Fetched("a") {
				t.Error("it is here at once")
			}
		}
		until(all, func() bool { return all.Fetched("a") })
		if i := all.Image("a"); i.Err() != nil || i.Digest != "digest of a" {
			t.Errorf("%+v", i)
		}
		all.Close()
		if len(r.resolved) != 2 || !cmp.Equal(r.fetched, []string{"a as digest of a"}) || !cmp.Equal(r.released, []string{"a"}) {
			t.Errorf("resolved %q, fetched %q, released %q", r.resolved, r.fetched, r.released)
		}
	})
}

// What cannot be had says why, once, and is not asked for again.
func TestWhyAnImageCannotBeUsed(t *testing.T) {
	t.Parallel()
	broken := errors.New("no such manifest")
	for name, tt := range map[string]struct {
		registry *registry
		fetches  int
		is       error
		words    string
	}{
		"nobody knows it":     {&registry{resolve: broken}, 0, broken, "no such manifest"},
		"it cannot be read":   {&registry{fetch: broken}, 1, broken, "no such manifest"},
		"resolving takes for": {&registry{takes: time.Hour}, 0, nil, "was not there within 30 minutes"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := tt.registry
			all := Open(t.Context(), r)
			defer all.Close()
			for range 2 {
				until(all, func() bool { return all.Resolved("a") })
				until(all, func() bool { return all.Fetched("a") })
			}
			err := all.Image("a").Err()
			if err == nil || !strings.Contains(err.Error(), tt.words) || tt.is != nil && !errors.Is(err, tt.is) || tt.is == nil && !fault.Is(err, fault.KindUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
			if len(r.resolved) != 1 || len(r.fetched) != tt.fetches {
				t.Errorf("%s: resolved %q, fetched %q", name, r.resolved, r.fetched)
			}
		})
	}
}

// Preparing looks all up, then fetches those that are needed, until nobody waits.
func TestImagesArePrepared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &registry{takes: time.Minute}
		all := Open(t.Context(), r)
		all.Prepare(t.Context(), []string{"a", "b"}, func(refs []string) []string {
			if !cmp.Equal(refs, []string{"a", "b"}) || all.Image("a").Digest == "" || all.Image("b").Digest == "" {
				t.Errorf("asked for %q before it is known what they are", refs)
			}
			return []string{"b"}
		})
		if !cmp.Equal(r.fetched, []string{"b as digest of b"}) || all.Image("b").root != "/roots/b" {
			t.Errorf("%q", r.fetched)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		all.Prepare(ctx, []string{"c"}, func([]string) []string {
			t.Error("it went on after its time")
			return nil
		})
		all.Close() // and ends what is still being looked up
		if !errors.Is(all.Image("c").ResolveErr, context.Canceled) || !cmp.Equal(r.released, []string{"b"}) {
			t.Errorf("%v, %q", all.Image("c").ResolveErr, r.released)
		}
	})
}

// Images and environments come from stores of their own.
func TestWhereSoftwareComesFrom(t *testing.T) {
	t.Parallel()
	images, environments := &registry{}, &registry{}
	for1 := func(s Store) func(ids.Team) Store {
		return func(team ids.Team) Store {
			if team != "team_1" {
				t.Errorf("the software of %s", team)
			}
			return s
		}
	}
	of := For(for1(images), for1(environments))("team_1")
	packed := &graph.Node{Image: "ubuntu:24.04"}
	for _, ref := range []string{RefOf(packed), EnvironmentRef("pip: [numpy]")} {
		if _, err := of.Resolve(t.Context(), ref); err != nil {
			t.Error(err)
		}
		if _, _, _, err := of.Root(t.Context(), ref, "d"); err != nil {
			t.Error(err)
		}
	}
	if !cmp.Equal(images.resolved, []string{"ubuntu:24.04"}) || !cmp.Equal(environments.resolved, []string{"pip: [numpy]"}) ||
		!cmp.Equal(images.fetched, []string{"ubuntu:24.04 as d"}) || !cmp.Equal(environments.fetched, []string{"pip: [numpy] as d"}) {
		t.Errorf("%q, %q, %q, %q", images.resolved, environments.resolved, images.fetched, environments.fetched)
	}
	if RefOf(&graph.Node{}) != "" {
		t.Error("a node without either")
	}
	none := For(nil, nil)("team_1")
	for _, ref := range []string{"ubuntu:24.04", EnvironmentRef("x")} {
		_, err := none.Resolve(t.Context(), ref)
		_, _, _, err2 := none.Root(t.Context(), ref, "d")
		if !fault.Is(err, fault.KindUnavailable) || !fault.Is(err2, fault.KindUnavailable) {
			t.Errorf("%s: %v, %v", ref, err, err2)
		}
	}
}

func TestWhatAServerCannotUse(t *testing.T) {
	t.Parallel()
	able := executor.Capabilities{Images: true}
	unable := executor.Capabilities{NoImages: "install podman", NoEnvironments: "install uv"}
	for name, tt := range map[string]struct {
		caps                 executor.Capabilities
		images, environments bool
		ref, words           string
	}{
		"an image":                         {able, true, false, "ubuntu", ""},
		"an environment":                   {able, false, true, EnvironmentRef("x"), ""},
		"no store of images":               {able, false, true, "ubuntu", "runs no container images"},
		"nobody who builds environments":   {able, true, false, EnvironmentRef("x"), "builds no environments (--environments off)"},
		"a driver without images":          {unable, true, true, "ubuntu", "install podman"},
		"a driver without environments":    {unable, true, true, EnvironmentRef("x"), "install uv"},
		"an environment needs no image":    {executor.Capabilities{NoImages: "install podman"}, true, true, EnvironmentRef("x"), ""},
		"an image is no environment":       {executor.Capabilities{Images: true, NoEnvironments: "install uv"}, true, true, "ubuntu", ""},
		"an image whose name begins so":    {able, true, false, "environment/x", ""},
		"an image that is called like one": {able, true, false, "environment", ""},
	} {
		err := Unavailable(tt.caps, tt.images, tt.environments, tt.ref)
		if (err == nil) != (tt.words == "") || err != nil && (!fault.Is(err, fault.KindUnavailable) || !strings.Contains(err.Error(), tt.words)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The platform and the author win over an image; the programs of an environment are
// found before all others.
func TestWhatSoftwareMakesOfATask(t *testing.T) {
	t.Parallel()
	image := &Image{Digest: "sha256:1", root: "/roots/1", env: []string{"PATH=/opt/bin", "HOME=/root", "TMPDIR=/x", "USER=root", "LANG=C", "OPTS=a=b", "EMPTY=", "ODD"}}
	python := &Image{Digest: "sha256:2", root: "/environments/2", environment: true}
	conda := &Image{Digest: "sha256:3", root: "/environments/3", environment: true, env: []string{"CONDA_PREFIX=/environment"}}
	places := executor.Places{Environment: "/environment"}
	const system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for name, tt := range map[string]struct {
		software *Image
		set      map[string]string
		want     map[string]string
		spec     executor.Spec
		parts    map[string]string
	}{
		"none":                  {nil, map[string]string{"A": "1"}, map[string]string{"A": "1"}, executor.Spec{}, map[string]string{"root": "debian"}},
		"an image":              {image, map[string]string{}, map[string]string{"PATH": "/opt/bin", "LANG": "C", "OPTS": "a=b", "EMPTY": "", "ODD": ""}, executor.Spec{Root: "/roots/1"}, map[string]string{"root": "sha256:1"}},
		"the author wins":       {image, map[string]string{"PATH": "/mine", "LANG": ""}, map[string]string{"PATH": "/mine", "LANG": "", "OPTS": "a=b", "EMPTY": "", "ODD": ""}, executor.Spec{Root: "/roots/1"}, map[string]string{"root": "sha256:1"}},
		"an environment":        {python, map[string]string{}, map[string]string{"PATH": "/environment/bin:" + system, "VIRTUAL_ENV": "/environment"}, executor.Spec{Environment: "/environments/2"}, map[string]string{"root": "debian", "environment": "sha256:2"}},
		"with the author's own": {python, map[string]string{"PATH": "/mine"}, map[string]string{"PATH": "/environment/bin:/mine", "VIRTUAL_ENV": "/environment"}, executor.Spec{Environment: "/environments/2"}, map[string]string{"root": "debian", "environment": "sha256:2"}},
		"one of conda packages": {conda, map[string]string{}, map[string]string{"PATH": "/environment/bin:" + system, "CONDA_PREFIX": "/environment"}, executor.Spec{Environment: "/environments/3"}, map[string]string{"root": "debian", "environment": "sha256:3"}},
	} {
		var spec executor.Spec
		parts := map[string]string{}
		tt.software.SetVariables(tt.set, places)
		tt.software.Place(&spec)
		tt.software.Name(parts, "debian")
		if diff := cmp.Diff(tt.want, tt.set) + cmp.Diff(tt.spec, spec) + cmp.Diff(tt.parts, parts); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// panicky is a registry that is out of order.
type panicky struct {
	registry
	root bool // only when the files are asked for
}

func (p *panicky) Resolve(ctx context.Context, ref string) (string, error) {
	if !p.root {
		panic("out of order")
	}
	return p.registry.Resolve(ctx, ref)
}

func (p *panicky) Root(context.Context, string, string) (string, []string, func(), error) {
	panic("out of order")
}

func TestPanicIsWhyAnImageCannotBeUsed(t *testing.T) {
	t.Parallel()
	for _, root := range []bool{false, true} {
		all := Open(t.Context(), &panicky{root: root})
		until(all, func() bool { return all.Resolved("a") })
		until(all, func() bool { return all.Fetched("a") })
		if err := all.Image("a").Err(); !panics.Is(err) {
			t.Errorf("%v", err)
		}
		all.Close()
	}
}
