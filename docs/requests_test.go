package docs_test

import (
	"encoding/json"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace/millrace/api"
	"github.com/millrace/millrace/docs"
)

// Each request that a page names is one of the description of the API.
func TestEveryRequestOnAPageIsOneOfTheAPI(t *testing.T) {
	t.Parallel()
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(api.JSON, &document); err != nil {
		t.Fatal(err)
	}
	variable, known := regexp.MustCompile(`\{[^}]*\}`), map[string]bool{"POST /mcp": true} // which has a description of its own
	for path, methods := range document.Paths {
		for method := range methods {
			known[strings.ToUpper(method)+" "+variable.ReplaceAllString(path, "{}")] = true
		}
	}
	request, found := regexp.MustCompile("`((?:GET|POST|PUT|PATCH|DELETE) /[^\\s`?]*)"), 0
	err := fs.WalkDir(docs.Files, ".", func(page string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := docs.Files.ReadFile(page)
		for _, named := range request.FindAllSubmatch(text, -1) {
			found++
			if !known[variable.ReplaceAllString(string(named[1]), "{}")] {
				t.Errorf("%s: the API has no %s", page, named[1])
			}
		}
		return err
	})
	if err != nil || found < 100 {
		t.Errorf("%d requests, %v", found, err)
	}
}
