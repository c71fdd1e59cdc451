// Package ai speaks HTTP for the analysis of papers and the chat.
package ai

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/ai"
	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/runs"
)

// Runs are those of which the model is asked why they failed.
type Runs interface {
	Detailed(ctx context.Context, caller access.Caller, id ids.Run) (runs.Detailed, error)
}

// API is the part of the HTTP API that this room serves.
type API struct {
	AI           *ai.Service
	Chat         *ai.Chat
	Runs         Runs
	VisitorKey   []byte        // signs the cookies of visitors
	AnalysisWait time.Duration // how long a plain request waits for an analysis
	Scratch      string        // the folder of PDFs on their way; empty is the system's
	Now          func() time.Time
}
