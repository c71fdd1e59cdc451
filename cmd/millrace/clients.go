package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/millrace/millrace/clients"
)

// clients is what people install from this server. A folder that is missing is a
// mistake in the settings; files in it that cannot be offered are only left out.
func (s *settings) clients(ctx context.Context, log *slog.Logger) (*clients.Catalog, error) {
	if s.ClientsFolder != "" {
		if _, err := os.ReadDir(s.ClientsFolder); err != nil {
			return nil, fmt.Errorf("--clients-folder: %w", err)
		}
	}
	c := clients.New(s.ClientsFolder)
	if err := c.Check(); err != nil {
		log.WarnContext(ctx, "some files of the clients folder are not offered", "error", err)
	}
	return c, nil
}
