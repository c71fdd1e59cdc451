package runs

import (
	"context"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
)

// reportURL is where an output opens as a report; empty if it is none. The
// file's name comes after the token, as the names of the files of a folder
// would.
func (s *Service) reportURL(o Output, until time.Time, base string) string {
	if o.Folder != nil || !isReport(o.Name, o.ContentType) {
		return ""
	}
	token := signedReport{Blob: o.Blob, Name: o.Name, Size: o.Size, Mark: o.Mark, Expires: until.Unix()}.Token(s.reports)
	return strings.TrimSuffix(base, "/") + (&url.URL{Path: "/reports/" + token + "/" + o.Name}).String()
}

// Report opens the output that a signed address names. The caller closes it.
func (s *Service) Report(ctx context.Context, token, name string) (io.ReadCloser, int64, error) {
	t, err := readReportToken(s.reports, token, s.now())
	if err != nil {
		return nil, 0, err
	}
	if t.Folder != nil {
		return nil, 0, fault.Forbidden("this address is not that of a report")
	}
	if name != t.Name {
		return nil, 0, fault.NotFound("the report has no such file")
	}
	gone, err := s.verifier.gone(ctx, Output{Blob: t.Blob, Name: t.Name, Size: t.Size, Mark: t.Mark})
	if err == nil && gone {
		err = fault.NotFound("the report is not there any more")
	}
	if err != nil {
		return nil, 0, err
	}
	body, err := s.objects.Open(ctx, t.Blob, 0, -1)
	return body, t.Size, err
}
