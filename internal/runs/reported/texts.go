package reported

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// ownSecrets are tokens and secrets that we make, as they look in scripts.
var ownSecrets = regexp.MustCompile(`\b(oat_|ort_|mri_|mrr_|mrh_|whsec_)[A-Za-z0-9+/=_-]{16,}`)

const cutMark = "\n[cut]"

// Text is a text of a stranger as it is kept: valid, without NUL and without
// secrets of ours, and no longer than so many bytes.
func Text(s string, most int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\x00", "�")
	s = ownSecrets.ReplaceAllString(s, "***")
	if len(s) <= most {
		return s
	}
	s = s[:most-len(cutMark)]
	for r, size := utf8.DecodeLastRuneInString(s); r == utf8.RuneError && size == 1; r, size = utf8.DecodeLastRuneInString(s) {
		s = s[:len(s)-1] // a part of a character
	}
	return s + cutMark
}

// parameters is a JSON object of a stranger as it is kept; nil where it is too long.
func parameters(raw json.RawMessage) json.RawMessage {
	if len(raw) > maxParameters {
		return nil
	}
	return ownSecrets.ReplaceAll(bytes.ToValidUTF8(raw, []byte("�")), []byte("***"))
}

// line is a short text without line breaks.
func line(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
	s = strings.TrimSpace(ownSecrets.ReplaceAllString(s, "***"))
	if letters := []rune(s); len(letters) > most {
		s = string(letters[:most])
	}
	return s
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// How long ago something may have happened that is reported now, and how far ahead
// a stranger's clock may be.
const (
	oldest = 366 * 24 * time.Hour
	ahead  = 24 * time.Hour
)

// within is a reported time, or none where it cannot be: clocks of strangers are
// wrong by years, and databases do not take every year.
func within(t, now time.Time) time.Time {
	if t.Before(now.Add(-oldest)) || t.After(now.Add(ahead)) {
		return time.Time{}
	}
	return t
}
