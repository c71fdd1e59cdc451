// Package files keeps a team's files: uploads on their way and arrived, and
// what runs have produced. Bytes travel by signed addresses; this room decides
// what may travel and what it counts.
package files

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/credits"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/folders"
	"github.com/millrace/millrace/internal/domain/ids"
	"github.com/millrace/millrace/internal/domain/search"
)

// Source says where a file comes from.
type Source string

// The sources.
const (
	FromUpload Source = "upload"
	FromRun    Source = "output"
)

// File is a file that is there, whole.
type File struct {
	Key         string
	Team        ids.Team
	ID          string // sorts by creation
	Source      Source
	Name        string
	ContentType string
	Size        int64
	Blob        string // the key of its bytes
	SHA256      string // empty until known
	Mark        string // changes whenever the bytes do
	Folder      *Folder
	Run         ids.Run
	CreatedBy   ids.User
	CreatedAt   time.Time
}

// Contents is how many bytes the file holds: of a folder, those of its files.
func (f File) Contents() int64 {
	if f.Folder != nil {
		return f.Folder.Bytes
	}
	return f.Size
}

// Folder is what a file is beyond its own bytes if it is the manifest of a folder.
type Folder struct {
	Data  string // the key of the bytes of its files, one after the other
	Mark  string // of those bytes
	Files int
	Bytes int64
}

// Reservation is an upload that was allowed and has not arrived.
type Reservation struct {
	Key         string
	Team        ids.Team
	ID          string
	Name        string
	ContentType string
	Size        int64
	CreatedBy   ids.User
	CreatedAt   time.Time
	ExpiresAt   time.Time
}

// Filter is which files are listed.
type Filter struct {
	Words     string   // that are all in the name
	Source    Source   // empty: both
	Directory *bool    // only folders, or none
	Keys      []string // only those with one of these
}

// Place is where a page of the list ended.
type Place struct {
	Source Source
	ID     string
}

// Blob is what a keeper of bytes says of some.
type Blob struct {
	Key    string
	Size   int64
	SHA256 string
	Mark   string // changes whenever the bytes do

	ModifiedAt time.Time
}

// Upload and Download are what an address allows.
type (
	Upload struct {
		Key         string
		ContentType string
		Size        int64
		Expires     time.Time
		Base        string
	}
	Download struct {
		Key         string
		Name        string
		ContentType string
		Expires     time.Time
		Base        string
	}
)

// Presigner lets clients send and fetch bytes themselves.
type Presigner interface {
	PresignPut(ctx context.Context, u Upload) (string, error)
	PresignGet(ctx context.Context, d Download) (string, error)
	// Arrived ends an upload: from then on nothing sent to its address changes
	// the bytes. While they are not there it is fault.KindNotFound.
	Arrived(ctx context.Context, key string) (Blob, error)
	// Staged lists keys below the prefix after the given one, in order, of uploads
	// that are there and that Arrived has not ended.
	Staged(ctx context.Context, prefix, after string, limit int) ([]string, error)
}

// Objects keeps bytes.
type Objects interface {
	Put(ctx context.Context, key, contentType string, r io.Reader, size int64) (Blob, error)
	Stat(ctx context.Context, key string) (Blob, error)
	Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
	Delete(ctx context.Context, key string) error
}

// ObjectSweep finds bytes that may be of no use any more.
type ObjectSweep interface {
	// Keys lists keys below the prefix after the given one, in order, with the
	// time since which each is there.
	Keys(ctx context.Context, prefix, after string, limit int) (keys []string, since []time.Time, err error)
	// SweepUploads removes what uploads that began before this time left
	// behind.
	SweepUploads(ctx context.Context, before time.Time) error
}

// Bytes is where the bytes of files are, by what is done with them.
type Bytes struct {
	Presigner Presigner
	Objects   Objects
	Sweep     ObjectSweep
}

// UploadStore keeps uploads that were allowed and have not arrived.
type UploadStore interface {
	// Reserve counts an upload against the quota, if it fits under limit bytes
	// (0: no limit); else it is fault.KindPayment.
	Reserve(ctx context.Context, r Reservation, limit int64) error
	// Begin claims a reservation for bytes that are arriving: one at a time,
	// while it is open.
	Begin(ctx context.Context, key string, now, until time.Time) (Reservation, error)
	// Abandon gives a claim back after bytes stopped arriving.
	Abandon(ctx context.Context, key string) error
	// Keep turns a reservation into a file. Kept before, it changes nothing;
	// where nobody expects the bytes any more it is fault.KindNotFound.
	Keep(ctx context.Context, key string, b Blob, now time.Time) error
	// Drop ends a reservation and what it counts.
	Drop(ctx context.Context, key string) error
	// NewestReservations are a team's newest open ones, the newest first.
	NewestReservations(ctx context.Context, team ids.Team, limit int) ([]Reservation, error)
	// ReservationsOf are those of the keys that are open ones.
	ReservationsOf(ctx context.Context, keys []string) ([]Reservation, error)
}

