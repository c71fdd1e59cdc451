package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/millrace/millrace/internal/engine/executor/images"
)

// imageSettings say which container images tasks may use.
type imageSettings struct {
	ImageRegistries []string `help:"Registries that images may come from; default: all public ones." group:"tasks"`
	ImageAuthFile   string   `help:"Credentials for private registries, as docker login writes them. Default: where docker and podman keep theirs." group:"tasks"`
	ImageCache      string   `default:"50GB" help:"Disk space for unpacked images; the ones not used for longest make room." group:"tasks"`
}

// openImages opens the cache of images in a folder.
func (s *settings) openImages(folder string, inUse func() ([]string, error), log *slog.Logger) (*images.Store, error) {
	most, err := parseSize(s.ImageCache)
	if err != nil {
		return nil, err
	}
	return images.Open(images.Config{
		Folder: folder, InUse: inUse, Log: log, Now: time.Now, Registries: s.ImageRegistries, AuthFile: s.ImageAuthFile, AllowPrivate: s.FetchAllowPrivate, MaxTotal: most,
	})
}

// checkImages reports why tasks could not use images.
func (s *settings) checkImages(ctx context.Context) error {
	if s.Sandbox == "none" {
		return errors.New("--sandbox none: nodes with an `image` are refused")
	}
	var err error
	if s.ImageAuthFile != "" {
		_, err = os.ReadFile(s.ImageAuthFile)
	}
	return errors.Join(err, images.Reach(ctx, s.ImageRegistries, s.FetchAllowPrivate))
}
