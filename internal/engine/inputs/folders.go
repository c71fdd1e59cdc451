package inputs

import (
	"context"

	"github.com/millrace/millrace/internal/domain/folders"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/runs/addresses"
)

// items are what keys mean that lie elsewhere: one object each, or all of a folder's.
func (in *Inputs) items(keys []string) (list []*item) {
	for _, key := range keys {
		if it := in.byURL[key]; it != nil {
			list = append(list, it)
		}
		if !addresses.IsFolder(key) {
			continue
		}
		of, known := in.inFolder[key]
		if !known {
			for _, o := range addresses.Below(key, in.objectList()) {
				of = append(of, in.byURL[o.URL])
			}
			in.inFolder[key] = of
		}
		list = append(list, of...)
	}
	return list
}

func (in *Inputs) objectList() []addresses.Object {
	list := make([]addresses.Object, 0, len(in.byURL))
	for _, it := range in.byURL {
		list = append(list, it.Object)
	}
	return list
}

// manifest is what the folder of an address is, once its files have been read.
func (in *Inputs) manifest(key string) (folders.Manifest, bool) {
	of := in.items([]string{key})
	list := make([]addresses.Object, len(of))
	for i, it := range of {
		if list[i] = it.Object; it.Learnt == "" {
			return folders.Manifest{}, false
		}
	}
	m, err := addresses.Manifest(key, list)
	return m, err == nil && len(list) > 0
}

// folder is the folder of an address as a task gets it. Its hash is that of a folder of
// the same files which a run has made.
func (in *Inputs) folder(key string) (files.File, bool) {
	m, known := in.manifest(key)
	if !known {
		return files.File{}, false
	}
	text := m.Text()
	return files.File{
		Key: key, Name: addresses.FolderName(key), Blob: key, Size: int64(len(text)), SHA256: folders.Hash(text),
		Folder: &files.Folder{Files: m.Files(), Bytes: m.Bytes()},
	}, true
}

// linkFetched makes a folder of a task of files that lay elsewhere.
func (in *Inputs) linkFetched(ctx context.Context, dir string, shared bool, key string) error {
	in.mu.Lock()
	m, known := in.manifest(key)
	err := ErrFetching
	for _, it := range in.items([]string{key}) {
		if it.err != nil {
			err = it.err
		}
	}
	in.mu.Unlock()
	if !known {
		return err
	}
	return build(ctx, dir, m, func(e folders.Entry, file string) error {
		return in.cache.Link(ctx, file, shared, key+e.Path, in.open)
	})
}