// ListStore reads and deletes files.
type ListStore interface {
	Files(ctx context.Context, team ids.Team, f Filter, after Place, limit int) ([]File, error)
	File(ctx context.Context, team ids.Team, source Source, key string) (File, error)
	PlanOf(ctx context.Context, team ids.Team) (credits.Plan, error)
	// ToBeDeleted reports whether the last row that pointed to bytes is gone.
	ToBeDeleted(ctx context.Context, key string) (bool, error)
	// DeleteFile removes the row. With the last row that points to them its bytes
	// are to be deleted: then their keys are returned, of a folder two.
	DeleteFile(ctx context.Context, team ids.Team, key string) (pending []string, err error)
	// FilesOfRun are what a run produced and consumed, with who started it. A
	// run that has not ended is fault.KindConflict.
	FilesOfRun(ctx context.Context, team ids.Team, run ids.Run) (list []File, starter string, err error)
}

// CleaningStore knows the uploads and bytes that are left over. Each list goes
// by key, from after the given one.
type CleaningStore interface {
	ExpiredReservations(ctx context.Context, now time.Time, after string, limit int) ([]Reservation, error)
	ResetUploads(ctx context.Context) error
	PendingDeletes(ctx context.Context, after string, limit int) ([]string, error)
	ForgetDelete(ctx context.Context, key string) error
	// BackingUp reports whether a backup is being made, which needs all objects.
	BackingUp(ctx context.Context, now time.Time) (bool, error)
	// Unknown returns those of the keys that no row knows, pending ones aside.
	Unknown(ctx context.Context, keys []string) ([]string, error)
}

// HashStore knows the blobs whose hash nobody has taken yet.
type HashStore interface {
	// Unhashed goes by key, from after the given one.
	Unhashed(ctx context.Context, after string, limit int) ([]string, error)
	SetHash(ctx context.Context, key, sha256 string) error
}

// Stores is what this room asks of the database, by who asks.
type Stores struct {
	Uploads  UploadStore
	List     ListStore
	Cleaning CleaningStore
	Hashes   HashStore
}

// Service answers a team's questions about its files.
type Service struct {
	stores  Stores
	bytes   Bytes
	catalog credits.Catalog
	now     func() time.Time
	full    func(context.Context) error // whether there is no room for more
	archive Archives
}

// Archives says where a file that is a folder can be read as an archive.
type Archives func(f File, until time.Time, base string) string

// SignArchives has folders listed with the addresses of their archives.
func (s *Service) SignArchives(of Archives) { s.archive = of }

// RefuseWhile has uploads refused with the error that a check returns.
func (s *Service) RefuseWhile(full func(context.Context) error) { s.full = full }

func (s *Service) hasRoom(ctx context.Context) error {
	if s.full == nil {
		return nil
	}
	return s.full(ctx)
}

// NewService makes the room.
func NewService(stores Stores, bytes Bytes, catalog credits.Catalog, now func() time.Time) *Service {
	return &Service{stores: stores, bytes: bytes, catalog: catalog, now: now}
}

// UploadLife is how long an address takes an upload.
const UploadLife = 5 * time.Minute

const (
	maxSize      = 5 * credits.GB
	downloadLife = 15 * time.Minute
)

// Presign is what somebody wants to upload.
type Presign struct {
	Name        string
	ContentType string
	Size        int64
	Entries     []folders.Entry // of a folder, which is sent in parts and has FolderType
	Base        string          // the public URL they came by
}

// Presigned is where it may be sent.
type Presigned struct {
	Key       string
	URL       string
	ExpiresAt time.Time
}

// Presign allows one upload: its type, size and room are checked before any
// byte moves.
func (s *Service) Presign(ctx context.Context, caller access.Caller, in Presign) (Presigned, error) {
	if err := caller.Must(access.UploadFiles); err != nil {
		return Presigned{}, err
	}
	if err := check(in); err != nil {
		return Presigned{}, err
	}
	if err := s.hasRoom(ctx); err != nil {
		return Presigned{}, err
	}
	plan, err := s.stores.List.PlanOf(ctx, caller.Team)
	if err != nil {
		return Presigned{}, err
	}
	terms := s.catalog.TermsOf(plan)
	now := s.now()
	id := ids.NewFile()
	r := Reservation{
		Key: uploadsOf(caller.Team) + id + "/" + in.Name, Team: caller.Team, ID: id, Name: in.Name,
		ContentType: in.ContentType, Size: in.Size, CreatedBy: caller.User, CreatedAt: now, ExpiresAt: now.Add(UploadLife),
	}
	if err := s.stores.Uploads.Reserve(ctx, r, terms.StorageBytes); err != nil {
		return Presigned{}, err
	}
	url, err := s.bytes.Presigner.PresignPut(ctx, Upload{Key: r.Key, ContentType: r.ContentType, Size: r.Size, Expires: r.ExpiresAt, Base: in.Base})
	return Presigned{Key: r.Key, URL: url, ExpiresAt: r.ExpiresAt}, err
}

