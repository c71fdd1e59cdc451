// Package spdx lists what a program is made of, as an SPDX document: the Go
// modules that the program itself names, and the npm packages of its web app.
package spdx

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// PredicateType names such documents in attestations.
const PredicateType = "https://spdx.dev/Document"

// Program is a file to describe.
type Program struct {
	Name, Version, Path string
	Lock                string // package-lock.json of the web app inside; none if empty
	Created             time.Time
}

// Document is SPDX 2.3, as far as we use it.
type Document struct {
	Version       string         `json:"spdxVersion"`
	License       string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []Package      `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

// Package is one thing that the program is made of, or the program.
type Package struct {
	ID         string      `json:"SPDXID"`
	Name       string      `json:"name"`
	Version    string      `json:"versionInfo"`
	Location   string      `json:"downloadLocation"`
	Checksums  []checksum  `json:"checksums,omitempty"`
	References []reference `json:"externalRefs,omitempty"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Kind string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

// Of describes a program. The same program has the same document.
func Of(p Program) (Document, error) {
	sum, err := Sum(p.Path)
	if err != nil {
		return Document{}, err
	}
	info, err := buildinfo.ReadFile(p.Path)
	if err != nil {
		return Document{}, err
	}
	parts := modules(info)
	if p.Lock != "" {
		more, err := npm(p.Lock)
		if err != nil {
			return Document{}, err
		}
		parts = append(parts, more...)
	}
	slices.SortFunc(parts, func(a, b Package) int { return strings.Compare(a.References[0].Locator, b.References[0].Locator) })
	root := Package{ID: "SPDXRef-program", Name: p.Name, Version: p.Version, Location: "NOASSERTION", Checksums: []checksum{{"SHA256", sum}}}
	d := Document{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: p.Name + " " + p.Version,
		Namespace: "urn:sha256:" + sum, Creation: creation{p.Created.UTC().Format(time.RFC3339), []string{"Organization: Millrace"}},
		Packages: []Package{root}, Relationships: []relationship{{"SPDXRef-DOCUMENT", "DESCRIBES", root.ID}},
	}
	for i, part := range parts {
		part.ID = fmt.Sprintf("SPDXRef-part-%d", i+1)
		d.Packages = append(d.Packages, part)
		d.Relationships = append(d.Relationships, relationship{root.ID, "CONTAINS", part.ID})
	}
	return d, nil
}

// Sum is the SHA-256 of a file.
func Sum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func modules(info *debug.BuildInfo) []Package {
	list := []Package{part("golang", "stdlib", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		list = append(list, part("golang", m.Path, m.Version))
	}
	return list
}

// npm lists what is not for development only.
func npm(path string) ([]Package, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version string
			Dev     bool
			Link    bool
		}
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	seen := map[string]bool{}
	var list []Package
	for at, p := range lock.Packages {
		i := strings.LastIndex(at, "node_modules/")
		if i < 0 || p.Dev || p.Link {
			continue
		}
		name := at[i+len("node_modules/"):]
		if key := name + "@" + p.Version; !seen[key] {
			seen[key] = true
			list = append(list, part("npm", name, p.Version))
		}
	}
	return list, nil
}

// part names a package by its package URL.
func part(kind, name, version string) Package {
	return Package{
		Name: name, Version: version, Location: "NOASSERTION",
		References: []reference{{"PACKAGE-MANAGER", "purl", "pkg:" + kind + "/" + strings.ReplaceAll(name, "@", "%40") + "@" + version}},
	}
}
