// Package system speaks HTTP for the server itself: its health, what it is
// equipped with, its documentation, and the files of the web app.
package system

import (
	"context"
	"log/slog"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/runs"
)

// API is the part of the HTTP API that is no room's.
type API struct {
	Log       *slog.Logger
	Version   string                                 // of the program
	Checks    map[string]func(context.Context) error // what readiness asks, by name
	Runs      *runs.Service
	Chat      *ai.Chat
	SendsMail bool // mails reach people; without, they are files for the operator
	Charges   bool // runs and storage cost credits
	App       App
}
