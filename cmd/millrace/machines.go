package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/store"
)

// host is this machine and the folder that our tasks run in: what tells the
// processes of an installation apart.
func (s *settings) host() (string, error) {
	folder, err := filepath.Abs(filepath.Join(s.Data, "attempts"))
	if err != nil {
		return "", err
	}
	name, err := os.Hostname()
	return name + ":" + folder, err
}

// apart are the processes on the same database that keep files where this one
// cannot read them: without S3 each has a folder of its own. Those of other
// machines are told apart from those of this one.
func (s *settings) apart(ctx context.Context, db *store.DB) (machines, folders []string, err error) {
	if s.Embedded() || s.StorageURL != "" {
		return nil, nil, nil
	}
	here, err := s.host()
	if err != nil {
		return nil, nil, err
	}
	hosts, err := db.WorkerHosts(ctx, db.Now())
	machine, _, _ := strings.Cut(here, ":")
	for _, host := range hosts {
		host, _, _ = strings.Cut(host, hostOf)
		switch other, _, _ := strings.Cut(host, ":"); {
		case host == here:
		case other == machine:
			folders = append(folders, host)
		default:
			machines = append(machines, host)
		}
	}
	return machines, folders, err
}

const needsS3 = "servers and workers on several machines need --storage-url s3://… on each of them, or they cannot read each other's files"

// checkMachines refuses to be the second machine of an installation without
// S3. A second folder on the same machine, as somebody has who tries things
// out, is worth a warning.
func (s *settings) checkMachines(ctx context.Context, db *store.DB, log *slog.Logger) error {
	machines, folders, err := s.apart(ctx, db)
	if err != nil {
		return err
	}
	if len(machines) > 0 {
		return fmt.Errorf("%s works on this database, too, or did until a minute ago: %s", strings.Join(machines, ", "), needsS3)
	}
	if len(folders) > 0 {
		log.WarnContext(ctx, "another server on this machine has a data folder of its own, so that they cannot read each other's files: give both the same --storage-url",
			slog.String("other", strings.Join(folders, ", ")))
	}
	return nil
}

// checkShared is the same for the doctor, to whom a folder is a machine.
func (s *settings) checkShared(ctx context.Context) error {
	if s.Embedded() || s.StorageURL != "" {
		return nil
	}
	db, err := s.OpenBeside(ctx, credits.DefaultCatalog())
	if err != nil {
		return nil // the check of the database says why
	}
	defer db.Close()
	machines, folders, err := s.apart(ctx, db)
	if others := append(machines, folders...); err == nil && len(others) > 0 {
		err = fmt.Errorf("%s works on this database, too, or did until a minute ago: %s", strings.Join(others, ", "), needsS3)
	}
	return err
}
