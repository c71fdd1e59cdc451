package docs_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/api"
)

// Where a code is not written out, what it can be: a constant, or any of the
// constants of a type.
var computedCodes = map[string]string{
	"string(sharing.Revoked)": "sharing.Status", "string(Revoked)": "sharing.Status", "string(Expired)": "sharing.Status",
	"string(s)": "sharing.Status", "string(st)": "sharing.Status", "string(as)": "identity.InvitationStatus",
	"billing.InviteLimit": "billing.InviteLimit", "runs.MakerGone": "runs.MakerGone", "runs.TeamSuspended": "runs.TeamSuspended",
	"NotAllowed": "offers.NotAllowed", "Exhausted": "quotas.Exhausted", "NoEnvironments": "offers.NoEnvironments", "offers.NoEnvironments": "offers.NoEnvironments", "NoEngine": "offers.NoEngine",
	"unreachableCode": "inputs.unreachableCode", "changedCode": "inputs.changedCode", "diskFullCode": "inputs.diskFullCode",
	"billing.BudgetExhausted": "lifecycle.BudgetExhausted", "BudgetExhausted": "lifecycle.BudgetExhausted",
	"too_many_ …": "", // the contract says of what
}

// source is what the codes are found in.
type source struct {
	codes     map[string]string   // where one is given
	computed  map[string]string   // the expressions that are no text
	constants map[string][]string // by package and type, or by package and name
}

func (s source) read(t *testing.T, root string) {
	t.Helper()
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "testdata" {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s.look(n, file.Name.Name, files.Position(file.Pos()).Filename)
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s source) look(n ast.Node, pkg, file string) {
	switch n := n.(type) {
	case *ast.CallExpr:
		called, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || called.Sel.Name != "WithCode" || len(n.Args) != 1 {
			return
		}
		if text, ok := literal(n.Args[0]); ok {
			s.codes[text] = file
		} else {
			s.computed[written(n.Args[0])] = file
		}
	case *ast.CompositeLit: // ai.Failure{kind, "…", sentence}
		if of, ok := n.Type.(*ast.Ident); ok && of.Name == "Failure" && len(n.Elts) == 3 {
			if text, ok := literal(n.Elts[1]); ok && text != "" {
				s.codes[text] = file
			}
		}
	case *ast.KeyValueExpr: // fault.Error{Code: "…"}, api.NotReadyAnswer{Code: "…"}
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Code" {
			if text, ok := literal(n.Value); ok && text != "" {
				s.codes[text] = file
			}
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if i >= len(n.Values) {
				continue
			}
			text, ok := literal(n.Values[i])
			if !ok {
				continue
			}
			s.constants[pkg+"."+name.Name] = []string{text}
			if n.Type != nil {
				of := written(n.Type)
				if !strings.Contains(of, ".") {
					of = pkg + "." + of
				}
				s.constants[of] = append(s.constants[of], text)
			}
		}
	}
}

func literal(e ast.Expr) (string, bool) {
	text, ok := e.(*ast.BasicLit)
	if !ok || text.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(text.Value)
	return value, err == nil
}

func written(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return written(e.X) + "." + e.Sel.Name
	case *ast.BinaryExpr:
		if text, ok := literal(e.X); ok {
			return text + " …"
		}
	case *ast.CallExpr:
		return written(e.Fun) + "(" + written(e.Args[0]) + ")"
	}
	return fmt.Sprintf("%T", e)
}

// Every code that the source can give has a row, and every row a code.
func TestEveryErrorCodeSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := source{codes: map[string]string{}, computed: map[string]string{}, constants: map[string][]string{}}
	s.read(t, "../internal")
	s.read(t, "../cmd")
	for expression, file := range s.computed {
		of, known := computedCodes[expression]
		if !known {
			t.Errorf("%s gives the code %s: say in this test what it can be", file, expression)
		}
		for _, code := range s.constants[of] {
			s.codes[code] = of
		}
	}
	for _, of := range []string{"fault.Kind", "lifecycle.ErrorCode"} {
		if len(s.constants[of]) < 10 {
			t.Errorf("%d constants of %s", len(s.constants[of]), of)
		}
		for _, code := range s.constants[of] {
			s.codes[code] = of
		}
	}
	maps.Copy(s.codes, inContract(t))
	delete(s.codes, "active") // a link that works refuses nobody
	described := map[string]bool{}
	for _, rows := range tables(t, "errors.md") {
		for _, cells := range rows {
			described[unquoted(cells[0])] = true
			if do := cells[len(cells)-1]; do == "" {
				t.Errorf("%s: what to do?", cells[0])
			}
		}
	}
	for _, code := range slices.Sorted(maps.Keys(s.codes)) {
		if !described[code] {
			t.Errorf("%s (%s) is not in docs/errors.md", code, s.codes[code])
		}
	}
	for code := range described {
		if s.codes[code] == "" {
			t.Errorf("nothing gives %s", code)
		}
	}
	// A run's codes stand with the state that it ends in.
	for _, cells := range tables(t, "errors.md")["A run that did not complete"] {
		code := unquoted(cells[0])
		if !slices.Contains(s.constants["lifecycle.ErrorCode"], code) {
			t.Errorf("no run ends with %s", code)
		}
	}
}

// inContract are the codes that the API's description names.
func inContract(t *testing.T) map[string]string {
	t.Helper()
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(api.JSON, &document); err != nil {
		t.Fatal(err)
	}
	codes := map[string]string{}
	for path, item := range document.Paths {
		for _, text := range item {
			var operation struct {
				Codes map[string][]string `json:"x-codes"`
			}
			if json.Unmarshal(text, &operation) != nil {
				continue // what is no operation has no codes
			}
			for _, list := range operation.Codes {
				for _, code := range list {
					codes[code] = path
				}
			}
		}
	}
	if len(codes) < 20 {
		t.Errorf("only %d codes are in the contract", len(codes))
	}
	return codes
}
