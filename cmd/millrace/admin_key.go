package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/store"
)

// nextKeyFile is the key that is to replace that of keyFile, while it does.
const nextKeyFile = "secret.key.next"

type rotateKeyCommand struct {
	databaseSettings `embed:""`
	NewSecretKey     string `help:"The new key, where --secret-key gives the old one. Default: one is made in --data."`
}

// Run seals everything anew. It may be killed and run again: the new key is on
// disk before anything is sealed with it, and the old one stays until nothing
// is.
func (c *rotateKeyCommand) Run(w world) error {
	if c.embedded() {
		if err := c.mustExist(); err != nil {
			return err
		}
		release, err := c.lockData()
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
	old, err := readKey(filepath.Join(c.Data, keyFile))
	if err != nil {
		return fmt.Errorf("cannot read the secret key: %w", err)
	}
	next := filepath.Join(c.Data, nextKeyFile)
	key, err := readKey(next)
	if errors.Is(err, fs.ErrNotExist) {
		key = rand.Text() + rand.Text()
		err = writeOnce(next, key+"\n")
	}
	if err != nil {
		return fmt.Errorf("cannot keep the new secret key: %w", err)
	}
	if err := c.rotate(w, old, key); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(c.Data, keyFile))
}

func (c *rotateKeyCommand) rotate(w world, old, key string) error {
	n, err := store.RotateSecretKey(w.ctx, store.Options{URL: c.url(), SecretKey: old}, key, time.Now())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w.out, "%d values are sealed with the new key. Keep the old one for as long as you keep backups from before.\n", n)
	return err
}

func readKey(path string) (string, error) {
	text, err := os.ReadFile(path)
	return strings.TrimSpace(string(text)), err
}
