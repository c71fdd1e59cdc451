package files

import (
	"context"
	"io"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/ids"
)

// PartLife is how long the address of a part works, and LargeLife how long an
// upload that nobody touches is kept.
const (
	PartLife  = time.Hour
	LargeLife = 7 * 24 * time.Hour
)

const (
	largest      = 5 << 40
	leastPart    = 32 << 20
	roundedParts = 1 << 20
	openUploads  = 20
	// MaxParts is how many parts an upload has at most, as in S3.
	MaxParts = 10_000
	// MaxPartsAtOnce is how many addresses are given at a time.
	MaxPartsAtOnce = 1000
)

// LargeUpload is a file that arrives in parts, in any order and over days.
type LargeUpload struct {
	ID          string
	Key         string
	Team        ids.Team
	FileID      string // of the file that it becomes
	Name        string
	ContentType string
	Size        int64
	Manifest    int64 // bytes of the manifest, of a folder
	PartSize    int64
	StorageID   string // what the object store calls it; empty until it knows of it
	Done        bool   // it is a file
	CreatedBy   ids.User
	CreatedAt   time.Time
	TouchedAt   time.Time

	CreatorName string // in lists alone
}

// PartCount is how many parts the file has.
func (u LargeUpload) PartCount() int { return int((u.Size + u.PartSize - 1) / u.PartSize) }

// PartLength is how many bytes a part has; only the last one may have fewer than
// the others.
func (u LargeUpload) PartLength(number int) int64 {
	return min(u.PartSize, u.Size-int64(number-1)*u.PartSize)
}

// ExpiresAt is when it goes by itself.
func (u LargeUpload) ExpiresAt() time.Time { return u.TouchedAt.Add(LargeLife) }

// Part is one that has arrived.
type Part struct {
	Number int
	Size   int64
	ETag   string
}

// PartAddress is what the address of a part allows.
type PartAddress struct {
	Key       string
	StorageID string
	Number    int
	Size      int64
	Expires   time.Time
	Base      string
}

// PartObjects keeps files that arrive in parts.
type PartObjects interface {
	// BeginParts makes room for the parts of a key.
	BeginParts(ctx context.Context, key, contentType string) (storageID string, err error)
	PresignPart(ctx context.Context, p PartAddress) (string, error)
	// PutPart takes a part where we serve uploads ourselves. One that arrived
	// before is replaced.
	PutPart(ctx context.Context, key string, number int, offset int64, r io.Reader, size int64) (etag string, err error)
	// ArrivedParts are those that are there, by number.
	ArrivedParts(ctx context.Context, key, storageID string) ([]Part, error)
	// JoinParts makes the parts an object, and says its hash where it is known by
	// then. It may be called again.
	JoinParts(ctx context.Context, key, storageID string, parts []Part) (Blob, error)
	// AbortParts forgets all parts of a key, whoever began them.
	AbortParts(ctx context.Context, key string) error
}

// LargeStore remembers uploads in parts.
type LargeStore interface {
	// OpenUpload counts an upload with its manifest against the quota and against the most that
	// may be open, and remembers it.
	OpenUpload(ctx context.Context, u LargeUpload, limit int64, most int) error
	SetStorageID(ctx context.Context, id, storageID string) error
	LargeUpload(ctx context.Context, team ids.Team, id string) (LargeUpload, error)
	// OpenUploads are those of a team that are not complete, the oldest first.
	OpenUploads(ctx context.Context, team ids.Team) ([]LargeUpload, error)
	// TouchUpload notes that something happens to it. One that is gone is
	// fault.KindNotFound.
	TouchUpload(ctx context.Context, key string, now time.Time) (LargeUpload, error)
	// KeepUpload turns it into a file. Kept before, it changes nothing; where
	// it is gone it is fault.KindNotFound.
	KeepUpload(ctx context.Context, key string, b Blob, now time.Time) error
	// KeepFolder turns it into a folder of so many files, as KeepUpload does.
	KeepFolder(ctx context.Context, key string, data, manifest Blob, files int, now time.Time) error
	// DropUpload ends it and what it counts. Of one that is a file only the note
	// goes.
	DropUpload(ctx context.Context, key string) error
	// StaleUploads go by key, from after the given one.
	StaleUploads(ctx context.Context, touchedBy time.Time, after string, limit int) ([]LargeUpload, error)
}

