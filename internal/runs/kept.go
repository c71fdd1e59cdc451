package runs

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// AttemptKey names one attempt of one shard of a node of a run.
type AttemptKey struct {
	Run     ids.Run
	Node    string
	Shard   int
	Attempt int
}

// KeptAttempt is what is kept of the working folder of an attempt that failed.
type KeptAttempt struct {
	AttemptKey
	Team      ids.Team
	Bytes     int64
	Files     int
	Truncated bool // the folder has more entries than are listed
	KeptAt    time.Time
	ExpiresAt time.Time
}

// FailedAttempt is one whose folder may be kept.
type FailedAttempt struct {
	Team       ids.Team
	Fence      string
	Definition []byte
}

// KeptKind is what an entry of a kept folder is.
type KeptKind string

// The kinds. Only files have bytes that are kept.
const (
	KeptFileKind   KeptKind = "file"
	KeptFolderKind KeptKind = "folder"
	KeptLinkKind   KeptKind = "link"
	KeptOtherKind  KeptKind = "other" // a pipe, a device, or closed to us
)

// KeptFile is an entry of a kept folder.
type KeptFile struct {
	Path   string
	Kind   KeptKind
	Size   int64
	Object string // empty: its bytes are not kept
}

// KeptStore reads what is kept of failed attempts.
type KeptStore interface {
	KeptAttempts(ctx context.Context, team ids.Team, id ids.Run) ([]KeptAttempt, error)
	KeptFiles(ctx context.Context, team ids.Team, k AttemptKey) ([]KeptFile, error)
	// FilesMade is how many files each node of a run made.
	FilesMade(ctx context.Context, id ids.Run) (map[string]int, error)
	// LastAttempt is the newest of a shard of a node: its number, its item and
	// the memory that it was given.
	LastAttempt(ctx context.Context, team ids.Team, id ids.Run, node string, shard int) (Attempt, error)
}

// ListedFile is an entry with where it is downloaded; URL is empty where its
// bytes are not kept.
type ListedFile struct {
	KeptFile
	URL       string
	ExpiresAt time.Time
}

// KeptAttempts are those of a run's attempts whose folders are kept.
func (s *Service) KeptAttempts(ctx context.Context, caller access.Caller, id ids.Run) ([]KeptAttempt, error) {
	if err := caller.Must(access.ReadFailedFolders); err != nil {
		return nil, err
	}
	if _, err := s.details.LeanRun(ctx, caller.Team, id); err != nil {
		return nil, err
	}
	return s.kept.KeptAttempts(ctx, caller.Team, id)
}

// KeptFiles are the entries of a failed attempt's folder. What a command left
// there is not trusted: it is handed out as bytes to download, nothing else.
func (s *Service) KeptFiles(ctx context.Context, caller access.Caller, k AttemptKey, base string) ([]ListedFile, error) {
	list, err := s.KeptAttempts(ctx, caller, k.Run)
	if err != nil {
		return nil, err
	}
	found := false
	for _, a := range list {
		found = found || a.AttemptKey == k
	}
	if !found {
		return nil, fault.NotFound("no folder of this attempt is kept: it did not fail, its folder has expired, or there was no disk space")
	}
	files, err := s.kept.KeptFiles(ctx, caller.Team, k)
	if err != nil {
		return nil, err
	}
	until := s.now().Add(downloadLife)
	out := make([]ListedFile, len(files))
	for i, f := range files {
		out[i] = ListedFile{KeptFile: f}
		if f.Object == "" {
			continue
		}
		o := Output{Key: f.Object, Blob: f.Object, Name: baseName(f.Path), ContentType: "application/octet-stream", Size: f.Size}
		if out[i].URL, err = s.objects.PresignOutput(ctx, o, until, base); err != nil {
			return nil, err
		}
		out[i].ExpiresAt = until
	}
	return out, nil
}
