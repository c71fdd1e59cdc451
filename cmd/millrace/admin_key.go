package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/cmd/millrace/keyfile"
	"github.com/millrace/millrace/internal/audit"
	"github.com/millrace/millrace/internal/store"
)

type rotateKeyCommand struct {
	databaseSettings `embed:""`
	NewSecretKey     string `help:"The new key, where --secret-key gives the old one. Default: one is made in --data."`
}

// Run seals everything anew. It may be killed and run again: the new key is on
// disk before anything is sealed with it, and the old one stays until nothing
// is.
func (c *rotateKeyCommand) Run(w console) error {
	if c.Embedded() {
		if err := c.MustExist(); err != nil {
			return err
		}
		release, err := c.LockData()
		if err != nil {
			return err
		}
		defer release()
	}
	inFile := c.SecretKey == ""
	if inFile != (c.NewSecretKey == "") {
		return errors.New("give both keys, --secret-key and --new-secret-key, or neither where the key is the file secret.key in --data")
	}
	if !inFile {
		return c.rotate(w, c.SecretKey, c.NewSecretKey)
	}
	return keyfile.Rotate(c.Data, func(old, key string) error { return c.rotate(w, old, key) })
}

func (c *rotateKeyCommand) rotate(w console, old, key string) error {
	n, err := store.RotateSecretKey(w.ctx, store.Options{URL: c.URL(), SecretKey: old}, key, time.Now())
	if err != nil {
		return err
	}
	db, err := store.Open(w.ctx, store.Options{URL: c.URL(), SecretKey: key})
	if err != nil {
		return err
	}
	err = errors.Join(db.WritePending(w.audited("operator.key_rotated", audit.Installation, "").ctx), db.Close())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w.out, "%d values are sealed with the new key. Keep the old one for as long as you keep backups from before.\n", n)
	return err
}