// Uploads takes large files, in parts.
type Uploads struct {
	store LargeStore
	parts PartObjects
	files *Service
}

// NewUploads makes the part of the room that takes large files.
func NewUploads(store LargeStore, parts PartObjects, files *Service) *Uploads {
	return &Uploads{store, parts, files}
}

// checkLarge refuses what may not be uploaded in parts.
func checkLarge(in Presign) error {
	if err := checkUpTo(in, largest, "5 TB"); err != nil {
		return err
	}
	if in.ContentType == FolderType || in.Entries != nil {
		return checkFolder(in.ContentType, in.Entries, in.Size)
	}
	if in.Size == 0 {
		return fault.Problems([]fault.Detail{{Path: "size", Message: "must be at least 1"}}, "an empty file has no parts: use /api/files/presign")
	}
	return nil
}

// Begin allows an upload: its type, size and room are checked before any byte
// moves, and of a folder what is in it.
func (s *Uploads) Begin(ctx context.Context, caller access.Caller, in Presign) (LargeUpload, error) {
	if err := caller.Must(access.UploadFiles); err != nil {
		return LargeUpload{}, err
	}
	if err := checkLarge(in); err != nil {
		return LargeUpload{}, err
	}
	if err := s.files.hasRoom(ctx); err != nil {
		return LargeUpload{}, err
	}
	plan, err := s.files.stores.List.PlanOf(ctx, caller.Team)
	if err != nil {
		return LargeUpload{}, err
	}
	terms := s.files.catalog.TermsOf(plan)
	id, file, now := ids.NewUpload(), ids.NewFile(), s.files.now()
	u := LargeUpload{
		ID: id, Key: "teams/" + string(caller.Team) + "/" + ByParts + "/" + file + "/" + in.Name, Team: caller.Team, FileID: file, Name: in.Name,
		ContentType: in.ContentType, Size: in.Size, Manifest: manifestSize(in), PartSize: partSize(in.Size), CreatedBy: caller.User, CreatedAt: now, TouchedAt: now,
	}
	// The row comes first: whatever the object store then keeps, somebody knows.
	if err := s.store.OpenUpload(ctx, u, terms.StorageBytes, openUploads); err != nil {
		return LargeUpload{}, err
	}
	return s.began(ctx, u)
}

// ByParts is the folder of what arrives in parts. The object store does not
// sweep what is unfinished there: it may take many days.
const ByParts = "by-parts"

// partSize is the least with which the parts are not too many.
func partSize(size int64) int64 {
	least := (size + MaxParts - 1) / MaxParts
	return max(leastPart, (least+roundedParts-1)/roundedParts*roundedParts)
}

// began has the object store know of an upload, also when a server died before
// it could.
func (s *Uploads) began(ctx context.Context, u LargeUpload) (LargeUpload, error) {
	if u.StorageID != "" {
		return u, nil
	}
	id, err := s.parts.BeginParts(ctx, u.Key, u.ContentType)
	if err != nil {
		return u, err
	}
	u.StorageID = id
	return u, s.store.SetStorageID(ctx, u.ID, id)
}

// Known is nil where a caller has such an upload, open or complete.
func (s *Uploads) Known(ctx context.Context, caller access.Caller, id string) error {
	_, err := s.known(ctx, caller, id)
	return err
}

func (s *Uploads) known(ctx context.Context, caller access.Caller, id string) (LargeUpload, error) {
	if err := caller.Must(access.UploadFiles); err != nil {
		return LargeUpload{}, err
	}
	return s.store.LargeUpload(ctx, caller.Team, id)
}

// List is what a team has begun and not completed, the oldest first.
func (s *Uploads) List(ctx context.Context, caller access.Caller) ([]LargeUpload, error) {
	if err := caller.Must(access.UploadFiles); err != nil {
		return nil, err
	}
	return s.store.OpenUploads(ctx, caller.Team)
}

// opened is an upload that is not complete, which the object store knows of.
func (s *Uploads) opened(ctx context.Context, u LargeUpload) (LargeUpload, error) {
	if u.Done {
		return u, errDone
	}
	return s.began(ctx, u)
}

var errDone = fault.Conflict("this upload is complete").WithCode("upload_closed")

