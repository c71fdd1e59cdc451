// Package addresses has the rules of inputs that lie elsewhere: how an address is
// written, which objects a pattern means, and what a run keeps of them. Asking
// the other side is package remote's business.
package addresses

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/ids"
)

// Address is where an input lies, as somebody gave it.
type Address struct {
	URL        string         `json:"url"`
	Connection ids.Connection `json:"connection,omitempty"` // empty: it is asked for as nobody
	SHA256     string         `json:"sha256,omitempty"`     // of what must be there; empty: of whatever is
}

// Object is what was at an address when a run was accepted. Its Address has no
// pattern.
type Object struct {
	Address
	Endpoint string // whose word the etag is: scheme and host
	Size     int64  // bytes; -1: not known
	ETag     string // of these bytes and no others; empty: there is none
	Learnt   string // SHA-256 of the bytes, once somebody has read them
}

// Hash is the SHA-256 that the bytes must have, or empty.
func (o Object) Hash() string {
	if o.Learnt != "" {
		return o.Learnt
	}
	return o.SHA256
}

// Name is what the object is called, the end of its address.
func (a Address) Name() string {
	if _, key, ok := a.S3(); ok {
		return path.Base(key)
	}
	if u, err := url.Parse(a.URL); err == nil {
		if name := path.Base(u.Path); name != "/" && name != "." && name != ".." {
			return name
		}
	}
	return "file"
}

// Shown is the address without what may be secret in it: some links let
// everybody in who has them whole.
func (a Address) Shown() string {
	if _, _, ok := a.S3(); ok {
		return a.URL
	}
	shown := a.URL
	if end := strings.IndexAny(shown, "?#"); end >= 0 {
		shown = shown[:end]
	}
	return credentials.ReplaceAllString(shown, "$1")
}

var credentials = regexp.MustCompile(`^(https?://)[^/]*@`)

// ShownIn is a value as JSON in which addresses have the form of Shown. A value without
// addresses stays as it was written.
func ShownIn(raw json.RawMessage) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return raw
	}
	value, changed := shownIn(value)
	if !changed {
		return raw
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // it was JSON before
	return bytes.TrimSpace(text.Bytes())
}

func shownIn(value any) (shown any, changed bool) {
	switch v := value.(type) {
	case string:
		if Is(v) {
			short := Address{URL: v}.Shown()
			return short, short != v
		}
	case []any:
		for i, one := range v {
			one, change := shownIn(one)
			v[i], changed = one, changed || change
		}
	case map[string]any:
		for name, one := range v {
			one, change := shownIn(one)
			v[name], changed = one, changed || change
		}
	}
	return value, changed
}

const (
	s3Scheme = "s3://"

	// MaxMatches is how many objects one pattern may mean.
	MaxMatches = 10_000
	// MaxGiven is how many addresses a run may be given one by one.
	MaxGiven = 1000

	maxURL = 4096 // bytes
	maxKey = 1024 // bytes of a key of S3
)

// Is reports whether a text is an address, not the key of a file.
func Is(text string) bool {
	return strings.HasPrefix(text, s3Scheme) || strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")
}

// S3 is where an address of an S3 store points. Keys stand in it as they are:
// nothing is escaped.
func (a Address) S3() (bucket, key string, ok bool) {
	rest, ok := strings.CutPrefix(a.URL, s3Scheme)
	bucket, key, _ = strings.Cut(rest, "/")
	return bucket, key, ok
}

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// Problem is what is wrong with how an address is written, or empty.
func (a Address) Problem() string {
	switch {
	case !Is(a.URL):
		return "is not an address that begins with s3:// or https://"
	case len(a.URL) > maxURL || !utf8.ValidString(a.URL) || strings.ContainsFunc(a.URL, unicode.IsControl):
		return "is no address"
	case a.SHA256 != "" && !isHash(a.SHA256):
		return "has a sha256 that is not 64 hexadecimal digits"
	}
	if bucket, key, ok := a.S3(); ok {
		return problemOfKey(bucket, key)
	}
	u, err := url.Parse(a.URL)
	switch {
	case err != nil || u.Host == "":
		return "is no address"
	case u.User != nil:
		return "has a password in it, which everybody could read: use a connection"
	case u.Fragment != "":
		return "has a fragment, which no server is ever sent"
	}
	return ""
}

func problemOfKey(bucket, key string) string {
	switch {
	case !bucketName.MatchString(bucket):
		return "names no bucket: s3://bucket/key"
	case key == "" || len(key) > maxKey:
		return "names no object: s3://bucket/key"
	case strings.HasSuffix(key, "/"):
		return "is a folder: name the objects in it, as s3://" + bucket + "/" + key + "*"
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == "." || part == ".." {
			return "has a part `" + part + "`, which stores understand differently"
		}
	}
	return ""
}

func isHash(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == 32
}

// Pattern reports whether an address means all objects that match it.
func (a Address) Pattern() bool {
	_, key, ok := a.S3()
	return ok && strings.ContainsAny(key, "*?")
}

// Match reports whether a pattern means a key: `*` is any text within a folder,
// `?` any one character.
func Match(pattern, key string) bool {
	ok, err := path.Match(strings.NewReplacer(`\`, `\\`, `[`, `\[`).Replace(pattern), key)
	return err == nil && ok
}

// Listing is where the objects of a pattern are looked for: below a prefix, and
// whether in that folder alone.
func Listing(pattern string) (prefix string, flat bool) {
	at := strings.IndexAny(pattern, "*?")
	if at < 0 {
		return pattern, true
	}
	return pattern[:at], !strings.Contains(pattern[at:], "/")
}

// Element is a part of an input: the key of a file, or an address.
type Element struct {
	Key     string
	Address *Address
}

var errForm = errors.New("must be the key of a file, an address, or a list of these")

// Read takes what was given for an input.
func Read(raw json.RawMessage) ([]Element, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '[' {
		one, err := element(raw)
		return []Element{one}, err
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, errForm
	}
	elements := make([]Element, len(list))
	for i, raw := range list {
		var err error
		if elements[i], err = element(bytes.TrimSpace(raw)); err != nil {
			return nil, err
		}
	}
	return elements, nil
}

func element(raw json.RawMessage) (e Element, err error) {
	if len(raw) > 0 && raw[0] == '{' {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.DisallowUnknownFields()
		e.Address = &Address{}
		if decoder.Decode(e.Address) != nil {
			return e, errors.New("takes {url, connection, sha256} as an address, each a text")
		}
		e.Address.SHA256 = strings.ToLower(e.Address.SHA256)
		return e, nil
	}
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &e.Key) != nil || e.Key == "" {
		return e, errForm
	}
	if Is(e.Key) {
		e.Address, e.Key = &Address{URL: e.Key}, ""
	}
	return e, nil
}
