package sharing

import (
	"context"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Head is how far a live document has come.
type Head struct {
	Epoch  int64 // counts fresh starts; copies of an earlier one do not fit
	Seq    int64 // of the newest update
	Synced int64 // of the newest update that the definition holds
}

// Document is a live document as it is stored: a snapshot, and the updates
// after it.
type Document struct {
	Head
	Snapshot    []byte // nil when the reader has it already
	SnapshotSeq int64
	Updates     []Update // in order
}

// Update is a piece of a document's history.
type Update struct {
	Seq    int64
	Data   []byte
	Author access.Author // of the newest edit in it
	Guests bool          // a guest had a part in it
}

// Documents is what the editor rooms ask of the database. A document whose
// workflow is gone is fault.KindNotFound, one that has started afresh
// fault.KindStale.
type Documents interface {
	// Document reads what came after a number.
	Document(ctx context.Context, id ids.Workflow, after int64) (Document, error)
	// SeedDocument gives a workflow of this version its first document, unless
	// it has one or was saved since.
	SeedDocument(ctx context.Context, team ids.Team, id ids.Workflow, version int, snapshot []byte, now time.Time) error
	// AppendUpdate stores an update, and notifies the other servers.
	AppendUpdate(ctx context.Context, id ids.Workflow, epoch int64, u Update, now time.Time) (seq int64, err error)
	// SaveSnapshot replaces all updates up to seq by what they came to.
	SaveSnapshot(ctx context.Context, id ids.Workflow, epoch, seq int64, snapshot []byte) error
	// ResetDocument starts afresh, unless the document has moved on.
	ResetDocument(ctx context.Context, id ids.Workflow, h Head, snapshot []byte, now time.Time) error
	// Heads is how far documents have come; one that is gone is left out.
	Heads(ctx context.Context, list []ids.Workflow) (map[ids.Workflow]Head, error)
}

// Bridge joins the rooms of all servers on one database.
type Bridge interface {
	// Send notifies the other servers of something small that may be lost.
	Send(ctx context.Context, message string) error
	// Listen calls received with what other servers send, and reconnected when it
	// may have missed something, until ctx ends. Where there are no other
	// servers it only waits.
	Listen(ctx context.Context, received func(message string), reconnected func()) error
}
