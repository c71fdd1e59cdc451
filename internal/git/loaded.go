package git

import (
	"context"
	"errors"
	"io"

	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/source"
	"github.com/millrace/millrace/internal/offline"
)

// loadedName names what was loaded of a repository: a branch or tag, or the pack of a
// commit. No address has a space.
func (r Repository) loadedName(of string) string { return r.url.String() + " " + of }

// lookup is what was loaded of a repository whose host the operator allows. It is for
// all teams: whoever loaded it gave it to the installation.
func (t *Trees) lookup(kind offline.Kind, r Repository, of string) (value string, known bool, err error) {
	if value, known, err = t.config.Loaded.Lookup(kind, r.loadedName(of)); known {
		err = t.client.checkHost(r.url)
	}
	return value, known, err
}

func (t *Trees) copyLoaded(sum string, pack *packFile) error {
	f, err := t.config.Loaded.Open(sum)
	if err != nil {
		return err
	}
	_, err = io.Copy(pack, f)
	return errors.Join(err, f.Close())
}

// fetch writes the pack of a commit that was loaded, or else asks its host. What is not
// the commit is found out by whoever reads the pack.
func (t *Trees) fetch(ctx context.Context, r Repository, commit string, pack *packFile) error {
	sum, loaded, err := t.lookup(offline.Pack, r, commit)
	if err != nil {
		return err
	}
	if loaded {
		err = t.copyLoaded(sum, pack)
	} else {
		err = t.client.fetch(ctx, r, commit, pack)
	}
	if err != nil || t.config.Keep == nil {
		return err
	}
	blob, err := t.config.Keep.PutFile(pack.file.Name())
	if err != nil {
		return err
	}
	t.config.Keep.Add(offline.Item{Kind: offline.Pack, Name: r.loadedName(commit), Value: blob.SHA256, Blobs: []offline.Blob{blob}})
	return nil
}

// Save fetches the code of a source, so that the bundle of its trees has it: at a commit,
// or at the one that the source stands for now.
func (h *Hosts) Save(ctx context.Context, team ids.Team, from source.Source, commit string) (string, error) {
	w, err := h.wanted(ctx, team, from)
	if err != nil {
		return "", err
	}
	if commit == "" {
		commit, err = h.Trees.Resolve(ctx, w, from.Ref)
	} else if !isCommit(from.Ref) {
		h.Trees.config.Keep.Add(offline.Item{Kind: offline.Commit, Name: w.Repository.loadedName(from.Ref), Value: commit})
	}
	if err != nil {
		return "", err
	}
	tree, err := h.Trees.Tree(ctx, w, commit)
	if err == nil {
		tree.Release()
	}
	return commit, err
}
