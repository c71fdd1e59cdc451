package runs

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"path"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
)

// signedReport is what a report's address allows: to read one output, as it is, for a
// while.
type signedReport struct {
	Blob    string `json:"b"`
	Name    string `json:"n"`
	Size    int64  `json:"s"`
	Mark    string `json:"m"`
	Expires int64  `json:"e"` // seconds since 1970

	Folder *signedFolder `json:"f,omitempty"` // its address gives an archive, not a page
}

// signedFolder is what a folder has beyond its manifest.
type signedFolder struct {
	SHA256 string `json:"h"` // of the manifest
	Data   string `json:"d"` // the key of the bytes of its files
	Bytes  int64  `json:"b"`
	Mark   string `json:"m"` // of these bytes
}

// isReport reports whether an output is a page.
func isReport(name, contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	ending := strings.ToLower(path.Ext(name))
	return media == "text/html" || ending == ".html" || ending == ".htm"
}

// Token is a report, signed.
func (r signedReport) Token(key []byte) string {
	text, err := json.Marshal(r)
	if err != nil { // texts and numbers alone
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(text) + "." + base64.RawURLEncoding.EncodeToString(signReport(key, text))
}

func signReport(key, text []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return mac.Sum(nil)
}

// readReportToken is forbidden unless we signed exactly this, and it is in time.
func readReportToken(key []byte, token string, now time.Time) (r signedReport, err error) {
	body, seal, _ := strings.Cut(token, ".")
	text, err := base64.RawURLEncoding.Strict().DecodeString(body)
	sum, sumErr := base64.RawURLEncoding.Strict().DecodeString(seal)
	if err != nil || sumErr != nil || !hmac.Equal(sum, signReport(key, text)) {
		return r, fault.Forbidden("this link is not valid: open the file from Millrace again")
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, err
	}
	if !now.Before(time.Unix(r.Expires, 0)) {
		return r, fault.Forbidden("this address has expired: open the report again from the page of its run")
	}
	return r, nil
}
