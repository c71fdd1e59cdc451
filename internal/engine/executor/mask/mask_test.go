package mask_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/millrace/millrace/internal/engine/executor/mask"
)

// encodings are the ways in which a program may write a secret, given what
// stands beside it.
var encodings = map[string]func(before, secret, after string) string{
	"plain":         func(b, s, a string) string { return b + s + a },
	"base64":        func(b, s, a string) string { return base64.StdEncoding.EncodeToString([]byte(b + s + a)) },
	"base64url":     func(b, s, a string) string { return base64.RawURLEncoding.EncodeToString([]byte(b + s + a)) },
	"base64 lines":  func(b, s, a string) string { return wrapped(base64.StdEncoding.EncodeToString([]byte(b+s+a)), 76) },
	"hex":           func(b, s, a string) string { return b + hex.EncodeToString([]byte(s)) + a },
	"hex of all":    func(b, s, a string) string { return hex.EncodeToString([]byte(b + s + a)) },
	"HEX":           func(b, s, a string) string { return strings.ToUpper(hex.EncodeToString([]byte(b + s + a))) },
	"hex lines":     func(b, s, a string) string { return wrapped(hex.EncodeToString([]byte(b+s+a)), 60) },
	"hex with gaps": func(b, s, a string) string { return strings.TrimSpace(fmt.Sprintf("% x", b+s+a)) },
	"query":         func(b, s, a string) string { return url.QueryEscape(b + s + a) },
	"path":          func(b, s, a string) string { return url.PathEscape(b + s + a) },
	"all percent":   func(b, s, a string) string { return eachByte("%%%02x", b+s+a) },
	"json":          func(b, s, a string) string { text, _ := json.Marshal(b + s + a); return string(text) },
	"ascii json": func(b, s, a string) string {
		var out strings.Builder
		for _, c := range b + s + a {
			switch {
			case c > 0xffff:
				c -= 0x10000
				fmt.Fprintf(&out, `\u%04x\u%04X`, 0xd800+c>>10, 0xdc00+c&0x3ff)
			case c > 126 || c < ' ' || c == '"' || c == '\\':
				fmt.Fprintf(&out, `\u%04x`, c)
			default:
				out.WriteRune(c)
			}
		}
		return out.String()
	},
	"octal":          func(b, s, a string) string { return eachByte(`\%03o`, b+s+a) },
	"short octal":    func(b, s, a string) string { return eachByte(`\%o`, b+s+a) },
	"octal for echo": func(b, s, a string) string { return eachByte(`\0%03o`, b+s+a) },
	"quoted by git": func(b, s, a string) string {
		var out strings.Builder
		for _, c := range []byte(b + s + a) {
			switch {
			case c == '"' || c == '\\':
				out.Write([]byte{'\\', c})
			case c > 126:
				fmt.Fprintf(&out, `\%03o`, c)
			default:
				out.WriteByte(c)
			}
		}
		return out.String()
	},
	"quoted by a shell": func(b, s, a string) string {
		var out strings.Builder
		for _, c := range b + s + a {
			if strings.ContainsRune(" \\'\"$&|;()<>*", c) {
				out.WriteByte('\\')
			}
			out.WriteRune(c)
		}
		return out.String()
	},
}

func eachByte(format, text string) string {
	var out strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&out, format, c)
	}
	return out.String()
}

func wrapped(text string, width int) string {
	var out strings.Builder
	for i, c := range text {
		if i > 0 && i%width == 0 {
			out.WriteByte('\n')
		}
		out.WriteRune(c)
	}
	return out.String()
}

// through writes a text in pieces.
func through(s *mask.Set, pieces ...[]byte) string {
	stream := s.Stream()
	var out bytes.Buffer
	for _, p := range pieces {
		out.Write(stream.Write(p))
	}
	out.Write(stream.End())
	return out.String()
}

func pieces(t *rapid.T, text string) (list [][]byte) {
	for len(text) > 0 {
		n := rapid.IntRange(1, min(len(text), 20)).Draw(t, "piece")
		list = append(list, []byte(text[:n]))
		text = text[n:]
	}
	return list
}

const secretText = `[ -~é😀]{8,60}` // of no line ends

