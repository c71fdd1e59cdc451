package objects

import (
	"mime"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/internal/domain/fault"
)

// What file systems and S3 both take.
const (
	maxKey     = 1000 // bytes
	maxSegment = 255
)

// CheckKey refuses, with fault.KindInvalid, what is not a clean relative path
// on every store.
func CheckKey(key string) error {
	if len(key) > maxKey {
		return fault.Invalid("an object's key has at most %d bytes", maxKey)
	}
	if !utf8.ValidString(key) || strings.ContainsFunc(key, func(r rune) bool { return r == '\\' || unicode.IsControl(r) }) {
		return fault.Invalid("an object's key has no backslashes, control characters or broken text")
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment == "." || segment == ".." || len(segment) > maxSegment {
			return fault.Invalid("an object's key is a path of names of 1 to %d bytes, none of them . or ..", maxSegment)
		}
	}
	return nil
}

// CheckPrefix refuses what is not a key followed by a slash.
func CheckPrefix(prefix string) error {
	folder, ok := strings.CutSuffix(prefix, "/")
	if !ok {
		return fault.Invalid("a prefix of objects' keys ends in a slash")
	}
	return CheckKey(folder)
}

// CheckPage refuses arguments that List does not take.
func CheckPage(prefix, after string, limit int) error {
	if limit < 1 || limit > MaxPage {
		return fault.Invalid("a page has 1 to %d objects", MaxPage)
	}
	if after != "" {
		if err := CheckKey(after); err != nil {
			return err
		}
	}
	if prefix == "" {
		return nil
	}
	return CheckPrefix(prefix)
}

// CheckUpload refuses what cannot be signed.
func CheckUpload(u Upload) error {
	if u.Size < 0 {
		return fault.Invalid("an upload has a length")
	}
	if err := CheckKey(u.Key); err != nil {
		return err
	}
	return CheckType(u.ContentType)
}

// CheckDownload refuses what cannot be signed.
func CheckDownload(d Download) error {
	if err := CheckKey(d.Key); err != nil {
		return err
	}
	return CheckType(d.ContentType)
}

// CheckType refuses what is no media type, or could end a header line.
func CheckType(contentType string) error {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil || !strings.Contains(media, "/") || strings.ContainsFunc(contentType, notPrintable) {
		return fault.Invalid("a content type is of the form type/subtype")
	}
	return nil
}

func notPrintable(r rune) bool { return r < ' ' || r > '~' }