// Upload says what of an upload has arrived.
func (s *Uploads) Upload(ctx context.Context, caller access.Caller, id string) (LargeUpload, []Part, error) {
	u, err := s.known(ctx, caller, id)
	if err != nil {
		return u, nil, err
	}
	if u, err = s.opened(ctx, u); err != nil {
		return u, nil, err
	}
	parts, err := s.parts.ArrivedParts(ctx, u.Key, u.StorageID)
	return u, parts, err
}

// SignedPart is where a part may be sent.
type SignedPart struct {
	Number    int
	Size      int64
	URL       string
	ExpiresAt time.Time
}

// Parts gives the addresses of some parts.
func (s *Uploads) Parts(ctx context.Context, caller access.Caller, id string, numbers []int, base string) ([]SignedPart, error) {
	u, err := s.known(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	if len(numbers) == 0 || len(numbers) > MaxPartsAtOnce {
		return nil, fault.Problems([]fault.Detail{{Path: "numbers", Message: "names 1 to 1,000 parts"}}, "ask for 1 to 1,000 parts at a time")
	}
	for _, n := range numbers {
		if n < 1 || n > u.PartCount() {
			return nil, fault.Problems([]fault.Detail{{Path: "numbers", Message: "has a number that is no part"}}, "this upload has the parts 1 to %d, and no part %d", u.PartCount(), n)
		}
	}
	if u, err = s.opened(ctx, u); err != nil {
		return nil, err
	}
	if err := s.files.hasRoom(ctx); err != nil {
		return nil, err
	}
	now := s.files.now()
	if _, err := s.store.TouchUpload(ctx, u.Key, now); err != nil {
		return nil, err
	}
	until := now.Add(PartLife)
	list := make([]SignedPart, len(numbers))
	for i, n := range numbers {
		url, err := s.parts.PresignPart(ctx, PartAddress{Key: u.Key, StorageID: u.StorageID, Number: n, Size: u.PartLength(n), Expires: until, Base: base})
		if err != nil {
			return nil, err
		}
		list[i] = SignedPart{Number: n, Size: u.PartLength(n), URL: url, ExpiresAt: until}
	}
	return list, nil
}

// Receive takes a part whose address was checked, where we serve uploads
// ourselves.
func (s *Uploads) Receive(ctx context.Context, key string, number int, body io.Reader) (etag string, err error) {
	if err := s.files.hasRoom(ctx); err != nil {
		return "", err
	}
	u, err := s.store.TouchUpload(ctx, key, s.files.now())
	if err != nil {
		return "", err
	}
	rest := &watched{Reader: body, hasRoom: func() error { return s.files.hasRoom(ctx) }}
	etag, err = s.parts.PutPart(ctx, key, number, int64(number-1)*u.PartSize, rest, u.PartLength(number))
	if rest.full != nil {
		return "", rest.full
	}
	if rest.broke != nil {
		return "", fault.Invalid("the part was interrupted; send it again").WithCause(rest.broke)
	}
	return etag, err
}

// Abort calls an upload off. Members may do that for their own.
func (s *Uploads) Abort(ctx context.Context, caller access.Caller, id string) error {
	u, err := s.known(ctx, caller, id)
	if err != nil {
		return err
	}
	if u.Done {
		return errDone
	}
	if u.CreatedBy != caller.User && !caller.May(access.DeleteAnyFile) {
		return fault.Forbidden("only admins and owners can call off someone else's upload")
	}
	return s.end(ctx, s.store, u)
}

// end forgets the parts and then the row, so that parts never outlive what knows
// of them.
func (s *Uploads) end(ctx context.Context, store LargeStore, u LargeUpload) error {
	if err := s.parts.AbortParts(ctx, u.Key); err != nil {
		return err
	}
	return store.DropUpload(ctx, u.Key)
}

// EndStale ends uploads that nobody has touched for a week, after a key, and
// returns where the next batch begins. It works on a store of its own, such as one
// that lets one process at a time write.
func (s *Uploads) EndStale(ctx context.Context, store LargeStore, after string) (r Cleaned, next string, err error) {
	stale, err := store.StaleUploads(ctx, s.files.now().Add(-LargeLife), after, cleaningBatch)
	if err != nil {
		return r, "", err
	}
	for _, u := range stale {
		r.count(s.end(ctx, store, u))
		next = u.Key
	}
	r.More = len(stale) == cleaningBatch
	return r, next, ctx.Err()
}
