package runs

import (
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/api"
)

// made is an output as node.port[index]/name says it; a name that ends in a slash is a
// folder.
func made(text string) api.Output {
	from, name, _ := strings.Cut(text, "/")
	node, port, _ := strings.Cut(from, ".")
	o := api.Output{NodeID: node, Port: port, Name: strings.TrimSuffix(name, "/")}
	if port, index, of := strings.Cut(port, "["); of {
		n := int(index[0] - '0')
		o.Port, o.Index = port, &n
	}
	if strings.HasSuffix(name, "/") {
		o.Directory = &api.Directory{}
	}
	return o
}

func TestEachOutputIsDownloadedToAPlaceOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ outputs, want string }{
		"none":                               {"", ""},
		"names of their own":                 {"a.o/x.txt b.o/y.txt", "x.txt y.txt"},
		"one name":                           {"a.o/x.txt b.o/x.txt b.p/x.txt", "a/o/x.txt b/o/x.txt b/p/x.txt"},
		"one name but for its case":          {"a.o/X.txt b.o/x.txt", "a/o/X.txt b/o/x.txt"},
		"items of a scatter":                 {"a.o[0/x a.o[1/x", "a/o/0/x a/o/1/x"},
		"several of one port":                {"a.o/x a.o/x a.o/x", "a/o/x a/o/2-x a/o/3-x"},
		"a number that is taken":             {"a.o/x a.o/x a.o/2-x", "a/o/x a/o/2-x 2-x"},
		"a folder":                           {"a.o/res/", "res"},
		"two folders":                        {"a.o/res/ b.o/res/", "a/o/res b/o/res"},
		"a folder beside an archive of it":   {"a.o/res/ b.o/res.zip", "res res.zip"},
		"a folder beside a file of its name": {"a.o/res/ b.o/res", "a/o/res b/o/res"},
		"a file that is called as a node":    {"a.o/a a.o/x b.o/x", "2-a a/o/x b/o/x"},
		"a file that is called so, later":    {"a.o/x B.o/x c.o/b", "a/o/x B/o/x 2-b"},
		"and where that is taken":            {"a.o/2-a a.o/a a.o/x b.o/x", "2-a 3-a a/o/x b/o/x"},
	} {
		var list []api.Output
		for text := range strings.FieldsSeq(tt.outputs) {
			list = append(list, made(text))
		}
		if got := places(list); !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("%s: %v, want %s", name, got, tt.want)
		}
	}
	// A name is not made into another on its way: whoever writes it refuses it.
	for _, bad := range []string{"../x", "..", "."} {
		if got := places([]api.Output{{NodeID: "a", Port: "o", Name: bad}, {NodeID: "b", Port: "o", Name: bad}}); got[0] != "a/o/"+bad {
			t.Errorf("%q becomes %q", bad, got[0])
		}
	}
}
