package channels

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/millrace/millrace/internal/domain/environment"
)

const (
	maxList   = 1 << 30 // bytes of what a folder of a channel has
	maxRecord = 1 << 20 // of what it says of one package
	maxNames  = 1 << 20 // of packages
	maxDepth  = 100     // of what is passed over
)

// record is what a channel says of a package, as far as a solver needs it.
type record struct {
	Name          string          `json:"name"`
	Version       string          `json:"version"`
	Build         string          `json:"build"`
	BuildNumber   uint64          `json:"build_number"`
	Subdir        string          `json:"subdir"`
	Depends       []string        `json:"depends"`
	Constrains    []string        `json:"constrains,omitempty"`
	NoArch        json.RawMessage `json:"noarch,omitempty"`
	TrackFeatures json.RawMessage `json:"track_features,omitempty"`
	Timestamp     json.RawMessage `json:"timestamp,omitempty"`
	Size          json.RawMessage `json:"size,omitempty"`
	SHA256        string          `json:"sha256"`
}

var (
	hexHash  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	sections = map[string]bool{"packages": true, "packages.conda": true}
)

// budget is a reader that gives no more than so many bytes until it is told
// anew, so that nothing that is read at once is larger.
type budget struct {
	r    io.Reader
	left int64
	all  int64
}

var errTooLong = errors.New("it is too long")

func (b *budget) Read(p []byte) (int, error) {
	most := min(b.left, b.all, int64(len(p)))
	if most <= 0 {
		return 0, errTooLong
	}
	n, err := b.r.Read(p[:most])
	b.left -= int64(n)
	b.all -= int64(n)
	return n, err
}

// list is what a folder of a channel has, while it is written anew.
type list struct {
	in     *json.Decoder
	bytes  *budget
	out    *bufio.Writer
	folder string
	hidden map[string]bool
	names  map[string]bool
}

// rewrite copies what a folder of a channel has, and of it only packages whose
// file is named after what it is and has a hash. It holds one of them in memory.
func rewrite(text io.Reader, folder string, hidden map[string]bool, w io.Writer) (names map[string]bool, err error) {
	b := &budget{r: text, left: maxRecord, all: maxList}
	l := &list{in: json.NewDecoder(b), bytes: b, out: bufio.NewWriter(w), folder: folder, hidden: hidden, names: map[string]bool{}}
	fmt.Fprintf(l.out, `{"info":{"subdir":%q}`, folder)
	seen := map[string]bool{}
	err = l.each(func(key string) error {
		if !sections[key] || seen[key] {
			return l.skip()
		}
		seen[key] = true
		fmt.Fprintf(l.out, ",%q:{", key)
		comma := ""
		if err := l.each(func(file string) error { return l.copyRecord(file, &comma) }); err != nil {
			return err
		}
		return l.out.WriteByte('}')
	})
	for key := range sections {
		if !seen[key] {
			fmt.Fprintf(l.out, ",%q:{}", key)
		}
	}
	_, writeErr := l.out.WriteString(`,"repodata_version":1}`)
	return l.names, errors.Join(err, writeErr, l.out.Flush())
}

// token reads the next part of the text.
func (l *list) token() (json.Token, error) {
	l.bytes.left = maxRecord
	return l.in.Token()
}

// each calls do at each value of an object.
func (l *list) each(do func(key string) error) error {
	if begin, err := l.token(); err != nil || begin != json.Delim('{') {
		return errors.Join(err, errors.New("it is not what a channel says"))
	}
	for l.in.More() {
		key, err := l.token()
		if err != nil {
			return err
		}
		if err := do(key.(string)); err != nil { // of an object it always is one
			return err
		}
	}
	_, err := l.token()
	return err
}

// skip passes over a value of any size.
func (l *list) skip() error {
	for depth := 0; ; {
		token, err := l.token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > maxDepth {
				return errTooLong
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

func (l *list) copyRecord(file string, comma *string) error {
	l.bytes.left = maxRecord
	var text json.RawMessage
	if err := l.in.Decode(&text); err != nil {
		return err
	}
	var r record
	if json.Unmarshal(text, &r) != nil || !l.usable(file, r) {
		return nil
	}
	if l.names[r.Name] = true; len(l.names) > maxNames {
		return errTooLong
	}
	kept, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(l.out, "%s%q:%s", *comma, file, bytes.TrimSpace(kept))
	*comma = ","
	return err
}

func (l *list) usable(file string, r record) bool {
	name, version, build, ok := environment.SplitCondaFile(file)
	return ok && name == r.Name && version == r.Version && build == r.Build && r.Subdir == l.folder && hexHash.MatchString(r.SHA256) && !l.hidden[name]
}
