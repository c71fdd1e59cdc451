package help_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/millrace/millrace/docs"
	"github.com/millrace/millrace/internal/httpapi/help"
)

func open(t *testing.T) *help.Book {
	t.Helper()
	b, err := help.Open(docs.Files)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// No link on any page leads nowhere.
func TestEveryLinkBetweenPagesLeadsToOne(t *testing.T) {
	t.Parallel()
	b := open(t)
	links := regexp.MustCompile(`href="([^"]*)"`)
	seen := map[string]bool{"": true}
	for todo := []string{""}; len(todo) > 0; todo = todo[1:] {
		p, found := b.Page(todo[0])
		if !found {
			t.Fatalf("there is no page %q", todo[0])
		}
		for _, l := range links.FindAllStringSubmatch(string(p.HTML), -1) {
			to, anchor, _ := strings.Cut(l[1], "#")
			at, ours := strings.CutPrefix(to+"/", "/help/")
			if to == "" {
				at, ours = p.Path, true
			}
			if !ours {
				if !strings.Contains(to, "://") {
					t.Errorf("%s links to %s", p.Path, l[1])
				}
				continue
			}
			at = strings.TrimSuffix(at, "/")
			other, found := b.Page(at)
			if !found || anchor != "" && !strings.Contains(string(other.HTML), `id="`+anchor+`"`) {
				t.Errorf("%s links to %s, which is not there", p.Path, l[1])
				continue
			}
			if !seen[at] {
				seen[at] = true
				todo = append(todo, at)
			}
		}
	}
	// What nobody finds from the first page may as well not be there.
	all, err := fs.Glob(docs.Files, "*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		if page := strings.TrimSuffix(file, ".md"); page != "README" && !seen[page] {
			t.Errorf("no link leads to %s", page)
		}
	}
}

var (
	helpLink = regexp.MustCompile(`/help((?:/[a-z0-9-]+)*)(?:#([a-z0-9-]+))?`)
	// What web/src/app/help.ts says of the pages of the app.
	appPage  = regexp.MustCompile(`(?m)^  "/[^"]*": "([a-z0-9/-]*)(?:#([a-z0-9-]+))?",$`)
	docsFile = regexp.MustCompile(`["` + "`" + `][^"` + "`" + `\n]*\bdocs/[a-z0-9/-]+\.md\b`)
)

// TestEveryLinkOfTheProgramLeadsToAPage reads the app, the server, the commands and the
// clients. Who reads a message has the pages of the server, and not the repository.
func TestEveryLinkOfTheProgramLeadsToAPage(t *testing.T) {
	t.Parallel()
	b := open(t)
	found := 0
	leads := func(file, at, anchor string) {
		found++
		p, there := b.Page(strings.TrimPrefix(at, "/"))
		if !there || anchor != "" && !strings.Contains(string(p.HTML), `id="`+anchor+`"`) {
			t.Errorf("%s links to %s#%s, which is not there", file, at, anchor)
		}
	}
	for _, root := range []string{"web/src", "internal", "cmd", "client", "clients/python/src", "clients/snakemake/src"} {
		err := filepath.WalkDir(filepath.Join("../../..", root), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.Contains(".ts .tsx .go .html .py", filepath.Ext(name)) || strings.Contains(name, "_test.") || strings.Contains(name, ".test.") {
				return err
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			for _, l := range helpLink.FindAllStringSubmatch(string(text), -1) {
				leads(name, l[1], l[2])
			}
			if filepath.Base(name) == "help.ts" {
				for _, l := range appPage.FindAllStringSubmatch(string(text), -1) {
					leads(name, l[1], l[2])
				}
			}
			for _, file := range docsFile.FindAllString(string(text), -1) {
				t.Errorf("%s sends people to a file of the repository: %s", name, file)
			}
			return nil
		})
		if err != nil {
			t.Fatal(root, err)
		}
	}
	if found < 25 {
		t.Errorf("only %d links are found", found)
	}
}

func TestSearchFindsTheSectionThatIsAbout(t *testing.T) {
	t.Parallel()
	b := open(t)
	for query, want := range map[string]string{
		"team_limit":        "/help/runs",
		"BACKUP restore":    "/help/operating/backup",
		"--min-free-disk":   "/help/operating",
		"idempotency":       "/help/api",
		"scatter no failed": "/help/",
	} {
		hits := b.Search(query)
		if len(hits) == 0 || !strings.Contains(hits[0].Path, want) && want != "/help/" {
			t.Errorf("%q finds %+v", query, hits)
		}
	}
	for _, query := range []string{"", " ", "xyzzy", strings.Repeat("a ", 1000)} {
		if hits := b.Search(query); len(hits) > 30 || query == "xyzzy" && len(hits) > 0 {
			t.Errorf("%.20q finds %d sections", query, len(hits))
		}
	}
}

func TestHTMLInAPageIsNotTakenOver(t *testing.T) {
	t.Parallel()
	b, err := help.Open(fstest.MapFS{"a.md": {Data: []byte("# A\n\n<script>alert(1)</script>\n\n[x](javascript:alert(1)) [away](../b.md)\n")}})
	if err != nil {
		t.Fatal(err)
	}
	p, _ := b.Page("a")
	for _, bad := range []string{"<script", "javascript:", "../b.md"} {
		if strings.Contains(string(p.HTML), bad) {
			t.Errorf("%s", p.HTML)
		}
	}
	if !strings.Contains(string(p.HTML), "away") {
		t.Error("the words of a link that leads out are gone")
	}
}
