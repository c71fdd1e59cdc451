package docs_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/docs"
	"github.com/millrace/millrace/internal/domain/graph"
)

// All JSON on the pages is JSON, and the server accepts what is a definition or a node
// of one.
func TestEveryDefinitionOnAPageIsSound(t *testing.T) {
	t.Parallel()
	fence, definitions := regexp.MustCompile("(?ms)^```json\n(.*?)^```$"), 0
	err := fs.WalkDir(docs.Files, ".", func(page string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := docs.Files.ReadFile(page)
		for _, found := range fence.FindAllSubmatch(text, -1) {
			definition := bytes.ReplaceAll(found[1], []byte("sha256:…"), []byte("sha256:"+strings.Repeat("0", 64)))
			if !json.Valid(definition) {
				t.Errorf("%s has what is not JSON:\n%s", page, definition)
			}
			var members map[string]json.RawMessage
			_ = json.Unmarshal(definition, &members) // it may be an array
			if members["id"] != nil && members["command"] != nil {
				definition = slices.Concat([]byte(`{"nodes": [`), definition, []byte(`]}`))
			} else if members["nodes"] == nil {
				continue
			}
			definitions++
			if _, problems := graph.Parse(definition); len(problems) > 0 {
				t.Errorf("%s: %v:\n%s", page, problems, definition)
			}
		}
		return err
	})
	if err != nil || definitions < 20 {
		t.Errorf("%d definitions, %v", definitions, err)
	}
}
