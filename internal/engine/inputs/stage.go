package inputs

import (
	"path"
	"strconv"

	"github.com/millrace/millrace/internal/engine/executor"
	"github.com/millrace/millrace/internal/engine/taskenv"
	"github.com/millrace/millrace/internal/files"
)

// AddTo adds files to a folder of an attempt's inputs as <index>/<name> and returns
// their paths as the command sees them.
func AddTo(spec *executor.Spec, known map[string]files.File, keys []string, inputs, folder string) []string {
	paths := make([]string, len(keys))
	for i, key := range keys {
		f := known[key]
		place := path.Join(folder, strconv.Itoa(i), taskenv.StagedName(f.Name))
		in := executor.Input{Path: place, Object: f.Blob, Size: f.Size, SHA256: f.SHA256}
		if f.Folder != nil {
			in.Size, in.Directory = f.Folder.Bytes, true
		}
		spec.Inputs = append(spec.Inputs, in)
		paths[i] = path.Join(inputs, place)
	}
	return paths
}
