package workflows

import (
	"context"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// FolderStore moves workflows.
type FolderStore interface {
	// MoveFolder puts each workflow of a team where moved says that what is in its
	// folder goes, all of them or none. It is fault.KindNotFound where none goes.
	MoveFolder(ctx context.Context, team ids.Team, from string, moved func(folder string) (string, bool, error)) (n int, err error)
}

// RenameFolder calls a folder otherwise, with those within it. One of that name may
// be there already: then they are one.
func (s *Service) RenameFolder(ctx context.Context, caller access.Caller, from, to string) (moved int, err error) {
	if err := caller.Must(access.EditWorkflows); err != nil {
		return 0, err
	}
	from, wrong := CheckedFolder(from)
	if wrong == "" && from == "" {
		wrong = "is missing"
	}
	if wrong != "" {
		return 0, fault.Problems([]fault.Detail{{Path: "from", Message: wrong}}, "from %s", wrong)
	}
	to, wrong = CheckedFolder(to)
	if wrong != "" {
		return 0, fault.Problems([]fault.Detail{{Path: "to", Message: wrong}}, "to %s", wrong)
	}
	return s.stores.Folders.MoveFolder(ctx, caller.Team, from, func(folder string) (string, bool, error) {
		place, inside := movedFolder(folder, from, to)
		if _, wrong := CheckedFolder(place); inside && wrong != "" {
			return "", false, fault.Problems([]fault.Detail{{Path: "to", Message: "a folder within it would be one that " + wrong}}, "to: a folder within it would be one that %s", wrong)
		}
		return place, inside, nil
	})
}
