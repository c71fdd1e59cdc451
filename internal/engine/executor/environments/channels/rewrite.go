package channels

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"

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
	sections = []string{"packages", "packages.conda"}
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

// list is what a folder of a channel has, while it is read.
type list struct {
	in     *json.Decoder
	bytes  *budget
	folder string
	take   func(r entry) error
}

// entry is a package that can be chosen, as it is given to a solver.
type entry struct {
	section, name string
	text          []byte // "file":{…}
}

// readList hands over what a folder of a channel has, and of it only packages whose
// file is named after what it is and has a hash. It holds one of them in memory.
func readList(text io.Reader, folder string, take func(e entry) error) error {
	b := &budget{r: text, left: maxRecord, all: maxList}
	l := &list{in: json.NewDecoder(b), bytes: b, folder: folder, take: take}
	seen := map[string]bool{}
	return l.each(func(key string) error {
		if !slices.Contains(sections, key) || seen[key] {
			return l.skip()
		}
		seen[key] = true
		return l.each(func(file string) error { return l.record(key, file) })
	})
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

func (l *list) record(section, file string) error {
	l.bytes.left = maxRecord
	var text json.RawMessage
	if err := l.in.Decode(&text); err != nil {
		return err
	}
	var r record
	if json.Unmarshal(text, &r) != nil || !l.usable(file, r) {
		return nil
	}
	kept, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return l.take(entry{section, r.Name, fmt.Appendf(nil, "%q:%s", file, kept)})
}

func (l *list) usable(file string, r record) bool {
	name, version, build, ok := environment.SplitCondaFile(file)
	return ok && name == r.Name && version == r.Version && build == r.Build && r.Subdir == l.folder && hexHash.MatchString(r.SHA256)
}

// output is a list as a solver reads it, without packages of names that are hidden.
type output struct {
	w       *bufio.Writer
	hidden  map[string]bool
	names   map[string]bool // that are in it
	section string          // that is being written
	left    []string        // sections that were not begun
	comma   string
	bytes   int64 // of packages
}

func newOutput(w io.Writer, folder string, hidden map[string]bool) *output {
	o := &output{w: bufio.NewWriter(w), hidden: hidden, names: map[string]bool{}, left: slices.Clone(sections)}
	fmt.Fprintf(o.w, `{"info":{"subdir":%q}`, folder)
	return o
}

func (o *output) add(e entry) error {
	if o.hidden[e.name] {
		return nil
	}
	o.names[e.name] = true
	if o.bytes += int64(len(e.text)); o.bytes > maxList || len(o.names) > maxNames {
		return errTooLong // what is escaped may be longer than it was
	}
	if e.section != o.section {
		o.begin(e.section)
	}
	_, err := o.w.WriteString(o.comma)
	o.comma = ","
	if err == nil {
		_, err = o.w.Write(e.text)
	}
	return err
}

func (o *output) begin(section string) {
	o.end()
	o.section, o.comma, o.left = section, "", slices.DeleteFunc(o.left, func(other string) bool { return other == section })
	fmt.Fprintf(o.w, ",%q:{", section)
}

func (o *output) end() {
	if o.section != "" {
		_ = o.w.WriteByte('}') // the buffer remembers what went wrong
	}
}

func (o *output) close() error {
	for _, section := range slices.Clone(o.left) {
		o.begin(section)
	}
	o.end()
	_, err := o.w.WriteString(`,"repodata_version":1}`)
	return errors.Join(err, o.w.Flush())
}
