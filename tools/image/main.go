// Command image writes a container image as an OCI layout, without a daemon: one
// program for each platform, what it is made of (SPDX) and how it was built (SLSA).
// The same programs make the same image.
//
//	go run ./tools/image -recipe millrace -out bin/images/millrace linux/amd64=bin/millrace
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// order is what to build.
type order struct {
	Recipe   string // a key of recipes
	Version  string
	Commit   string // of the source
	Time     time.Time
	Lock     string // package-lock.json of the web app
	UV       string // the program that builds environments, without -OS-ARCHITECTURE; empty: the image has none
	Programs []program
}

type program struct {
	platform v1.Platform
	path     string
}

// uv is the program that builds environments on a platform.
func (o order) uv(p v1.Platform) string { return o.UV + "-" + p.OS + "-" + p.Architecture }

func main() {
	var o order
	var out string
	var seconds int64
	flag.StringVar(&o.Recipe, "recipe", "millrace", "millrace or millrace-attempt")
	flag.StringVar(&o.Version, "version", "dev", "version of the programs")
	flag.StringVar(&o.Commit, "commit", "", "commit of the source")
	flag.StringVar(&o.Lock, "lock", "", "package-lock.json of the web app inside")
	flag.StringVar(&o.UV, "uv", "", "uv for the platforms, without -OS-ARCHITECTURE")
	flag.StringVar(&out, "out", "", "folder to write")
	flag.Int64Var(&seconds, "time", 0, "time of everything in the image, in seconds since 1970")
	flag.Parse()
	o.Time = time.Unix(seconds, 0).UTC()
	digest, err := run(o, out, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
	fmt.Println(out, digest)
}

func run(o order, out string, args []string) (v1.Hash, error) {
	if out == "" || len(args) == 0 {
		return v1.Hash{}, errors.New("say -out FOLDER and, for each platform, linux/amd64=PROGRAM")
	}
	if err := mayReplace(out); err != nil {
		return v1.Hash{}, err
	}
	for _, arg := range args {
		name, path, found := strings.Cut(arg, "=")
		p, err := v1.ParsePlatform(name)
		if !found || err != nil || p.OS == "" || p.Architecture == "" {
			return v1.Hash{}, fmt.Errorf("%q is not a platform and its program, such as linux/amd64=bin/millrace", arg)
		}
		o.Programs = append(o.Programs, program{*p, path})
	}
	index, err := build(o)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := write(out, index, o); err != nil {
		return v1.Hash{}, err
	}
	return index.Digest()
}

// build makes the index: an image for each platform, and after each what is
// attested of it, where BuildKit puts it, so that whoever copies the index copies
// that as well.
func build(o order) (v1.ImageIndex, error) {
	r, known := recipes[o.Recipe]
	if !known {
		return nil, fmt.Errorf("there is no recipe %q", o.Recipe)
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range o.Programs {
		image, err := r.image(o, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.path, err)
		}
		digest, err := image.Digest()
		if err != nil {
			return nil, err
		}
		attested, err := attest(o, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.path, err)
		}
		index = mutate.AppendManifests(index,
			mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &p.platform}},
			mutate.IndexAddendum{Add: attested, Descriptor: v1.Descriptor{
				Platform:    &v1.Platform{OS: "unknown", Architecture: "unknown"},
				Annotations: map[string]string{"vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": digest.String()},
			}})
	}
	return mutate.Annotations(index, labels(o)).(v1.ImageIndex), nil
}

func labels(o order) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    o.Recipe,
		"org.opencontainers.image.version":  o.Version,
		"org.opencontainers.image.revision": cmp.Or(o.Commit, "unknown"),
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
}

// mayReplace refuses a folder that holds anything but an OCI layout.
func mayReplace(out string) error {
	there, err := os.ReadDir(out)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(there) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range there {
		if !slices.Contains([]string{"blobs", "index.json", "oci-layout"}, e.Name()) {
			return fmt.Errorf("%s is no image of ours, it has %s: it stays as it is", out, e.Name())
		}
	}
	return nil
}

// write puts the layout in its place at once, so that nobody sees half of it.
func write(out string, index v1.ImageIndex, o order) error {
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(out), ".image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	to, err := layout.Write(temporary, empty.Index)
	if err != nil {
		return err
	}
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": o.Recipe + ":" + o.Version})
	if err := to.AppendIndex(index, named); err != nil {
		return err
	}
	if err := os.Chmod(temporary, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	return os.Rename(temporary, out)
}
