package runs

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
)

// ArchiveURL is where an output can be read as an archive; empty if it is no folder.
func (s *Service) ArchiveURL(o Output, until time.Time, base string) string {
	if o.Folder == nil {
		return ""
	}
	folder := signedFolder{SHA256: o.SHA256, Data: o.Folder.Data, Bytes: o.Folder.Bytes, Mark: o.Folder.Mark}
	token := signedReport{Blob: o.Blob, Name: o.Name, Size: o.Size, Mark: o.Mark, Expires: until.Unix(), Folder: &folder}.Token(s.reports)
	return strings.TrimSuffix(base, "/") + (&url.URL{Path: "/archives/" + token + "/" + o.Name + ".zip"}).String()
}

// ArchivedFolder is the folder that a signed address names, if it is what it was.
func (s *Service) ArchivedFolder(ctx context.Context, token string) (Output, error) {
	t, err := readReportToken(s.reports, token, s.now())
	if err != nil {
		return Output{}, err
	}
	if t.Folder == nil {
		return Output{}, fault.Forbidden("this address is not that of an archive")
	}
	o := Output{
		Blob: t.Blob, Name: t.Name, Size: t.Size, SHA256: t.Folder.SHA256, Mark: t.Mark,
		Folder: &Folder{Data: t.Folder.Data, Bytes: t.Folder.Bytes, Mark: t.Folder.Mark},
	}
	gone, err := s.verifier.gone(ctx, o)
	if err == nil && gone {
		err = fault.NotFound("the folder is not there any more")
	}
	return o, err
}
