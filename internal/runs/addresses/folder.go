package addresses

import (
	"path"
	"strings"

	"github.com/millrace/millrace/internal/domain/folders"
)

// IsFolder reports whether a text is the address of a folder: of all objects whose keys
// begin with a prefix.
func IsFolder(text string) bool {
	return strings.HasPrefix(text, s3Scheme) && strings.HasSuffix(text, "/")
}

// FolderProblem is what is wrong with how the address of a folder is written, or
// empty.
func (a Address) FolderProblem() string {
	bucket, key, ok := a.S3()
	switch {
	case !ok:
		return "takes the key of a folder, or an address as s3://bucket/folder/"
	case !IsFolder(a.URL) || key == "":
		return "takes a folder: end the address with a slash, as s3://" + bucket + "/folder/"
	case a.SHA256 != "":
		return "is a folder, and one sha256 cannot be that of many files"
	}
	a.URL = strings.TrimSuffix(a.URL, "/")
	return a.Problem()
}

// Below are those of the objects that lie in the folder of an address.
func Below(folder string, list []Object) (below []Object) {
	for _, o := range list {
		if strings.HasPrefix(o.URL, folder) {
			below = append(below, o)
		}
	}
	return below
}

// FolderName is what the folder of an address is called.
func FolderName(folder string) string { return path.Base(folder) }

// unread stands for the hash of what nobody has read.
var unread = strings.Repeat("0", 64)

// Manifest is a folder of the objects that lie in it. It is an error if they cannot be
// files of one folder.
func Manifest(folder string, below []Object) (folders.Manifest, error) {
	entries := make([]folders.Entry, len(below))
	for i, o := range below {
		entries[i] = folders.Entry{Path: strings.TrimPrefix(o.URL, folder), Size: o.Size, SHA256: o.Learnt}
		if o.Learnt == "" {
			entries[i].SHA256 = unread
		}
	}
	return folders.New(entries)
}
