// Package help makes the documentation into pages of HTML that can be searched.
package help

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// Page is one page of the documentation.
type Page struct {
	Path     string // below /help/; empty is the first page
	Title    string
	HTML     template.HTML // of our own Markdown, in which no HTML is taken over
	sections []section
}

// section is what stands below one heading.
type section struct {
	title, anchor, text string
}

// Book is all pages.
type Book struct {
	pages map[string]*Page
	order []*Page
}

const indexFile = "README.md"

// Open reads all Markdown files of a folder. Links between them lead to their
// pages; what they link to elsewhere in the repository stays text.
func Open(files fs.FS) (*Book, error) {
	b := &Book{pages: map[string]*Page{}}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".md" {
			return err
		}
		source, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		p, err := render(files, name, source)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		b.pages[p.Path] = p
		b.order = append(b.order, p)
		return nil
	})
	return b, err
}

// Page is the one at a path below /help/.
func (b *Book) Page(at string) (*Page, bool) {
	p, found := b.pages[at]
	return p, found
}

// pathOf is where the page of a file is.
func pathOf(name string) string {
	if dir, file := path.Split(name); file == indexFile {
		return strings.TrimSuffix(dir, "/")
	}
	return strings.TrimSuffix(name, ".md")
}

func render(files fs.FS, name string, source []byte) (*Page, error) {
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	doc := md.Parser().Parse(text.NewReader(source))
	if err := lead(files, name, doc); err != nil {
		return nil, err
	}
	p := &Page{Path: pathOf(name), sections: sections(doc, source)}
	if len(p.sections) > 0 {
		p.Title = p.sections[0].title
	}
	var out bytes.Buffer
	if err := md.Renderer().Render(&out, source, doc); err != nil {
		return nil, err
	}
	p.HTML = template.HTML(out.String())
	return p, nil
}

// lead makes links between files into links between pages.
func lead(files fs.FS, name string, doc ast.Node) error {
	var outside []*ast.Link
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		link, ok := n.(*ast.Link)
		if !ok || !entering || strings.Contains(string(link.Destination), "://") {
			return ast.WalkContinue, nil
		}
		file, anchor, _ := strings.Cut(string(link.Destination), "#")
		if file == "" {
			return ast.WalkContinue, nil
		}
		target := path.Join(path.Dir(name), file)
		if _, err := fs.Stat(files, target); err != nil || path.Ext(target) != ".md" {
			outside = append(outside, link)
			return ast.WalkContinue, nil
		}
		to := strings.TrimSuffix("/help/"+pathOf(target), "/")
		if anchor != "" {
			to += "#" + anchor
		}
		link.Destination = []byte(to)
		return ast.WalkContinue, nil
	})
	for _, link := range outside {
		for child := link.FirstChild(); child != nil; child = link.FirstChild() {
			link.Parent().InsertBefore(link.Parent(), link, child)
		}
		link.Parent().RemoveChild(link.Parent(), link)
	}
	return err
}

// sections cuts a page at its headings.
func sections(doc ast.Node, source []byte) []section {
	var all []section
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			id, _ := h.AttributeString("id")
			anchor, _ := id.([]byte)
			all = append(all, section{title: plain(h, source), anchor: string(anchor)})
			continue
		}
		if len(all) == 0 {
			all = append(all, section{})
		}
		last := &all[len(all)-1]
		last.text += plain(n, source) + " "
	}
	return all
}

// plain is the text of a node without its marks.
func plain(n ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				out.Write(n.Segment.Value(source))
				if n.SoftLineBreak() {
					out.WriteByte(' ')
				}
			}
		case *ast.FencedCodeBlock:
			if entering {
				for i := range n.Lines().Len() {
					line := n.Lines().At(i)
					out.Write(line.Value(source))
				}
			}
		default:
			if !entering && n.Type() == ast.TypeBlock {
				out.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(out.String()), " ")
}
