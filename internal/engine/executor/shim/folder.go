package shim

import (
	"path/filepath"

	"github.com/millrace/millrace/internal/engine/executor/shim/tasklog"
)

// What lies in an attempt's folder.
const (
	WorkFolder  = "work" // the command's working folder
	TempFolder  = "tmp"  // its /tmp
	InputFolder = "in"   // what it was given to read
)

// Folder is the folder of an attempt.
type Folder string

func (f Folder) path(name string) string { return filepath.Join(string(f), name) }

// Log is the path of the beginning of the log.
func (f Folder) Log() string { return tasklog.Path(string(f)) }
