package docs_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/internal/identity/builtin"
)

// The tutorial, the pages and the commands name the shortest password that is taken.
func TestPasswordLengthIsSaidAsItIs(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"tutorial.md", "../internal/httpapi/pages/html/parts.html", "../web/src/account/Password.tsx", "../internal/cli/login.go", "../cmd/millrace/admin.go"} {
		said := regexp.MustCompile(`(?i)at least (\d+) characters`).FindAllStringSubmatch(readAll(t, file), -1)
		if len(said) == 0 {
			t.Errorf("%s does not say how long a password is", file)
		}
		for _, each := range said {
			n, err := strconv.Atoi(each[1])
			if err != nil || builtin.CheckPassword(strings.Repeat("x", n)) != nil || builtin.CheckPassword(strings.Repeat("x", n-1)) == nil {
				t.Errorf("%s says %q", file, each[0])
			}
		}
	}
}
