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

// A test that sleeps is slow where the time is too long and fails where it is
// too short. Tests wait for a signal, or with waittest for a state; where the
// passing of time itself is the matter they own the clock, by testing/synctest.
func TestNoTestSleeps(t *testing.T) {
	for _, root := range []string{"../../internal", "../../cmd", "../../client", "../../api"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !isTest(path) {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			for _, at := range sleeps(file) {
				t.Errorf("%s sleeps; wait for a signal or with waittest.Until", files.Position(at))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// isTest reports whether only tests use a file.
func isTest(path string) bool {
	return strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".go") && strings.HasSuffix(filepath.Dir(path), "test")
}

// sleeps are the calls of time.Sleep outside of synctest.Test, or of a function
// of the file that calls it, where they take no time.
func sleeps(file *ast.File) (found []token.Pos) {
	bubbles := map[string]bool{"synctest.Test": true}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && !strings.HasPrefix(f.Name.Name, "Test") {
			ast.Inspect(f, func(n ast.Node) bool {
				bubbles[f.Name.Name] = bubbles[f.Name.Name] || called(n) == "synctest.Test"
				return true
			})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if called(n) == "time.Sleep" {
			found = append(found, n.Pos())
		}
		return !bubbles[called(n)]
	})
	return found
}

// called is the name of what a call calls: "start", "time.Sleep".
func called(n ast.Node) string {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return ""
	}
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if p, ok := f.X.(*ast.Ident); ok {
			return p.Name + "." + f.Sel.Name
		}
	}
	return ""
}
