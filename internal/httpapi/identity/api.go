// Package identity speaks HTTP for accounts: signing up and in, on pages and in
// JSON, sessions, teams, tokens, and the OAuth server.
package identity

import (
	"time"

	"github.com/millrace/millrace/internal/identity"
	"github.com/millrace/millrace/internal/identity/builtin"
)

// API is the part of the HTTP API that this room serves.
type API struct {
	Identity  identity.System
	BuiltIn   *builtin.System // nil where another identity system keeps them
	Providers Providers
	SendsMail bool // mails reach people; without, they are files for the operator
	Now       func() time.Time
}
