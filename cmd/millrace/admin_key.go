package main

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/cmd/millrace/installation"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/store"
)

type rotateKeyCommand struct {
	databaseSettings `embed:""`
	NewSecretKey     string `help:"The new key, if --secret-key is the old one. Default: created in --data."`
	NewSecretKeyFile string `help:"File with the value of --new-secret-key."`
	Undo             bool   `help:"Return to the old key after an unfinished change."`
}

// Run seals everything anew. It may be killed and run again: the new key is on
// disk before anything is sealed with it, and the old one is kept.
func (c *rotateKeyCommand) Run(w console) error {
	inFile := c.SecretKey == ""
	if inFile != (c.NewSecretKey == "") {
		return errors.New("give both keys, --secret-key and --new-secret-key, or neither where the key is the file secret.key in --data")
	}
	w = w.audited("operator.key_rotated", audit.Installation, "")
	if c.Embedded() {
		if err := c.MustExist(); err != nil {
			return err
		}
	}
	if c.Embedded() || inFile {
		release, err := c.LockData()
		if err != nil {
			return err
		}
		defer release()
	}
	change := func(old, key string) error { return c.rotate(w, old, key) }
	switch {
	case !inFile && c.Undo:
		return change(c.NewSecretKey, c.SecretKey)
	case !inFile:
		return change(c.SecretKey, c.NewSecretKey)
	case c.Undo:
		return installation.UndoKeyRotation(c.Data, change)
	}
	check := func(old string) error {
		return store.CheckRotation(w.ctx, store.Options{URL: c.URL(), SecretKey: old})
	}
	kept, err := installation.RotateKey(c.Data, check, change)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w.out, "The old key is in %s. Keep it for as long as you keep backups from before.\n", kept)
	return err
}

func (c *rotateKeyCommand) rotate(w console, old, key string) error {
	n, err := store.RotateSecretKey(w.ctx, store.Options{URL: c.URL(), SecretKey: old}, key)
	if err != nil {
		return err
	}
	db, err := store.Open(w.ctx, store.Options{URL: c.URL(), SecretKey: key})
	if err != nil {
		return err
	}
	if err := errors.Join(db.WritePending(w.ctx), db.Close()); err != nil {
		return err
	}
	which := "new"
	if c.Undo {
		which = "old"
	}
	_, err = fmt.Fprintf(w.out, "Everything is sealed with the %s key (%d values were sealed anew).\n", which, n)
	return err
}
