package runs

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
)

// reportToken is what a report's address allows: to read one output, as it is, for
// a while.
type reportToken struct {
	Blob    string `json:"b"`
	Name    string `json:"n"`
	Size    int64  `json:"s"`
	Mark    string `json:"m"`
	Expires int64  `json:"e"` // seconds since 1970
}

// isReport reports whether an output is a page.
func isReport(o Output) bool {
	media, _, _ := strings.Cut(o.ContentType, ";")
	ending := strings.ToLower(path.Ext(o.Name))
	return media == "text/html" || ending == ".html" || ending == ".htm"
}

// reportURL is where an output opens as a report; empty if it is none. The
// file's name comes after the token, as the names of the files of a folder
// would.
func (s *Service) reportURL(o Output, until time.Time, base string) string {
	if !isReport(o) {
		return ""
	}
	text, err := json.Marshal(reportToken{o.Blob, o.Name, o.Size, o.Mark, until.Unix()})
	if err != nil { // texts and numbers alone
		return ""
	}
	token := base64.RawURLEncoding.EncodeToString(text) + "." + base64.RawURLEncoding.EncodeToString(s.sign(text))
	return strings.TrimSuffix(base, "/") + (&url.URL{Path: "/reports/" + token + "/" + o.Name}).String()
}

func (s *Service) sign(text []byte) []byte {
	mac := hmac.New(sha256.New, s.reports)
	mac.Write(text)
	return mac.Sum(nil)
}

// readReportToken is forbidden unless we signed exactly this, and it is in time.
func (s *Service) readReportToken(token string) (t reportToken, err error) {
	body, seal, _ := strings.Cut(token, ".")
	text, err := base64.RawURLEncoding.Strict().DecodeString(body)
	sum, sumErr := base64.RawURLEncoding.Strict().DecodeString(seal)
	if err != nil || sumErr != nil || !hmac.Equal(sum, s.sign(text)) {
		return t, fault.Forbidden("this address is not one that Millrace signed")
	}
	if err := json.Unmarshal(text, &t); err != nil {
		return t, err
	}
	if !s.now().Before(time.Unix(t.Expires, 0)) {
		return t, fault.Forbidden("this address has expired: open the report again from the page of its run")
	}
	return t, nil
}

// Report opens the output that a signed address names. The caller closes it.
func (s *Service) Report(ctx context.Context, token, name string) (io.ReadCloser, int64, error) {
	t, err := s.readReportToken(token)
	if err != nil {
		return nil, 0, err
	}
	if name != t.Name {
		return nil, 0, fault.NotFound("the report has no such file")
	}
	err = s.intact(ctx, Output{Blob: t.Blob, Name: t.Name, Size: t.Size, Mark: t.Mark})
	if fault.Is(err, fault.KindConflict) {
		err = fault.NotFound("the report is not there any more")
	}
	if err != nil {
		return nil, 0, err
	}
	body, err := s.objects.Open(ctx, t.Blob, 0, -1)
	return body, t.Size, err
}
