package disk

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/internal/domain/fault"
	"github.com/millrace/millrace/internal/files"
	"github.com/millrace/millrace/internal/objects"
)

// served is where the binary serves objects, below each of its origins.
const served = "/objects/"

// The parameters of a signed address.
const (
	paramMethod    = "m"
	paramType      = "t"
	paramLength    = "l" // of a PUT
	paramPart      = "p" // of a PUT of a part
	paramName      = "n" // of a GET
	paramExpires   = "e" // seconds since 1970
	paramSignature = "s"
)

// Signer makes and checks the addresses under which the binary itself takes
// and gives objects. A signature binds everything but the host, because
// several origins serve the same objects.
type Signer struct{ key []byte }

// NewSigner takes the secret that all replicas share.
func NewSigner(key []byte) *Signer { return &Signer{key: key} }

// Signed is what an address allows.
type Signed struct {
	Method      string // PUT, or GET, which includes HEAD
	Key         string
	ContentType string
	Size        int64  // of a PUT
	Part        int    // of a PUT of a part
	Name        string // of a GET
	Expires     time.Time
}

// PresignPut signs an upload.
func (s *Signer) PresignPut(u objects.Upload) (string, error) {
	if err := objects.CheckUpload(u); err != nil {
		return "", err
	}
	return s.address(u.Base, u.Key, url.Values{
		paramMethod:  {http.MethodPut},
		paramType:    {u.ContentType},
		paramLength:  {strconv.FormatInt(u.Size, 10)},
		paramExpires: {strconv.FormatInt(u.Expires.Unix(), 10)},
	}), nil
}

// PresignPart signs the upload of a part.
func (s *Signer) PresignPart(p files.PartAddress) (string, error) {
	if err := objects.CheckKey(p.Key); err != nil {
		return "", err
	}
	return s.address(p.Base, p.Key, url.Values{
		paramMethod:  {http.MethodPut},
		paramPart:    {strconv.Itoa(p.Number)},
		paramLength:  {strconv.FormatInt(p.Size, 10)},
		paramExpires: {strconv.FormatInt(p.Expires.Unix(), 10)},
	}), nil
}

// PresignGet signs a download.
func (s *Signer) PresignGet(d objects.Download) (string, error) {
	if err := objects.CheckDownload(d); err != nil {
		return "", err
	}
	return s.address(d.Base, d.Key, url.Values{
		paramMethod:  {http.MethodGet},
		paramType:    {d.ContentType},
		paramName:    {d.Name},
		paramExpires: {strconv.FormatInt(d.Expires.Unix(), 10)},
	}), nil
}

func (s *Signer) address(base, key string, q url.Values) string {
	q.Set(paramSignature, s.signature(key, q))
	return strings.TrimSuffix(base, "/") + (&url.URL{Path: served + key, RawQuery: q.Encode()}).String()
}

// signature covers the key and all parameters as they stand in the address.
// Both are escaped, so no two addresses read the same.
func (s *Signer) signature(key string, q url.Values) string {
	covered := maps.Clone(q)
	covered.Del(paramSignature)
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(url.PathEscape(key) + "?" + covered.Encode()))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Verify says what the address allows, if this method may be used on it at
// this time. Anything else than exactly what was signed is
// fault.KindForbidden. The caller holds the request to what comes back: the
// content type and length of a PUT.
func (s *Signer) Verify(method string, u *url.URL, now time.Time) (Signed, error) {
	key, ours := strings.CutPrefix(u.Path, served)
	q, err := url.ParseQuery(u.RawQuery)
	if !ours || err != nil || len(q[paramSignature]) != 1 ||
		!hmac.Equal([]byte(q.Get(paramSignature)), []byte(s.signature(key, q))) {
		return Signed{}, fault.Forbidden("this link is not valid: open the file from Millrace again")
	}
	signed, err := read(key, q)
	if err != nil {
		return Signed{}, err
	}
	if method != signed.Method && (method != http.MethodHead || signed.Method != http.MethodGet) {
		return Signed{}, fault.Forbidden("this link is for %s only", signed.Method)
	}
	if !now.Before(signed.Expires) {
		return Signed{}, fault.Forbidden("this link has expired; ask for another one")
	}
	return signed, nil
}

// read takes parameters whose signature is right apart.
func read(key string, q url.Values) (Signed, error) {
	signed := Signed{Method: q.Get(paramMethod), Key: key, ContentType: q.Get(paramType), Name: q.Get(paramName)}
	expires, err := strconv.ParseInt(q.Get(paramExpires), 10, 64)
	if err == nil && signed.Method == http.MethodPut {
		signed.Size, err = strconv.ParseInt(q.Get(paramLength), 10, 64)
	}
	if err == nil && q.Has(paramPart) {
		signed.Part, err = strconv.Atoi(q.Get(paramPart))
	}
	if err != nil {
		return Signed{}, fault.Forbidden("this link is not valid: open the file from Millrace again")
	}
	signed.Expires = time.Unix(expires, 0)
	return signed, nil
}
