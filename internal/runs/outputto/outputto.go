// Package outputto has the rules of where a run's outputs are copied to once it has
// completed, and what is known of such a copy. Copying is package outputcopy's
// business.
package outputto

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// Target is where outputs are copied to, as somebody gave it.
type Target struct {
	URL        string         `json:"url"` // s3://bucket/prefix/
	Connection ids.Connection `json:"connection"`
}

const (
	scheme = "s3://"

	// RunID in an address stands for the id of the run: runs of a schedule can so
	// have a folder each.
	RunID = "{runId}"

	// MaxKey is how many bytes the key of an object has at most.
	MaxKey = 1024
	// maxPrefix leaves room for the names of the outputs.
	maxPrefix = 512
)

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// Problems are everything that is wrong with how a target is written.
func (t Target) Problems() (wrong []fault.Detail) {
	if problem := t.problemOfURL(); problem != "" {
		wrong = append(wrong, fault.Detail{Path: "outputTo.url", Message: problem})
	}
	if t.Connection == "" {
		wrong = append(wrong, fault.Detail{Path: "outputTo.connection", Message: "is needed: the id of a connection of the team that may write there"})
	}
	return wrong
}

func (t Target) problemOfURL() string {
	rest, ok := strings.CutPrefix(t.URL, scheme)
	bucket, prefix, slash := strings.Cut(rest, "/")
	switch {
	case !ok || !bucketName.MatchString(bucket) || !slash:
		return "is not of the form s3://bucket/prefix/"
	case prefix != "" && !strings.HasSuffix(prefix, "/"):
		return "must end with a slash: it is a folder"
	case len(prefix) > maxPrefix || !utf8.ValidString(prefix) || strings.ContainsFunc(prefix, unicode.IsControl) || strings.ContainsAny(prefix, `*?\`):
		return "has a prefix that is longer than 512 bytes, or has one of * ? \\ or a control character in it"
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(prefix, "/"), "/") {
		if part == "." || part == ".." || part == "" && prefix != "" {
			return "has a part that is empty, `.` or `..`, which stores understand differently"
		}
	}
	return ""
}

// For is the target for one run.
func (t Target) For(id ids.Run) Target {
	t.URL = strings.ReplaceAll(t.URL, RunID, string(id))
	return t
}

// S3 is the bucket, and the prefix that all keys of the copy have.
func (t Target) S3() (bucket, prefix string) {
	bucket, prefix, _ = strings.Cut(strings.TrimPrefix(t.URL, scheme), "/")
	return bucket, prefix
}

// State is how far a copy has come.
type State string

// The states of a copy. The last three are final.
const (
	Waiting   State = "waiting" // for the run to complete
	Copying   State = "copying" // or pausing before the next attempt
	Completed State = "completed"
	Failed    State = "failed"
	Skipped   State = "skipped" // the run did not complete
)

// Copy is the copy of one run's outputs.
type Copy struct {
	Target            // as it was given
	Run      ids.Run  // whose outputs they are
	Team     ids.Team // whose run it is
	State    State
	Message  string // why it failed, or waits for the next attempt
	Attempts int    // in a row that got nowhere
	NextAt   time.Time
	Files    int // to copy in all; 0: not counted yet
	Done     int // of them, the first ones in their order
	Bytes    int64
	Copied   int64
	Upload   string // of a large file that has begun; empty: none has
	UploadOf string // its name among the files
	EndedAt  time.Time
}

// unreachable is why a target cannot be written to, for whoever starts the run.
// Connections that are not the team's, and keys outside of theirs, stay what they are.
func unreachable(t Target, err error) error {
	if err == nil {
		return nil
	}
	message := "it did not answer within 10 seconds"
	if known, ok := errors.AsType[*fault.Error](err); ok {
		if known.Code != "" || known.Kind == fault.KindNotFound {
			return err
		}
		message = known.Message
	}
	d := fault.Detail{Path: "outputTo.url", Message: t.URL + ": " + message}
	refused := fault.Problems([]fault.Detail{d}, "%s: %s", d.Path, d.Message).WithCode("output_unreachable").WithCause(err)
	refused.Temporary = fault.Temporary(err)
	return refused
}

// Large is how an object is written in parts.
type Large struct {
	Upload string // that began before; empty: none did
	// Open reads a stretch of it.
	Open func(ctx context.Context, from, length int64) (io.ReadCloser, error)
	// Begun is told of an upload before its first part is sent.
	Begun func(ctx context.Context, upload string) error
	// Arrived is told of each part that is there.
	Arrived func(bytes int64)
	// Whole is asked before the parts become an object.
	Whole func() error
}
