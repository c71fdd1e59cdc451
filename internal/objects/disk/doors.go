package disk

import (
	"net/url"
	"time"

	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/objects"
)

// Transfer says what an address of ours allows, in the words of the rooms.
func (s *Signer) Transfer(method string, u *url.URL, now time.Time) (files.Transfer, error) {
	v, err := s.Verify(method, u, now)
	return files.Transfer{Key: v.Key, ContentType: v.ContentType, Size: v.Size, Part: v.Part, Disposition: objects.Attachment(v.Name)}, err
}
