package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// maxMethods is how many methods an interface may ask for, those of the
// interfaces that it embeds included.
const maxMethods = 7

func TestInterfacesAreSmall(t *testing.T) {
	known := map[string]*ast.InterfaceType{} // by folder and name, as "internal/files.Store"
	imports := map[string]map[string]string{}
	for _, root := range []string{"internal", "cmd", "client", "api", "web", "docs"} {
		err := filepath.WalkDir("../../"+root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, ".gen.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			folder := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../../")
			ast.Inspect(file, func(n ast.Node) bool {
				if s, ok := n.(*ast.TypeSpec); ok {
					if i, ok := s.Type.(*ast.InterfaceType); ok {
						name := folder + "." + s.Name.Name
						known[name], imports[name] = i, importsOf(file)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var count func(name string) int
	count = func(name string) (n int) {
		i := known[name]
		if i == nil {
			return 1 // of the standard library or a dependency: one thing, whatever it asks for
		}
		for _, m := range i.Methods.List {
			n += len(m.Names)
			if len(m.Names) == 0 {
				n += count(embedded(name, m.Type, imports[name]))
			}
		}
		return n
	}
	if len(known) < 50 {
		t.Errorf("found only %d interfaces", len(known))
	}
	for name := range known {
		if n := count(name); n > maxMethods {
			t.Errorf("%s has %d methods; split it by who uses what", name, n)
		}
	}
}

// importsOf are the folders of the module that a file imports, by the names it
// uses for them.
func importsOf(file *ast.File) map[string]string {
	found := map[string]string{}
	for _, i := range file.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		name := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		found[name] = strings.TrimPrefix(path, module)
	}
	return found
}

// embedded names what an interface embeds.
func embedded(in string, e ast.Expr, imports map[string]string) string {
	switch e := e.(type) {
	case *ast.Ident:
		return in[:strings.LastIndex(in, ".")+1] + e.Name
	case *ast.SelectorExpr:
		if p, ok := e.X.(*ast.Ident); ok {
			return imports[p.Name] + "." + e.Sel.Name
		}
	}
	return ""
}
