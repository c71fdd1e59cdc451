package objects

import (
	"strings"
	"unicode"
)

// Attachment is the Content-Disposition under which an object is downloaded:
// never shown in place, and named so that neither quotes nor text that runs
// backwards mislead (RFC 6266, with the plain name for old clients first).
func Attachment(name string) string {
	name = strings.Map(harmless, strings.ToValidUTF8(name, "_"))
	if name == "" {
		return "attachment"
	}
	plain := strings.Map(func(r rune) rune {
		if notPrintable(r) || r == '%' {
			return '_'
		}
		return r
	}, name)
	disposition := `attachment; filename="` + plain + `"`
	if plain != name {
		disposition += "; filename*=UTF-8''" + extended(name)
	}
	return disposition
}

// harmless takes out what separates folders, ends a quotation, controls a
// terminal or, as U+202E does, turns the order of letters around.
func harmless(r rune) rune {
	if strings.ContainsRune(`/\"`, r) || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
		return '_'
	}
	return r
}

// extended is the encoding of RFC 5987.
func extended(name string) string {
	const hexDigits, unescaped = "0123456789ABCDEF", "!#$&+-.^_`|~"
	var b strings.Builder
	for _, c := range []byte(name) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
		if letter || strings.IndexByte(unescaped, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
	}
	return b.String()
}
