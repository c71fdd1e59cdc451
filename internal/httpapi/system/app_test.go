package system

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A page that is reloaded, or opened from a link in a mail, is asked of the server.
func TestEveryPageOfTheAppIsServed(t *testing.T) {
	t.Parallel()
	router, err := os.ReadFile("../../../web/src/app/router.tsx")
	if err != nil {
		t.Fatal(err)
	}
	pages := regexp.MustCompile(`path: "(/[^"]*)"`).FindAllStringSubmatch(string(router), -1)
	if len(pages) < 20 {
		t.Fatalf("only %d pages were found", len(pages))
	}
	for _, page := range pages {
		first, _, _ := strings.Cut(page[1][1:], "/")
		if first != "" && !slices.Contains(appPaths, "/"+first) {
			t.Errorf("%s is a page of the app that the server does not know", page[1])
		}
	}
}
