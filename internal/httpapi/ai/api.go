// Package ai speaks HTTP for the analysis of papers and the chat.
package ai

import (
	"time"

	"github.com/millrace/millrace/internal/ai"
)

// API is the part of the HTTP API that this room serves.
type API struct {
	AI           *ai.Service
	Chat         *ai.Chat
	VisitorKey   []byte        // signs the cookies of visitors
	AnalysisWait time.Duration // how long a plain request waits for an analysis
	Scratch      string        // the folder of PDFs on their way; empty is the system's
	Now          func() time.Time
}
