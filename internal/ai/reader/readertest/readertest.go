// Package readertest makes papers for tests: it typesets committed sources as
// two-column PDFs, with all that makes such papers hard to read, and reads
// them back as the product does.
package readertest

import (
	"embed"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/ai/reader"
)

//go:embed papers/*.md
var sources embed.FS

// Paper is a source with what a good reader finds in it.
type Paper struct {
	Name    string
	Title   string
	Authors string
	Journal string
	// Tools are those that the methods use, in that order, each with its
	// version where the paper gives one; Listed are named elsewhere.
	Tools    []string
	Listed   []string
	Datasets []string
	Body     string
}

// Papers are all sources.
func Papers(t testing.TB) []Paper {
	t.Helper()
	files, err := sources.ReadDir("papers")
	if err != nil {
		t.Fatal(err)
	}
	var all []Paper
	for _, f := range files {
		text, err := sources.ReadFile("papers/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, parse(t, strings.TrimSuffix(f.Name(), ".md"), string(text)))
	}
	return all
}

func parse(t testing.TB, name, text string) Paper {
	t.Helper()
	head, body, ok := strings.Cut(text, "\n---\n")
	if !ok {
		t.Fatalf("%s has no head", name)
	}
	p := Paper{Name: name, Body: body}
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "title":
			p.Title = value
		case "authors":
			p.Authors = value
		case "journal":
			p.Journal = value
		case "tools":
			p.Tools = strings.Split(value, "; ")
		case "listed":
			p.Listed = strings.Split(value, "; ")
		case "datasets":
			p.Datasets = strings.Split(value, "; ")
		default:
			t.Fatalf("%s: what is %q?", name, key)
		}
	}
	return p
}

// Pages is the text of a PDF, read as the product reads it.
func Pages(t testing.TB, pdf []byte) []reader.Page {
	t.Helper()
	file := filepath.Join(t.TempDir(), "paper.pdf")
	if err := os.WriteFile(file, pdf, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "pdftotext", "-enc", "UTF-8", "-l", "60", file, "-").Output()
	if err != nil {
		t.Fatalf("pdftotext (package poppler-utils): %v", err)
	}
	var pages []reader.Page
	for i, text := range slices.DeleteFunc(strings.Split(string(out), "\f"), func(s string) bool { return s == "" }) {
		pages = append(pages, reader.Page{Number: i + 1, Text: text})
	}
	return pages
}
