// Package secrets keeps the values that a team's commands need and nobody
// should read: passwords, keys and tokens. A node names them; its command finds
// them in its environment. How they are sealed is the store's business, and how
// they are kept out of logs the executor's.
package secrets

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/graph"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Secret is what may be known of one. Its value is not.
type Secret struct {
	Name       string
	Hint       string // the last characters of a long one
	Version    int    // counts its values
	CreatedAt  time.Time
	UpdatedAt  time.Time
	LastUsedAt time.Time // by a run; zero: never
}

// Store is what this room asks of the database.
type Store interface {
	// Secrets are those of a team, by name.
	Secrets(ctx context.Context, team ids.Team) ([]Secret, error)
	// PutSecret keeps a value under a name. A new name beyond most is
	// fault.KindConflict.
	PutSecret(ctx context.Context, team ids.Team, s Secret, value string, most int) (Secret, error)
	// DeleteSecret forgets a name and its value.
	DeleteSecret(ctx context.Context, team ids.Team, name string) error
}

// Service answers for a team's secrets.
type Service struct {
	store Store
	now   func() time.Time
}

// NewService makes the room.
func NewService(store Store, now func() time.Time) *Service { return &Service{store, now} }

// What a team may keep. A shorter value could not be masked in a log without
// masking half of it, and a longer one is a file.
const (
	MaxSecrets = 100
	minValue   = 8
	maxValue   = 64 << 10
)

// Secrets lists the team's secrets by name, without their values.
func (s *Service) Secrets(ctx context.Context, caller access.Caller) ([]Secret, error) {
	if err := caller.Must(access.UseSecrets); err != nil {
		return nil, err
	}
	return s.store.Secrets(ctx, caller.Team)
}

// Put sets the value of a secret, new or not. Runs that start a command after
// it get the new one.
func (s *Service) Put(ctx context.Context, caller access.Caller, name, value string) (Secret, error) {
	if err := caller.Must(access.ManageSecrets); err != nil {
		return Secret{}, err
	}
	if wrong := problems(name, value); len(wrong) > 0 {
		return Secret{}, fault.Problems(wrong, "%s %s", wrong[0].Path, wrong[0].Message)
	}
	now := s.now()
	return s.store.PutSecret(ctx, caller.Team, Secret{Name: name, Hint: hint(value), CreatedAt: now, UpdatedAt: now}, value, MaxSecrets)
}

func problems(name, value string) (wrong []fault.Detail) {
	note := func(path, message string) { wrong = append(wrong, fault.Detail{Path: path, Message: message}) }
	if !graph.ValidName(name) {
		note("name", "must start with a letter or _ and hold only letters, digits and _, at most 63")
	}
	switch {
	case len(value) < minValue:
		note("value", "needs at least 8 bytes: a shorter one could not be told from other text in a log")
	case len(value) > maxValue:
		note("value", "holds at most 64 KB: keep larger things as files")
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		note("value", "must be text without NUL, as variables of a command are: encode other bytes, for example in base64")
	}
	return wrong
}

// A hint tells one value from another and no more: of a short one even four
// characters would say too much.
const (
	hinted     = 4
	hintedFrom = 20
)

func hint(value string) string {
	text := []rune(strings.TrimSpace(value))
	if len(text) < hintedFrom {
		return ""
	}
	return string(text[len(text)-hinted:])
}

// Delete forgets a secret. Nodes that name it cannot run until there is one
// again.
func (s *Service) Delete(ctx context.Context, caller access.Caller, name string) error {
	if err := caller.Must(access.ManageSecrets); err != nil {
		return err
	}
	return s.store.DeleteSecret(ctx, caller.Team, name)
}
