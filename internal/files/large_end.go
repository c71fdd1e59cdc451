package files

import (
	"context"
	"crypto/subtle"
	"errors"
	"strings"

	"github.com/millrace/millrace/internal/domain/access"
	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/domain/folders"
)

// Finish is what a client says of a file whose parts it has sent.
type Finish struct {
	Parts   []Part          // by their numbers and etags; none: whatever has arrived
	SHA256  string          // of the whole; empty: nobody checks it now
	Entries []folders.Entry // of a folder
	Base    string
}

// Complete makes the parts a file. Whoever lost the answer may ask again.
func (s *Uploads) Complete(ctx context.Context, caller access.Caller, id string, in Finish) (Listed, error) {
	u, err := s.known(ctx, caller, id)
	if err != nil {
		return Listed{}, err
	}
	if in.SHA256 = strings.ToLower(in.SHA256); in.SHA256 != "" && !isSHA256(in.SHA256) {
		return Listed{}, fault.Problems([]fault.Detail{{Path: "sha256", Message: "is not 64 hexadecimal digits"}}, "sha256 is not 64 hexadecimal digits")
	}
	if u.Done { // the answer was lost
		return s.file(ctx, u, in.Base)
	}
	if u.ContentType == FolderType || in.Entries != nil {
		if err := checkFolder(u.ContentType, in.Entries, u.Size); err != nil {
			return Listed{}, err
		}
		if u.Manifest > 0 && (folders.Manifest{Entries: in.Entries}).Size() != u.Manifest {
			return Listed{}, wrongEntries("are others than at the beginning of the upload")
		}
	}
	if u, err = s.opened(ctx, u); err != nil {
		return Listed{}, err
	}
	blob, err := s.join(ctx, u, in.Parts)
	if err != nil {
		return Listed{}, err
	}
	// What became of the bytes is noted although the sender has left.
	ctx = context.WithoutCancel(ctx)
	if u.ContentType == FolderType {
		err = s.keepFolder(ctx, u, blob, in)
	} else if blob, err = s.inspect(ctx, u, blob, in.SHA256); err == nil {
		err = s.store.KeepUpload(ctx, u.Key, blob, s.files.now())
	}
	if fault.Is(err, fault.KindNotFound) { // called off meanwhile
		err = errors.Join(err, s.files.bytes.Objects.Delete(ctx, u.Key))
	}
	if err != nil {
		return Listed{}, err
	}
	return s.file(ctx, u, in.Base)
}

// join makes the parts an object, if all have arrived as they were sent.
func (s *Uploads) join(ctx context.Context, u LargeUpload, sent []Part) (Blob, error) {
	parts, err := s.parts.ArrivedParts(ctx, u.Key, u.StorageID)
	if err == nil {
		err = whole(u, parts, sent)
	}
	if err != nil && !fault.Is(err, fault.KindNotFound) { // joined before, by a server that died then
		return Blob{}, err
	}
	if _, err := s.store.TouchUpload(ctx, u.Key, s.files.now()); err != nil {
		return Blob{}, err
	}
	if u.Size == 0 {
		return s.empty(ctx, u)
	}
	return s.parts.JoinParts(ctx, u.Key, u.StorageID, parts)
}

// file is what an upload has become.
func (s *Uploads) file(ctx context.Context, u LargeUpload, base string) (Listed, error) {
	f, err := s.files.stores.List.File(ctx, u.Team, FromUpload, u.Key)
	if err != nil {
		return Listed{}, err
	}
	return s.files.listed(ctx, f, base)
}

// inspect refuses what is no file of the announced kind, and forgets it.
func (s *Uploads) inspect(ctx context.Context, u LargeUpload, blob Blob, want string) (Blob, error) {
	isProgram, err := s.files.sniff(ctx, u.Key)
	if err != nil {
		return blob, err
	}
	if want != "" && blob.SHA256 == "" && !isProgram && blob.Size == u.Size {
		if blob.SHA256, err = s.files.sum(ctx, u.Key); err != nil {
			return blob, err
		}
	}
	switch {
	case isProgram:
		err = errProgram
	case blob.Size != u.Size:
		err = fault.Invalid("%d bytes were announced, and %d have arrived", u.Size, blob.Size)
	case want != "" && subtle.ConstantTimeCompare([]byte(want), []byte(blob.SHA256)) != 1:
		err = fault.Invalid("the file arrived damaged: its SHA-256 is %s. Upload it again", blob.SHA256).WithCode("sha256_mismatch")
	default:
		return blob, nil
	}
	return blob, errors.Join(err, s.forget(ctx, u))
}

// forget ends an upload with its bytes, unless somebody else has made it a file
// meanwhile. Once the row is gone nobody can any more.
func (s *Uploads) forget(ctx context.Context, u LargeUpload) error {
	if err := s.store.DropUpload(ctx, u.Key); err != nil {
		return err
	}
	_, err := s.files.stores.List.File(ctx, u.Team, FromUpload, u.Key)
	if fault.Is(err, fault.KindNotFound) {
		return s.files.bytes.Objects.Delete(ctx, u.Key)
	}
	return err
}

// whole is nil where every part has arrived as it was sent.
func whole(u LargeUpload, arrived, said []Part) error {
	etags := map[int]string{}
	for _, p := range arrived {
		if p.Number < 1 || p.Number > u.PartCount() || p.Size != u.PartLength(p.Number) {
			return fault.Invalid("part %d has %d bytes and should have %d: send it again", p.Number, p.Size, u.PartLength(p.Number)).WithCode("incomplete_upload")
		}
		etags[p.Number] = p.ETag
	}
	for n := 1; n <= u.PartCount(); n++ {
		if etags[n] == "" {
			return fault.Conflict("part %d of %d has not arrived yet", n, u.PartCount()).WithCode("incomplete_upload")
		}
	}
	if len(said) > 0 && len(said) != u.PartCount() {
		return fault.Problems([]fault.Detail{{Path: "parts", Message: "does not name every part once"}}, "the upload has %d parts, and %d are named", u.PartCount(), len(said))
	}
	seen := map[int]bool{}
	for _, p := range said {
		if seen[p.Number] || etags[p.Number] == "" {
			return fault.Problems([]fault.Detail{{Path: "parts", Message: "does not name every part once"}}, "the upload has no part %d, or it is named twice", p.Number)
		}
		if seen[p.Number] = true; strings.Trim(p.ETag, `"`) != etags[p.Number] {
			return fault.Conflict("part %d is another one than was sent: send it again", p.Number).WithCode("part_changed")
		}
	}
	return nil
}

func isSHA256(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}
