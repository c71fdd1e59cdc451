// Package files speaks HTTP for files: lists, uploads and downloads.
package files

import (
	"time"

	"github.com/millrace/millrace/internal/files"
)

// API is the part of the HTTP API that this room serves.
type API struct {
	Files     *files.Service
	Uploads   *files.Uploads
	Transfers Transfers // nil where the object store is spoken to directly
	Now       func() time.Time
}
