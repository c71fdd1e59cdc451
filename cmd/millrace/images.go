package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/internal/engine/executor/images"
)

// imageSettings say which container images tasks may use.
type imageSettings struct {
	ImageRegistries []string `help:"Registries that images may come from; default: all public ones." group:"tasks"`
	ImageAuthFile   string   `help:"Credentials for private registries, as docker login writes them. Default: where docker and podman keep theirs." group:"tasks"`
	ImageCache      string   `default:"50GB" help:"Disk space for unpacked images; the ones not used for longest make room." group:"tasks"`
}

// openImages opens the cache of images in a folder, which is kept within the space of
// the server's disk where it lies there.
func (h *application) openImages(s *settings, folder string, inUse func() ([]string, error)) (*images.Store, error) {
	most, err := parseSize(s.ImageCache)
	if err != nil {
		return nil, err
	}
	c := images.Config{
		Folder: folder, InUse: inUse, Log: h.log, Now: time.Now, Registries: s.ImageRegistries, AuthFile: s.ImageAuthFile, AllowPrivate: s.FetchAllowPrivate, MaxTotal: most,
		Loaded: s.loaded(),
	}
	if sameFileSystem(s.Data, filepath.Dir(folder)) {
		c.Disk = h.disk
	}
	return images.Open(c)
}

// checkImages reports why tasks could not use images.
func (s *settings) checkImages(ctx context.Context) error {
	if s.Sandbox == "none" {
		return errors.New("--sandbox none: steps with an `image` are refused")
	}
	var err error
	if s.ImageAuthFile != "" {
		_, err = os.ReadFile(s.ImageAuthFile)
	}
	return errors.Join(err, images.Reach(ctx, s.ImageRegistries, s.FetchAllowPrivate))
}