// Whatever stands around a secret, however it is written and cut, nothing of it
// comes through but what it shares with its neighbours.
func TestASecretIsMaskedHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	for name, encode := range encodings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				secret := rapid.StringMatching(secretText).Draw(t, "secret")
				before := rapid.StringMatching(`[g-z]{0,9}`).Draw(t, "before")
				after := rapid.StringMatching(`[g-z]{0,9}`).Draw(t, "after")
				text := encode(before, secret, after)
				got := through(mask.New([]string{secret, "another one"}), pieces(t, text)...)
				if !strings.Contains(got, mask.Shown) {
					t.Fatalf("%q became %q", text, got)
				}
				// What is left are the neighbours, and at most a letter on
				// either side that is theirs in part.
				alone := len(encode(before, "", "")) + len(encode("", "", after)) + 2 + len(mask.Shown)*len(secret)
				left := strings.ReplaceAll(got, mask.Shown, "")
				if len(left) > alone {
					t.Fatalf("%q became %q", text, got)
				}
				if name != "plain" && name != "quoted by a shell" {
					return
				}
				if want := before + mask.Shown + after; name == "plain" && got != want && !strings.Contains(before+after, secret[:1]) {
					t.Fatalf("%q became %q, not %q", text, got, want)
				}
			})
		})
	}
}

func TestTextWithoutSecretsIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := mask.New([]string{"hunter2-hunter2", "-----BEGIN KEY-----\nabcdefghijkl\nshort\n-----END KEY-----\n"})
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([hunter2%\\u00-9a-f=+ \n]|hunter2|%68|\\u0068|aHVudGVy|-----)*`).Draw(t, "text")
		if strings.Contains(text, "hunter2-") {
			t.Skip()
		}
		got := through(s, pieces(t, text)...)
		if got != text && !strings.Contains(got, mask.Shown) {
			t.Fatalf("%q became %q", text, got)
		}
	})
	for _, text := range []string{"hunter2 hunter2", "50%\n", `C:\new\table`, "aHVudGVyMg==", "100% \\u00 %6", "-----BEGIN\nKEY-----"} {
		if got := s.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestEachLongLineOfASecretIsMasked(t *testing.T) {
	t.Parallel()
	s := mask.New([]string{"first line\r\nshort\nanother line\n"})
	for text, want := range map[string]string{
		"first line":                             "***",
		"a first line and\nanother line\n":       "a ***and\n***\n",
		"short":                                  "short",
		"first line\r\nshort\nanother line\nend": "***end",
		"zmlyc3QgbGluZQ":                         "zmlyc3QgbGluZQ",
		"Zmlyc3QgbGluZQ==":                       "***==",
	} {
		want = strings.ReplaceAll(want, "***and", "*** and")
		if got := s.Text(text); got != want {
			t.Errorf("%q became %q, not %q", text, got, want)
		}
	}
}

// A secret that repeats, or that begins again before it ends, is one mask, and
// takes no memory while it goes on.
func TestSecretsThatOverlapAreOne(t *testing.T) {
	t.Parallel()
	if got := mask.New([]string{"aaaaaaaa"}).Text("x" + strings.Repeat("a", 1000) + "y"); got != "x***y" {
		t.Errorf("got %q", got)
	}
	if got := mask.New([]string{"abcabcab", "cabcabxyz"}).Text("1abcabcabxyz2"); got != "1***2" {
		t.Errorf("got %q", got)
	}
}

// A line that has ended is given out, unless it ends like a secret begins.
func TestALineIsNotKeptWaiting(t *testing.T) {
	t.Parallel()
	stream := mask.New([]string{"correct horse battery"}).Stream()
	for _, line := range []string{"step 1 of 20\n", "50%\n", "path\\\n", "Y29y cor\n"} {
		if got := string(stream.Write([]byte(line))); got != line {
			t.Errorf("%q: got %q", line, got)
		}
	}
	if got := string(stream.Write([]byte("it is correct ho"))); got != "it is " {
		t.Errorf("got %q", got)
	}
	if got := string(stream.End()); got != "***" { // most of it is worth hiding
		t.Errorf("got %q", got)
	}
}

func TestNothingToMask(t *testing.T) {
	t.Parallel()
	if s := mask.New([]string{"short", "", "a\nb\nc"}); s != nil || s.Text("short") != "short" {
		t.Error("a short value is masked")
	}
}

func BenchmarkMask(b *testing.B) {
	text := bytes.Repeat([]byte("2026-11-15 12:00:00 INFO aligned 12345 reads of sample_17 (98.3%) in 1.2 s\n"), 100)
	s := mask.New([]string{"ghp_0123456789abcdefghijklmnopqrstuvwxyz"})
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s.Stream().Write(text)
	}
}
