package clients

import (
	"archive/zip"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
)

// wheel is a Python package as installers take it.
type wheel struct {
	File
	content []byte
}

// released is the time of everything in a wheel: the earliest that an archive can name.
var released = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

func makeWheels() ([]wheel, error) {
	var list []wheel
	for _, p := range []struct {
		kind   Kind
		folder string
	}{{Python, "python"}, {Snakemake, "snakemake"}} {
		sources, err := fs.Sub(Files, p.folder)
		if err != nil {
			return nil, err
		}
		w, err := makeWheel(sources)
		if err != nil {
			return nil, fmt.Errorf("the wheel of %s: %w", p.folder, err)
		}
		w.Kind = p.kind
		list = append(list, w)
	}
	return list, nil
}

// makeWheel makes the wheel of a project. Nothing but the sources decides its bytes:
// its files are stored and not compressed, and have one time. The version ends with a
// hash of the sources, so that installers replace an installed version that has others.
func makeWheel(sources fs.FS) (w wheel, err error) {
	p, err := readProject(sources)
	if err != nil {
		return w, err
	}
	files, err := modules(sources)
	if err != nil {
		return w, err
	}
	p.Version += "+h" + digest(files, p.metadata())[:12]
	stem := strings.ReplaceAll(p.Name, "-", "_") + "-" + p.Version
	info := stem + ".dist-info/"
	files[info+"METADATA"] = p.metadata()
	files[info+"WHEEL"] = []byte("Wheel-Version: 1.0\nGenerator: millrace\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
	files[info+"RECORD"] = record(files, info+"RECORD")
	content, err := archive(files)
	sum := sha256.Sum256(content)
	w.File = File{Name: stem + "-py3-none-any.whl", Project: p.Name, Version: p.Version, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
	w.content = content
	return w, err
}

// modules are the files below src, by their paths in the wheel.
func modules(sources fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(sources, "src", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[strings.TrimPrefix(name, "src/")], err = fs.ReadFile(sources, name)
		return err
	})
	return files, err
}

func digest(files map[string][]byte, metadata []byte) string {
	h := sha256.New()
	h.Write(metadata)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%s %d\n", name, len(files[name]))
		h.Write(files[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// record lists the files with their hashes, as installers check them.
func record(files map[string][]byte, itself string) []byte {
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		sum := sha256.Sum256(files[name])
		fmt.Fprintf(&out, "%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(files[name]))
	}
	fmt.Fprintf(&out, "%s,,\n", itself)
	return out.Bytes()
}

// archive writes the files, those of dist-info last. Sizes come before what they
// belong to, for installers that read an archive while it arrives.
func archive(files map[string][]byte) ([]byte, error) {
	names := slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		if last := strings.Contains(a, ".dist-info/"); last != strings.Contains(b, ".dist-info/") {
			if last {
				return 1
			}
			return -1
		}
		return strings.Compare(a, b)
	})
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, name := range names {
		text := files[name]
		h := &zip.FileHeader{Name: name, Method: zip.Store, CRC32: crc32.ChecksumIEEE(text), CompressedSize64: uint64(len(text)), UncompressedSize64: uint64(len(text))}
		h.SetMode(0o644)
		//lint:ignore SA1019 CreateRaw takes the time from no other field.
		h.SetModTime(released)
		w, err := z.CreateRaw(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(text); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return out.Bytes(), err
}

// project is what pyproject.toml says of a package.
type project struct {
	Name        string   `json:"name"`
	Version     string   `json:"version"`
	Description string   `json:"description"`
	License     string   `json:"license"`
	Python      string   `json:"requires-python"`
	Needs       []string `json:"dependencies"`
	Classifiers []string `json:"classifiers"`

	extras map[string][]string
	readme []byte
}

// readProject reads the two tables of pyproject.toml that a wheel repeats. Their
// values stand on one line each, and are JSON as well.
func readProject(sources fs.FS) (p project, err error) {
	text, err := fs.ReadFile(sources, "pyproject.toml")
	if err != nil {
		return p, err
	}
	tables, table := map[string]map[string]json.RawMessage{}, ""
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if name, ok := strings.CutPrefix(line, "["); ok {
			table = strings.TrimSuffix(name, "]")
			tables[table] = map[string]json.RawMessage{}
		} else if key, value, found := strings.Cut(line, " = "); found && table != "" && !strings.HasPrefix(line, "#") {
			tables[table][key] = json.RawMessage(value)
		}
	}
	for table, to := range map[string]any{"project": &p, "project.optional-dependencies": &p.extras} {
		if tables[table] == nil {
			continue
		}
		values, err := json.Marshal(tables[table])
		if err != nil {
			return p, fmt.Errorf("pyproject.toml: %s: %w", table, err)
		}
		if err := json.Unmarshal(values, to); err != nil {
			return p, fmt.Errorf("pyproject.toml: %s: %w", table, err)
		}
	}
	p.readme, err = fs.ReadFile(sources, "README.md")
	return p, err
}

// metadata is the file METADATA of a wheel.
func (p project) metadata() []byte {
	var out bytes.Buffer
	field := func(name, value string) { fmt.Fprintf(&out, "%s: %s\n", name, value) }
	field("Metadata-Version", "2.4")
	field("Name", p.Name)
	field("Version", p.Version)
	field("Summary", p.Description)
	field("License-Expression", p.License)
	for _, c := range p.Classifiers {
		field("Classifier", c)
	}
	field("Requires-Python", p.Python)
	for _, n := range p.Needs {
		field("Requires-Dist", n)
	}
	for _, extra := range slices.Sorted(maps.Keys(p.extras)) {
		field("Provides-Extra", extra)
		for _, n := range p.extras[extra] {
			field("Requires-Dist", n+"; extra == '"+extra+"'")
		}
	}
	field("Description-Content-Type", "text/markdown")
	out.WriteByte('\n')
	out.Write(p.readme)
	return out.Bytes()
}
