package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/millrace/millrace/internal/engine"
	"github.com/millrace/millrace/internal/engine/diskguard"
	"github.com/millrace/millrace/internal/engine/executor/local"
	"github.com/millrace/millrace/internal/freedisk"
	"github.com/millrace/millrace/internal/store"
)

// attemptsFolder is where local tasks have theirs, in the data folder. It may be
// a file system of its own.
const attemptsFolder = "attempts"

// newWatch watches the file system of a folder.
func (s *settings) newWatch(folder string, log *slog.Logger) (*freedisk.Watch, error) {
	if s.MinFreeDisk == "" {
		return freedisk.New(folder, 0, log), nil
	}
	least, err := parseSize(s.MinFreeDisk)
	return freedisk.New(folder, least, log), err
}

// watchDisk has the server stop taking things on before its disk is full.
func (h *application) watchDisk(s *settings) (err error) {
	h.disk, err = s.newWatch(s.Data, h.log)
	if s.StorageURL == "" {
		h.files.RefuseWhile(h.disk.Check)
	}
	return err
}

// guardDisk has tasks halted and ended that fill the disk that they write to,
// and returns on which disks they need space to start.
func (h *application) guardDisk(s *settings, w workplace) (disk engine.FreeDisk, err error) {
	watch := h.disk
	disk = watch
	if !sameFileSystem(s.Data, w.folder) {
		if h.taskDisk, err = s.newWatch(w.folder, h.log); err != nil {
			return nil, err
		}
		watch = h.taskDisk
		disk = disks{h.disk, watch}
	}
	guard := diskguard.New(watch, w.driver, h.log)
	watch.RelieveBy(guard.Relieve, guard.RelieveLow)
	return disk, nil
}

// disks are several, of which none may be low.
type disks []*freedisk.Watch

func (d disks) Low() bool { return slices.ContainsFunc(d, (*freedisk.Watch).Low) }

// sameFileSystem reports whether two folders are on one file system.
func sameFileSystem(a, b string) bool {
	of, err := os.Stat(a)
	other, errOther := os.Stat(b)
	if err != nil || errOther != nil {
		return true
	}
	return of.Sys().(*syscall.Stat_t).Dev == other.Sys().(*syscall.Stat_t).Dev
}

// startBytes and startFiles are what a server needs to open its database. Where there is less,
// there is nearly none for a freedisk.Watch, whatever the settings.
const (
	startBytes = 8 << 20
	startFiles = 16
)

// canStart reports whether a file system has what a server needs to open its database.
func canStart(s freedisk.Space) bool {
	return s.Free >= startBytes && (s.Files == 0 || s.FreeFiles >= startFiles) // some file systems count no files
}

// makeRoom lets a server start on a full disk, before it opens the database:
// tasks that an earlier server left on that disk are halted, the reserve is
// released, and the largest of the tasks are ended if they are what fills it.
// Where that is not enough it waits for an operator. On a file system of their own
// tasks take nothing from the database, so they are left alone.
func (s *settings) makeRoom(ctx context.Context, log *slog.Logger) error {
	disk, err := s.newWatch(s.Data, log)
	if err != nil {
		return err
	}
	makeRoom := func(context.Context) {
		if space, _ := disk.Measure(); !canStart(space) {
			disk.ReleaseReserve()
		}
	}
	if attempts := filepath.Join(s.Data, attemptsFolder); sameFileSystem(s.Data, attempts) {
		makeRoom = diskguard.New(disk, local.LeftBehind{Folder: attempts}, log).MakeRoom
	}
	return s.awaitRoom(ctx, disk, log, makeRoom)
}

// awaitRoom has room made until a server can open its database.
func (s *settings) awaitRoom(ctx context.Context, disk *freedisk.Watch, log *slog.Logger, makeRoom func(context.Context)) error {
	for told := false; ; told = true {
		makeRoom(ctx)
		space, _ := disk.Measure()
		if canStart(space) {
			return nil
		}
		if !told {
			log.ErrorContext(ctx, "the disk is full: the server starts when there is space. Delete what nobody needs, or make the file system larger",
				slog.String("folder", s.Data), slog.Int64("free_bytes", space.Free), slog.Int64("needed_bytes", startBytes),
				slog.Int64("free_files", space.FreeFiles), slog.Int64("needed_files", startFiles))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// checkDisk says what to do on a disk that has little space left.
func (s *settings) checkDisk() error {
	disk, err := s.newWatch(s.Data, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	bytes, files := disk.Missing(1)
	space, _ := disk.Measure()
	what := "nothing new starts"
	if !canStart(space) {
		what = "the server does not start"
	}
	switch {
	case bytes > 0:
		return fmt.Errorf("%d MB are free, and %s before there are %d MB more: delete what nobody needs, shorten the retention, or make the file system larger", space.Free>>20, what, bytes>>20+1)
	case files > 0:
		return fmt.Errorf("%d more files fit, and %s before there is room for %d more: delete what nobody needs, or use a file system with more inodes", space.FreeFiles, what, files)
	}
	return nil
}

// isUnavailable reports whether an error means that a part of the service does
// not answer, or that the disk is full.
func isUnavailable(err error) bool { return store.IsUnavailable(err) || isFull(err) }

// isFull reports whether an error means that the disk is full.
func isFull(err error) bool {
	return store.IsFull(err) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// explainFull says what to do about an error of a full disk.
func explainFull(err error, folder string) error {
	if isFull(err) {
		return fmt.Errorf("the disk of %s is full: delete what nobody needs, or make the file system larger (%w)", folder, err)
	}
	return err
}
