package environments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/html"
)

// page is what an index says of a package, as PEP 691 writes it.
type page struct {
	Meta  map[string]string `json:"meta"`
	Name  string            `json:"name"`
	Files []file            `json:"files"`
}

// file is one that a package can be installed from.
type file struct {
	Filename       string            `json:"filename"`
	URL            string            `json:"url"`
	Hashes         map[string]string `json:"hashes"`
	RequiresPython string            `json:"requires-python,omitempty"`
	Metadata       any               `json:"core-metadata,omitempty"` // true, or its hashes
	Yanked         any               `json:"yanked,omitempty"`        // true, or why
	Size           int64             `json:"size,omitempty"`
}

func readJSON(text []byte) ([]file, error) {
	var p page
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("the package index sent what cannot be read: %w", err)
	}
	return p.Files, nil
}

// readHTML reads the older form of a page: one link for each file.
func readHTML(text []byte) (files []file, err error) {
	for tokens := html.NewTokenizer(bytes.NewReader(text)); ; {
		switch tokens.Next() {
		case html.ErrorToken:
			return files, nil
		case html.StartTagToken:
			if token := tokens.Token(); token.Data == "a" {
				files = append(files, linked(token.Attr))
			}
		}
	}
}

func linked(attributes []html.Attribute) (f file) {
	f.Hashes = map[string]string{}
	for _, a := range attributes {
		switch a.Key {
		case "href":
			address, fragment, _ := strings.Cut(a.Val, "#")
			f.URL = address
			if name, hash, ok := strings.Cut(fragment, "="); ok {
				f.Hashes[name] = hash
			}
		case "data-requires-python":
			f.RequiresPython = a.Val
		case "data-yanked":
			f.Yanked = true
			if a.Val != "" {
				f.Yanked = a.Val
			}
		case "data-core-metadata":
			if name, hash, ok := strings.Cut(a.Val, "="); ok {
				f.Metadata = map[string]string{name: hash}
			}
		}
	}
	if u, err := url.Parse(f.URL); err == nil {
		f.Filename = u.Path[strings.LastIndexByte(u.Path, '/')+1:]
	}
	return f
}

var (
	wheelName = regexp.MustCompile(`^[A-Za-z0-9._+!-]+\.whl$`)
	sha256Hex = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// wheels are the files that may be installed: built ones, whose hash the index
// gives. Others cannot be locked, or would have to be built.
func wheels(files []file, at *url.URL) (list []file) {
	for _, f := range files {
		u, err := at.Parse(f.URL)
		if err != nil || u.Scheme != "https" && u.Scheme != at.Scheme || !wheelName.MatchString(f.Filename) || !sha256Hex.MatchString(f.Hashes["sha256"]) {
			continue
		}
		u.User, u.Fragment = nil, ""
		f.URL, f.Hashes = u.String(), map[string]string{"sha256": f.Hashes["sha256"]}
		list = append(list, f)
	}
	return list
}