// Listed is a file with where it is downloaded.
type Listed struct {
	File
	URL       string
	Archive   string // where it is read as an archive, if it is a folder
	DataURL   string // where the bytes of its files are, if it is a folder
	ExpiresAt time.Time
}

// Files lists the team's files, uploads first, each kind newest first, with
// download addresses on the caller's public URL. The list goes on after next, if
// that is a place.
func (s *Service) Files(ctx context.Context, caller access.Caller, f Filter, after Place, limit int, base string) (list []Listed, next Place, err error) {
	if err := caller.Must(access.Read); err != nil {
		return nil, next, err
	}
	if err := s.settleForList(ctx, caller.Team, f.Keys); err != nil {
		return nil, next, err
	}
	begin := File{Source: after.Source, ID: after.ID}
	found, last, err := search.Find(search.ParseParts(f.Words), limit, begin, func(file File) string { return file.Name }, func(after File, n int) ([]File, error) {
		return s.stores.List.Files(ctx, caller.Team, f, Place{after.Source, after.ID}, n)
	})
	if err != nil {
		return nil, next, err
	}
	if last != nil {
		next = Place{last.Source, last.ID}
	}
	list = make([]Listed, len(found))
	for i, f := range found {
		if list[i], err = s.listed(ctx, f, base); err != nil {
			return nil, next, err
		}
	}
	return list, next, nil
}

func (s *Service) listed(ctx context.Context, f File, base string) (Listed, error) {
	until := s.now().Add(downloadLife)
	url, err := s.bytes.Presigner.PresignGet(ctx, Download{Key: f.Blob, Name: f.Name, ContentType: f.ContentType, Expires: until, Base: base})
	l := Listed{File: f, URL: url, ExpiresAt: until}
	if err != nil || f.Folder == nil {
		return l, err
	}
	if s.archive != nil {
		l.Archive = s.archive(f, until, base)
	}
	l.DataURL, err = s.bytes.Presigner.PresignGet(ctx, Download{Key: f.Folder.Data, Name: f.Name, ContentType: "application/octet-stream", Expires: until, Base: base})
	return l, err
}

// Delete removes one file. Members may delete only what they brought.
func (s *Service) Delete(ctx context.Context, caller access.Caller, source Source, key string) error {
	if err := caller.Must(access.DeleteFiles); err != nil {
		return err
	}
	if err := s.SettleKeys(ctx, caller.Team, []string{key}); err != nil {
		return err
	}
	f, err := s.stores.List.File(ctx, caller.Team, source, key)
	if err != nil {
		return err
	}
	if f.CreatedBy != caller.User && !caller.May(access.DeleteAnyFile) {
		return fault.Forbidden("only admins and owners can delete someone else's file")
	}
	pending, err := s.stores.List.DeleteFile(ctx, caller.Team, key)
	if err != nil {
		return err
	}
	return s.DeleteNow(ctx, pending)
}

// deletePatience is how long a request deletes bytes, within the time of an ordinary answer.
const deletePatience = 5 * time.Second

// DeleteNow deletes pending bytes that somebody just deleted, as far as the object store
// does so in a few seconds; upkeep does the rest. While a backup is made they stay.
func (s *Service) DeleteNow(ctx context.Context, keys []string) error {
	patient, cancel := context.WithTimeout(ctx, deletePatience)
	defer cancel()
	for some := range slices.Chunk(keys, cleaningBatch) {
		waits, err := s.stores.Cleaning.BackingUp(patient, s.now())
		if err == nil && !waits {
			err = s.deletePending(patient, some).Why
		}
		if patient.Err() != nil {
			return ctx.Err()
		}
		if err != nil || waits {
			return err
		}
	}
	return nil
}

// DeleteRun deletes every file that a run produced or consumed. Members may do
// that for runs they started, as far as the files are theirs.
func (s *Service) DeleteRun(ctx context.Context, caller access.Caller, run ids.Run) (files int, bytes int64, err error) {
	if err := caller.Must(access.DeleteFiles); err != nil {
		return 0, 0, err
	}
	list, starter, err := s.stores.List.FilesOfRun(ctx, caller.Team, run)
	if err != nil {
		return 0, 0, err
	}
	mine := starter == string(caller.User)
	for _, f := range list {
		mine = mine && (f.Source == FromRun || f.CreatedBy == caller.User)
	}
	if !mine && !caller.May(access.DeleteAnyFile) {
		return 0, 0, fault.Forbidden("only admins and owners can delete the files of someone else's run")
	}
	var pending []string
	for _, f := range list {
		keys, err := s.stores.List.DeleteFile(ctx, caller.Team, f.Key)
		if err != nil {
			return files, bytes, err
		}
		pending = append(pending, keys...)
		files, bytes = files+1, bytes+f.Contents()
	}
	return files, bytes, s.DeleteNow(ctx, pending)
}
