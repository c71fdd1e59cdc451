// Package line is the line to a server: who calls, how a call is sent and sent
// again, and how a person signs in. What is said over it is package client's.
package line

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/millrace/millrace/internal/cli/screen"
)

// Grant is how a person is signed in to one server. One of Refresh and Cookie
// makes fresh tokens; a token that was handed in has neither.
type Grant struct {
	Email   string    `json:"email,omitempty"`
	Team    string    `json:"team,omitempty"` // chosen by teams use; empty: the server's choice
	Token   string    `json:"token"`
	Expires time.Time `json:"expires,omitzero"`
	Refresh string    `json:"refreshToken,omitempty"` // of OAuth; works once
	Cookie  string    `json:"cookie,omitempty"`       // of a session
}

func (g *Grant) renewable() bool { return g.Refresh != "" || g.Cookie != "" }

// Keyring is everything in the credentials file.
type Keyring struct {
	Current string            `json:"current"` // the server that commands speak to
	Servers map[string]*Grant `json:"servers"`
}

// Credentials is the file that holds them, readable by its owner only.
type Credentials struct{ Folder string }

// Kept reads the person's credentials.
func Kept(w screen.Console) (Keyring, Credentials, error) {
	folder, err := w.Config()
	if err != nil {
		return Keyring{}, Credentials{}, fmt.Errorf("there is no folder for settings: %w", err)
	}
	keep := Credentials{folder}
	ring, err := keep.Read()
	return ring, keep, err
}

func (c Credentials) path() string { return filepath.Join(c.Folder, "credentials.json") }

// Read gives what is kept; nothing is an empty ring.
func (c Credentials) Read() (Keyring, error) {
	ring := Keyring{Servers: map[string]*Grant{}}
	text, err := os.ReadFile(c.path())
	if errors.Is(err, fs.ErrNotExist) {
		return ring, nil
	}
	if err != nil {
		return ring, fmt.Errorf("read the credentials: %w", err)
	}
	if err := json.Unmarshal(text, &ring); err != nil {
		return ring, fmt.Errorf("%s is damaged (%w): delete it and run millrace login", c.path(), err)
	}
	if ring.Servers == nil {
		ring.Servers = map[string]*Grant{}
	}
	return ring, nil
}

// Update changes the file while no other process does. A refresh happens
// inside, too: a refresh token that two processes spend ends the sign-in.
func (c Credentials) Update(change func(*Keyring) error) error {
	if err := os.MkdirAll(c.Folder, 0o700); err != nil {
		return fmt.Errorf("create the settings folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(c.Folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock the credentials: %w", err)
	}
	defer lock.Close() // ends the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock the credentials: %w", err)
	}
	ring, err := c.Read()
	if err != nil {
		return err
	}
	if err := change(&ring); err != nil {
		return err
	}
	return c.write(ring)
}

func (c Credentials) write(ring Keyring) error {
	text, err := json.MarshalIndent(ring, "", "  ")
	if err != nil {
		return err
	}
	// A new file takes the place of the old one, so neither a crash nor an old
	// file's wider mode can show or lose them.
	temp, err := os.CreateTemp(c.Folder, ".credentials-*") // 0600
	if err != nil {
		return fmt.Errorf("save the credentials: %w", err)
	}
	_, err = temp.Write(append(text, '\n'))
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), c.path())
	}
	if err != nil {
		_ = os.Remove(temp.Name())
		return fmt.Errorf("save the credentials: %w", err)
	}
	return nil
}
