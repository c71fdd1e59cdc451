package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nobody is the user of the images, the one that tasks on Kubernetes have, too.
const nobody = 65532

// recipe says what is in an image beside its program.
type recipe struct {
	certificates bool
	files        []file
	config       v1.Config
}

type file struct {
	name string // a folder ends with a slash
	mode int64
	user int
	text string
}

// certificates is where Go, and most others, look for them.
const certificates = "/etc/ssl/certs/ca-certificates.crt"

var recipes = map[string]recipe{
	"millrace": {
		certificates: true,
		files: []file{
			{name: "etc/", mode: 0o755},
			{name: "etc/passwd", mode: 0o644, text: "root:x:0:0:root:/:/\nmillrace:x:65532:65532:Millrace:/var/lib/millrace:/\n"},
			{name: "etc/group", mode: 0o644, text: "root:x:0:\nmillrace:x:65532:\n"},
			{name: "etc/ssl/", mode: 0o755},
			{name: "etc/ssl/certs/", mode: 0o755},
			{name: "tmp/", mode: 0o1777},
			{name: "var/", mode: 0o755},
			{name: "var/lib/", mode: 0o755},
			{name: "var/lib/millrace/", mode: 0o700, user: nobody},
		},
		config: v1.Config{
			Entrypoint: []string{"/millrace"}, Cmd: []string{"serve"}, User: "65532:65532", WorkingDir: "/var/lib/millrace",
			ExposedPorts: map[string]struct{}{"8080/tcp": {}},
			Env:          []string{"MILLRACE_DATA=/var/lib/millrace", "MILLRACE_LISTEN=0.0.0.0:8080", "HOME=/var/lib/millrace", "PATH=/"},
			Volumes:      map[string]struct{}{"/var/lib/millrace": {}},
		},
	},
	"millrace-attempt": {config: v1.Config{Entrypoint: []string{"/millrace-attempt"}, User: "65532:65532"}},
}

func (r recipe) image(o order, p program) (v1.Image, error) {
	content, err := r.content(o, p)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: o.Time}, CreatedBy: "make image"}})
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Variant = p.platform.OS, p.platform.Architecture, p.platform.Variant
	file.Created = v1.Time{Time: o.Time}
	file.Config = *r.config.DeepCopy()
	file.Config.Labels = labels(o)
	return mutate.ConfigFile(image, file)
}

// content is the archive of the image's only layer.
func (r recipe) content(o order, p program) ([]byte, error) {
	text, err := os.ReadFile(p.path)
	if err != nil {
		return nil, err
	}
	files := append([]file{}, r.files...)
	if r.certificates {
		files = append(files, file{name: certificates[1:], mode: 0o644, text: authorities()})
	}
	files = append(files, file{name: o.Recipe, mode: 0o755, text: string(text)})
	if o.UV != "" {
		uv, err := os.ReadFile(o.uv(p.platform))
		license, licenseErr := os.ReadFile(o.uv(p.platform) + ".LICENSE")
		if err := errors.Join(err, licenseErr); err != nil {
			return nil, err
		}
		files = append(files, file{name: "uv", mode: 0o755, text: string(uv)}, file{name: "uv.LICENSE", mode: 0o644, text: string(license)})
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Uid: f.user, Gid: f.user, Size: int64(len(f.text)), ModTime: o.Time, Format: tar.FormatUSTAR, Typeflag: tar.TypeReg}
		if f.name[len(f.name)-1] == '/' {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(w, f.text); err != nil {
			return nil, err
		}
	}
	err = w.Close()
	return b.Bytes(), err
}
