// Package runs speaks HTTP for runs: starting and following them, what they
// wrote, made and left behind, sweeps, and comparing two.
package runs

import (
	"context"
	"log/slog"
	"time"

	"github.com/millrace/millrace/internal/httpapi/events"
	"github.com/millrace/millrace/internal/httpapi/kernel"
	"github.com/millrace/millrace/internal/runs"
	"github.com/millrace/millrace/internal/runs/compare"
	"github.com/millrace/millrace/internal/runs/crate"
	"github.com/millrace/millrace/internal/runs/finding"
	"github.com/millrace/millrace/internal/sharing"
)

// Options are what the room is made of.
type Options struct {
	Runs    *runs.Service
	Sharing *sharing.Service
	Compare *compare.Service
	Crates  *crate.Service
	Finding *finding.Service
	Feed    events.Feed
	Server  *kernel.Server
	Log     *slog.Logger
	Now     func() time.Time
	Life    context.Context // ends when the server is told to stop
}

// API is the part of the HTTP API that this room serves.
type API struct {
	Options
	streams *events.Streams
}

// New makes it.
func New(o Options) *API {
	a := &API{Options: o}
	a.streams = events.New(events.Options{Runs: o.Runs, Feed: o.Feed, Messages: messages{a}, MayWatch: a.mayWatch, Log: o.Log, Now: o.Now, Life: o.Life})
	return a
}
